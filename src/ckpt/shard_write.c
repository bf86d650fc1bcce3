#include "ckpt/files.h"
#include "ckpt/shard.h"
#include <string.h>

static g3_status put_dataset(hid_t file, const char *path, const g3_ckpt_piece *p, g3_dtype dtype,
                             const void *data) {
  hsize_t dims[G3_MAX_DIMS];
  for (int d = 0; d < p->slice.ndim; d++)
    dims[d] = (hsize_t)p->slice.count[d];
  hid_t type = g3_h5_dtype(dtype), space = H5Screate_simple(p->slice.ndim, dims, NULL);
  hid_t lcpl = H5Pcreate(H5P_LINK_CREATE), dcpl = H5Pcreate(H5P_DATASET_CREATE);
  hid_t set = G3_H5_NONE;
  /* No times: the same training writes the same bytes. */
  const bool ok = type >= 0 && space >= 0 && lcpl >= 0 && dcpl >= 0 &&
                  H5Pset_create_intermediate_group(lcpl, 1) >= 0 &&
                  H5Pset_obj_track_times(dcpl, false) >= 0 &&
                  H5Pset_fill_time(dcpl, H5D_FILL_TIME_NEVER) >= 0 &&
                  (set = H5Dcreate2(file, p->dataset, type, space, lcpl, dcpl, H5P_DEFAULT)) >= 0 &&
                  H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0;
  const g3_status st = ok ? G3_OK : G3_H5_FAIL(G3_EIO, "cannot write %s to %s", p->dataset, path);
  g3_h5_close(&set);
  g3_h5_close(&dcpl);
  g3_h5_close(&lcpl);
  g3_h5_close(&space);
  g3_h5_close(&type);
  return st;
}

static g3_status write_piece(hid_t file, const char *path, g3_stream *s, const g3_ckpt_item *item,
                             g3_ckpt_row *row, g3_tensor stage) {
  const int64_t count = g3_slice_count(&row->piece.slice);
  const g3_tensor local = g3_tensor_part(g3_tensor_as_1d(item->local), 0, row->offset, count);
  const g3_tensor copy = g3_tensor_1d(stage.data, local.dtype, count);
  G3_CHECK(g3_tensor_bytes(copy) <= g3_tensor_bytes(stage), "%s: the staging is too small",
           row->name);
  G3_TRY(s->dev->ops->copy(s, copy, local));
  G3_TRY(s->dev->ops->sync(s));
  row->piece.xxh3 = g3_ckpt_hash(copy.data, g3_tensor_bytes(copy));
  return put_dataset(file, path, &row->piece, copy.dtype, copy.data);
}

static g3_status write_pieces(g3_vfd_file *file, const char *path, int shard, g3_stream *s,
                              const g3_ckpt_item *items, g3_ckpt_row *rows, int64_t n,
                              g3_tensor stage) {
  for (int64_t i = 0; i < n; i++) {
    rows[i].piece.shard = shard;
    G3_TRY(write_piece(file->id, path, s, &items[rows[i].item], &rows[i], stage));
    if (file->error)
      return G3_FAIL(G3_EIO, "cannot write %s to %s: %s", rows[i].piece.dataset, path,
                     strerror(file->error));
  }
  return G3_OK;
}

g3_status g3_ckpt_shard_write(const char *dir, int shard, g3_stream *s, const g3_ckpt_item *items,
                              g3_ckpt_row *rows, int64_t n, g3_tensor stage, int64_t *bytes) {
  char path[G3_CKPT_PATH];
  g3_vfd_file file;
  G3_TRY(g3_ckpt_path(path, "%s/shard-%05d.h5", dir, shard));
  g3_h5_begin();
  if (!g3_vfd_create(&file, path, H5P_DEFAULT)) return G3_H5_FAIL(G3_EIO, "cannot make %s", path);
  const g3_status st = write_pieces(&file, path, shard, s, items, rows, n, stage);
  const bool closed = g3_vfd_close(&file);
  G3_TRY(st);
  if (!closed) return G3_H5_FAIL(G3_EIO, "cannot close %s", path);
  if (file.error)
    return G3_FAIL(G3_EIO, "cannot finish writing %s: %s", path, strerror(file.error));
  *bytes = file.bytes;
  return G3_OK;
}
