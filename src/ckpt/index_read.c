#include "ckpt/files.h"
#include "ckpt/index.h"
#include "ckpt/seal.h"
#include "ckpt/table.h"
#include "ckpt/vfd.h"
#include "util/array.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static g3_status get_int(hid_t file, const char *path, const char *name, int64_t *out) {
  hid_t attr = H5Aopen(file, name, H5P_DEFAULT), type = G3_H5_NONE, space = G3_H5_NONE;
  int64_t value = 0;
  const bool ok = attr >= 0 && (type = H5Aget_type(attr)) >= 0 &&
                  H5Tget_class(type) == H5T_INTEGER && (space = H5Aget_space(attr)) >= 0 &&
                  H5Sget_simple_extent_npoints(space) == 1 &&
                  H5Aread(attr, H5T_NATIVE_INT64, &value) >= 0;
  g3_status st = G3_OK;
  if (ok)
    *out = value;
  else
    st = G3_FAIL(G3_EFORMAT, "%s has no whole number as attribute %s", path, name);
  g3_h5_close(&space);
  g3_h5_close(&type);
  g3_h5_close(&attr);
  return st;
}

/* Copies text that HDF5 made into a fixed place; false when it is too long. */
static bool take_text(char *text, char *out, size_t size) {
  const bool fits = text && strlen(text) < size;
  if (fits) memcpy(out, text, strlen(text) + 1);
  if (text) H5free_memory(text);
  return fits;
}

static bool get_text(hid_t group, hsize_t i, g3_ckpt_attr *out) {
  hid_t attr = H5Aopen_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, i, H5P_DEFAULT, H5P_DEFAULT);
  hid_t type = G3_H5_NONE, space = G3_H5_NONE;
  char *text = NULL;
  const bool ok = attr >= 0 && H5Aget_name(attr, sizeof out->key, out->key) > 0 &&
                  H5Aget_name(attr, 0, NULL) < (ssize_t)sizeof out->key &&
                  (type = H5Aget_type(attr)) >= 0 && H5Tis_variable_str(type) > 0 &&
                  (space = H5Aget_space(attr)) >= 0 && H5Sget_simple_extent_npoints(space) == 1 &&
                  H5Aread(attr, type, &text) >= 0 && take_text(text, out->value, sizeof out->value);
  g3_h5_close(&space);
  g3_h5_close(&type);
  g3_h5_close(&attr);
  return ok;
}

static g3_status read_config(hid_t file, const char *path, g3_ckpt_meta *m) {
  hid_t group = H5Gopen2(file, "config", H5P_DEFAULT);
  const int n = group < 0 ? -1 : H5Aget_num_attrs(group);
  g3_status st = G3_OK;
  if (n < 0)
    st = G3_FAIL(G3_EFORMAT, "%s has no group config with the model's attributes", path);
  else
    st = G3_NEW_ARRAY(n, &m->attr);
  for (int i = 0; st == G3_OK && i < n; i++)
    if (get_text(group, (hsize_t)i, &m->attr[i]))
      m->nattrs++;
    else
      st = G3_FAIL(G3_EFORMAT, "%s: attribute %d of the group config is not a short text", path, i);
  g3_h5_close(&group);
  return st;
}

static g3_status read_meta(hid_t file, const char *path, g3_ckpt_meta *m) {
  int64_t version = 0;
  G3_TRY(get_int(file, path, "format_version", &version));
  if (version != G3_CKPT_FORMAT_VERSION)
    return G3_FAIL(G3_EFORMAT,
                   "%s has format version %lld, and this program reads version %d: use the program "
                   "that wrote it, or a newer one",
                   path, (long long)version, G3_CKPT_FORMAT_VERSION);
  G3_TRY(get_int(file, path, "step", &m->step));
  G3_TRY(get_int(file, path, "consumed_samples", &m->consumed_samples));
  G3_TRY(get_int(file, path, "applied_steps", &m->applied_steps));
  return read_config(file, path, m);
}

static g3_dtype dtype_named(const char *name) {
  for (int t = 0; t < G3_DTYPE_COUNT; t++)
    if (strcmp(name, g3_dtype_name((g3_dtype)t)) == 0) return (g3_dtype)t;
  return G3_DTYPE_COUNT;
}

static void take_tensors(g3_ckpt_index *ix, g3_ckpt_tensor_row *rows, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    g3_ckpt_entry *e = &ix->entry[i];
    g3_ckpt_tensor_row *r = &rows[i];
    memcpy(e->name, r->name, sizeof e->name - 1);
    r->dtype[sizeof r->dtype - 1] = '\0';
    e->dtype = dtype_named(r->dtype);
    e->ndim = r->ndim;
    memcpy(e->global, r->dims, sizeof e->global);
  }
}

