#include "ckpt/files.h"
#include "ckpt/index.h"
#include "ckpt/seal.h"
#include "ckpt/table.h"
#include "ckpt/vfd.h"
#include "util/array.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A scalar attribute of the same type in the file and in memory. */
static g3_status put_attribute(hid_t at, const char *path, const char *name, hid_t type,
                               const void *value) {
  hid_t space = H5Screate(H5S_SCALAR), attr = G3_H5_NONE;
  const bool ok = space >= 0 && type >= 0 &&
                  (attr = H5Acreate2(at, name, type, space, H5P_DEFAULT, H5P_DEFAULT)) >= 0 &&
                  H5Awrite(attr, type, value) >= 0;
  const g3_status st =
      ok ? G3_OK : G3_H5_FAIL(G3_EIO, "%s: cannot write the attribute %s", path, name);
  g3_h5_close(&attr);
  g3_h5_close(&space);
  return st;
}

static g3_status put_config(hid_t group, const char *path, const g3_ckpt_meta *m) {
  hid_t text = H5Tcopy(H5T_C_S1);
  if (text < 0 || H5Tset_size(text, H5T_VARIABLE) < 0 || H5Tset_cset(text, H5T_CSET_UTF8) < 0)
    g3_h5_close(&text);
  g3_status st = G3_OK;
  for (int i = 0; st == G3_OK && i < m->nattrs; i++) {
    const char *value = m->attr[i].value;
    st = put_attribute(group, path, m->attr[i].key, text, &value);
  }
  g3_h5_close(&text);
  return st;
}

