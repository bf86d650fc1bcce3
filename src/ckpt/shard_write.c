#include "ckpt/files.h"
#include "ckpt/shard.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Starts the disk on what has been written, so that the sync at the end waits for less. A hint:
 * where it is not possible nothing is lost. */
static void start_writeback(hid_t file) {
  int *fd = NULL;
  if (H5Fget_vfd_handle(file, H5P_DEFAULT, (void **)&fd) >= 0 && fd)
    (void)sync_file_range(*fd, 0, 0, SYNC_FILE_RANGE_WRITE);
}

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

static g3_status write_file(const char *path, int shard, g3_stream *s, const g3_ckpt_item *items,
                            g3_ckpt_row *rows, int64_t n, g3_tensor stage) {
  hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  if (file < 0) return G3_H5_FAIL(G3_EIO, "cannot make %s", path);
  g3_status st = G3_OK;
  for (int64_t i = 0; st == G3_OK && i < n; i++) {
    rows[i].piece.shard = shard;
    st = write_piece(file, path, s, &items[rows[i].item], &rows[i], stage);
    if (st == G3_OK) start_writeback(file);
  }
  if (!g3_h5_close(&file) && st == G3_OK) st = G3_H5_FAIL(G3_EIO, "cannot finish writing %s", path);
  return st;
}

g3_status g3_ckpt_shard_write(const char *dir, int shard, g3_stream *s, const g3_ckpt_item *items,
                              g3_ckpt_row *rows, int64_t n, g3_tensor stage, int64_t *bytes) {
  char path[G3_CKPT_PATH];
  G3_TRY(g3_ckpt_path(path, "%s/shard-%05d.h5", dir, shard));
  g3_h5_begin();
  G3_TRY(write_file(path, shard, s, items, rows, n, stage));
  return g3_ckpt_sync(path, bytes);
}