/* Pieces stand in the order of their tensors. */
static g3_status take_pieces(g3_ckpt_index *ix, const char *path, const g3_ckpt_piece_row *rows,
                             int64_t n, g3_ckpt_piece *piece) {
  int32_t tensor = 0;
  for (int64_t i = 0; i < n; i++) {
    const g3_ckpt_piece_row *r = &rows[i];
    if (r->tensor < tensor || r->tensor >= ix->nentries)
      return G3_FAIL(G3_EFORMAT,
                     "%s: piece %lld belongs to tensor %d, which is out of order or not "
                     "there",
                     path, (long long)i, r->tensor);
    tensor = r->tensor;
    g3_ckpt_entry *e = &ix->entry[tensor];
    if (e->npieces++ == 0) e->piece = &piece[i];
    piece[i].shard = r->shard;
    memcpy(piece[i].dataset, r->dataset, sizeof piece[i].dataset - 1);
    piece[i].slice.ndim = e->ndim;
    memcpy(piece[i].slice.global, e->global, sizeof e->global);
    memcpy(piece[i].slice.start, r->start, sizeof r->start);
    memcpy(piece[i].slice.count, r->count, sizeof r->count);
    piece[i].xxh3 = r->xxh3;
  }
  return G3_OK;
}

static g3_status read_tensors(hid_t file, const char *path, g3_ckpt_index *ix) {
  void *rows = NULL;
  int64_t n = 0;
  G3_TRY(g3_ckpt_table_read(file, path, G3_CKPT_TENSORS, &rows, &n));
  const g3_status st = G3_NEW_ARRAY(n, &ix->entry);
  if (st == G3_OK) {
    ix->nentries = (int)n;
    take_tensors(ix, rows, n);
  }
  free(rows);
  return st;
}

static g3_status read_pieces(hid_t file, const char *path, g3_ckpt_index *ix) {
  void *rows = NULL;
  int64_t n = 0;
  G3_TRY(g3_ckpt_table_read(file, path, G3_CKPT_PIECES, &rows, &n));
  g3_ckpt_piece *piece = NULL;
  g3_status st = G3_NEW_ARRAY(n, &piece);
  if (st == G3_OK && ix->nentries > 0) {
    ix->entry[0].piece = piece; /* the whole array, as freeing wants it */
    st = take_pieces(ix, path, rows, n, piece);
  } else {
    free(piece);
  }
  free(rows);
  return st;
}

static g3_status read_shards(hid_t file, const char *path, g3_ckpt_index *ix) {
  void *rows = NULL;
  int64_t n = 0;
  G3_TRY(g3_ckpt_table_read(file, path, G3_CKPT_SHARDS, &rows, &n));
  const g3_status st = G3_NEW_ARRAY(n, &ix->shard_bytes);
  if (st == G3_OK) {
    ix->nshards = (int)n;
    for (int64_t i = 0; i < n; i++)
      ix->shard_bytes[i] = ((const g3_ckpt_shard_row *)rows)[i].bytes;
  }
  free(rows);
  return st;
}

static g3_status read_contents(hid_t file, const char *path, g3_ckpt_index *ix) {
  G3_TRY(read_meta(file, path, &ix->meta));
  G3_TRY(read_tensors(file, path, ix));
  G3_TRY(read_pieces(file, path, ix));
  G3_TRY(read_shards(file, path, ix));
  return g3_ckpt_index_check(ix, path);
}

static g3_status read_file(g3_ckpt_index *ix, const char *dir) {
  char path[G3_CKPT_PATH];
  G3_TRY(g3_ckpt_path(ix->path, "%s", dir));
  G3_TRY(g3_ckpt_path(path, "%s/index.h5", dir));
  G3_TRY(g3_ckpt_seal_check(path));
  g3_h5_begin();
  g3_vfd_file file;
  if (!g3_vfd_open(&file, path)) return G3_H5_FAIL(G3_EFORMAT, "%s cannot be read as HDF5", path);
  const g3_status st = read_contents(file.id, path, ix);
  g3_vfd_close(&file);
  G3_TRY(st);
  return g3_ckpt_shards_check(ix);
}

g3_status g3_ckpt_index_read(const char *path, g3_ckpt_index **out) {
  g3_ckpt_index *ix = NULL;
  G3_TRY(G3_NEW_ARRAY(1, &ix));
  const g3_status st = read_file(ix, path);
  if (st != G3_OK) {
    g3_ckpt_index_free(ix);
    return g3_trace_up(st, __FILE__, __LINE__);
  }
  *out = ix;
  return G3_OK;
}