static g3_status write_meta(hid_t file, const char *path, const g3_ckpt_meta *m) {
  const int64_t version = G3_CKPT_FORMAT_VERSION;
  const hid_t number = H5T_STD_I64LE;
  G3_TRY(put_attribute(file, path, "format_version", number, &version));
  G3_TRY(put_attribute(file, path, "step", number, &m->step));
  G3_TRY(put_attribute(file, path, "consumed_samples", number, &m->consumed_samples));
  G3_TRY(put_attribute(file, path, "applied_steps", number, &m->applied_steps));
  hid_t group = H5Gcreate2(file, "config", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  if (group < 0) return G3_H5_FAIL(G3_EIO, "%s: cannot make the group config", path);
  const g3_status st = put_config(group, path, m);
  g3_h5_close(&group);
  return st;
}

static void to_hsize(int ndim, const int64_t *from, hsize_t *to) {
  for (int d = 0; d < ndim; d++)
    to[d] = (hsize_t)from[d];
}

/* Maps a piece's place in the whole to its dataset in a shard beside the index. */
static g3_status map_piece(hid_t dcpl, const char *path, hid_t whole, const g3_ckpt_piece *p) {
  hsize_t start[G3_MAX_DIMS], count[G3_MAX_DIMS];
  to_hsize(p->slice.ndim, p->slice.start, start);
  to_hsize(p->slice.ndim, p->slice.count, count);
  char shard[32];
  snprintf(shard, sizeof shard, "shard-%05d.h5", p->shard);
  hid_t piece = H5Screate_simple(p->slice.ndim, count, NULL);
  const bool ok = piece >= 0 &&
                  H5Sselect_hyperslab(whole, H5S_SELECT_SET, start, NULL, count, NULL) >= 0 &&
                  H5Pset_virtual(dcpl, whole, shard, p->dataset, piece) >= 0;
  const g3_status st = ok ? G3_OK : G3_H5_FAIL(G3_EIO, "%s: cannot map %s", path, p->dataset);
  g3_h5_close(&piece);
  return st;
}

static g3_status write_virtual(hid_t file, const char *path, hid_t lcpl, const g3_ckpt_entry *e) {
  hsize_t dims[G3_MAX_DIMS];
  to_hsize(e->ndim, e->global, dims);
  hid_t whole = H5Screate_simple(e->ndim, dims, NULL), type = g3_h5_dtype(e->dtype);
  hid_t dcpl = H5Pcreate(H5P_DATASET_CREATE), set = G3_H5_NONE;
  g3_status st = G3_OK;
  if (whole < 0 || type < 0 || dcpl < 0 || H5Pset_obj_track_times(dcpl, false) < 0)
    st = G3_H5_FAIL(G3_EIO, "%s: cannot describe %s", path, e->name);
  for (int i = 0; st == G3_OK && i < e->npieces; i++)
    st = map_piece(dcpl, path, whole, &e->piece[i]);
  if (st == G3_OK && (H5Sselect_all(whole) < 0 ||
                      (set = H5Dcreate2(file, e->name, type, whole, lcpl, dcpl, H5P_DEFAULT)) < 0))
    st = G3_H5_FAIL(G3_EIO, "%s: cannot write the virtual dataset %s", path, e->name);
  g3_h5_close(&set);
  g3_h5_close(&dcpl);
  g3_h5_close(&type);
  g3_h5_close(&whole);
  return st;
}

static g3_status write_tensors(hid_t file, const char *path, const g3_ckpt_index *ix) {
  g3_ckpt_tensor_row *rows = NULL;
  G3_TRY(G3_NEW_ARRAY(ix->nentries, &rows));
  for (int i = 0; i < ix->nentries; i++) {
    const g3_ckpt_entry *e = &ix->entry[i];
    memcpy(rows[i].name, e->name, sizeof rows[i].name);
    snprintf(rows[i].dtype, sizeof rows[i].dtype, "%s", g3_dtype_name(e->dtype));
    rows[i].ndim = e->ndim;
    memcpy(rows[i].dims, e->global, (size_t)e->ndim * sizeof e->global[0]);
  }
  const g3_status st = g3_ckpt_table_write(file, path, G3_CKPT_TENSORS, rows, ix->nentries);
  free(rows);
  return st;
}

static g3_status write_pieces(hid_t file, const char *path, const g3_ckpt_index *ix) {
  int64_t n = 0;
  for (int i = 0; i < ix->nentries; i++)
    n += ix->entry[i].npieces;
  g3_ckpt_piece_row *rows = NULL;
  G3_TRY(G3_NEW_ARRAY(n, &rows));
  g3_ckpt_piece_row *r = rows;
  for (int i = 0; i < ix->nentries; i++)
    for (int k = 0; k < ix->entry[i].npieces; k++, r++) {
      const g3_ckpt_piece *p = &ix->entry[i].piece[k];
      const size_t dims = (size_t)p->slice.ndim * sizeof p->slice.start[0];
      r->tensor = i;
      r->shard = p->shard;
      memcpy(r->dataset, p->dataset, sizeof r->dataset);
      memcpy(r->start, p->slice.start, dims);
      memcpy(r->count, p->slice.count, dims);
      r->xxh3 = p->xxh3;
    }
  const g3_status st = g3_ckpt_table_write(file, path, G3_CKPT_PIECES, rows, n);
  free(rows);
  return st;
}

static g3_status write_shards(hid_t file, const char *path, const g3_ckpt_index *ix) {
  g3_ckpt_shard_row *rows = NULL;
  G3_TRY(G3_NEW_ARRAY(ix->nshards, &rows));
  for (int i = 0; i < ix->nshards; i++)
    rows[i].bytes = ix->shard_bytes[i];
  const g3_status st = g3_ckpt_table_write(file, path, G3_CKPT_SHARDS, rows, ix->nshards);
  free(rows);
  return st;
}

static g3_status write_contents(hid_t file, const char *path, const g3_ckpt_index *ix) {
  G3_TRY(write_meta(file, path, &ix->meta));
  G3_TRY(write_tensors(file, path, ix));
  G3_TRY(write_pieces(file, path, ix));
  G3_TRY(write_shards(file, path, ix));
  hid_t lcpl = H5Pcreate(H5P_LINK_CREATE);
  g3_status st = G3_OK;
  if (lcpl < 0 || H5Pset_create_intermediate_group(lcpl, 1) < 0)
    st = G3_H5_FAIL(G3_EIO, "%s: cannot make groups", path);
  for (int i = 0; st == G3_OK && i < ix->nentries; i++)
    st = write_virtual(file, path, lcpl, &ix->entry[i]);
  g3_h5_close(&lcpl);
  return st;
}

static g3_status write_file(const char *path, const g3_ckpt_index *ix) {
  g3_vfd_file file = G3_VFD_NONE;
  hid_t fcpl = H5Pcreate(H5P_FILE_CREATE);
  g3_status st = G3_OK;
  if (fcpl < 0 || H5Pset_userblock(fcpl, G3_CKPT_SEAL_BYTES) < 0 ||
      !g3_vfd_create(&file, path, fcpl))
    st = G3_H5_FAIL(G3_EIO, "cannot make %s", path);
  g3_h5_close(&fcpl);
  if (st == G3_OK) st = write_contents(file.id, path, ix);
  if (!g3_vfd_close(&file) && st == G3_OK) st = G3_H5_FAIL(G3_EIO, "cannot close %s", path);
  if (file.error) /* what HDF5 says after a failed write means nothing */
    return G3_FAIL(G3_EIO, "cannot write %s: %s", path, strerror(file.error));
  return st;
}

g3_status g3_ckpt_index_write(const g3_ckpt_index *ix) {
  char path[G3_CKPT_PATH];
  G3_TRY(g3_ckpt_path(path, "%s/index.h5", ix->path));
  g3_h5_begin();
  G3_TRY(write_file(path, ix));
  G3_TRY(g3_ckpt_seal(path));
  return g3_ckpt_sync(path, NULL);
}
