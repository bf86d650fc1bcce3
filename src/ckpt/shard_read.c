#include "ckpt/files.h"
#include "ckpt/shard.h"
#include "util/half.h"
#include <stdio.h>
#include <string.h>

g3_ckpt_reader g3_ckpt_reader_of(const g3_ckpt_index *ix) {
  g3_h5_begin();
  return (g3_ckpt_reader){ix, G3_VFD_NONE, -1};
}

void g3_ckpt_reader_close(g3_ckpt_reader *r) {
  g3_vfd_close(&r->file);
  r->shard = -1;
}

int g3_ckpt_by_shard(const g3_ckpt_piece *a, const g3_ckpt_piece *b) {
  if (a->shard != b->shard) return a->shard < b->shard ? -1 : 1;
  return (a > b) - (a < b); /* as the index lists them */
}

static bool same_shape(hid_t set, const g3_slice *s) {
  hid_t space = H5Dget_space(set);
  hsize_t dims[G3_MAX_DIMS];
  bool same = space >= 0 && H5Sget_simple_extent_ndims(space) == s->ndim &&
              H5Sget_simple_extent_dims(space, dims, NULL) == s->ndim;
  for (int d = 0; same && d < s->ndim; d++)
    same = dims[d] == (hsize_t)s->count[d];
  g3_h5_close(&space);
  return same;
}

static bool same_type(hid_t set, hid_t type) {
  hid_t found = H5Dget_type(set);
  const bool same = found >= 0 && type >= 0 && H5Tequal(found, type) > 0;
  g3_h5_close(&found);
  return same;
}

static g3_status read_dataset(hid_t file, const char *path, const g3_ckpt_piece *p, g3_dtype dtype,
                              void *data) {
  hid_t set = H5Dopen2(file, p->dataset, H5P_DEFAULT), type = g3_h5_dtype(dtype);
  g3_status st = G3_OK;
  if (set < 0)
    st = G3_H5_FAIL(G3_EFORMAT, "%s does not hold %s", path, p->dataset);
  else if (!same_type(set, type) || !same_shape(set, &p->slice))
    st = G3_FAIL(G3_EFORMAT, "%s: %s has not the type and shape that the index gives it", path,
                 p->dataset);
  else if (H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) < 0)
    st = G3_H5_FAIL(G3_EIO, "%s: cannot read %s", path, p->dataset);
  g3_h5_close(&type);
  g3_h5_close(&set);
  return st;
}

static g3_status open_shard(g3_ckpt_reader *r, const char *path, int shard) {
  if (r->shard == shard) return G3_OK;
  g3_ckpt_reader_close(r);
  if (!g3_vfd_open(&r->file, path)) return G3_H5_FAIL(G3_EFORMAT, "cannot open the shard %s", path);
  r->shard = shard;
  return G3_OK;
}

g3_status g3_ckpt_reader_read(g3_ckpt_reader *r, const g3_ckpt_entry *e, const g3_ckpt_piece *p,
                              g3_tensor stage, g3_tensor *out) {
  char path[G3_CKPT_PATH];
  G3_TRY(g3_ckpt_path(path, "%s/shard-%05d.h5", r->ix->path, p->shard));
  g3_tensor t = g3_tensor_1d(stage.data, e->dtype, g3_slice_count(&p->slice));
  G3_CHECK(g3_tensor_bytes(t) <= g3_tensor_bytes(stage), "%s: the staging is too small",
           p->dataset);
  G3_TRY(open_shard(r, path, p->shard));
  G3_TRY(read_dataset(r->file.id, path, p, e->dtype, t.data));
  if (g3_ckpt_hash(t.data, g3_tensor_bytes(t)) != p->xxh3)
    return G3_FAIL(G3_EFORMAT, "%s: %s is damaged: its bytes have another hash than the index says",
                   path, p->dataset);
  *out = t;
  return G3_OK;
}

static void widen(void *data, int64_t n) {
  char *p = data;
  for (int64_t i = n - 1; i >= 0; i--) { /* backwards: a float never covers what is still to come */
    g3_bf16 half;
    memcpy(&half, p + i * 2, sizeof half);
    const float f = g3_bf16_to_f32(half);
    memcpy(p + i * 4, &f, sizeof f);
  }
}

static void narrow(void *data, int64_t n) {
  char *p = data;
  for (int64_t i = 0; i < n; i++) {
    float f;
    memcpy(&f, p + i * 4, sizeof f);
    const g3_bf16 half = g3_f32_to_bf16(f);
    memcpy(p + i * 2, &half, sizeof half);
  }
}

g3_tensor g3_ckpt_convert(g3_tensor t, g3_dtype to) {
  const int64_t n = g3_tensor_count(t);
  if (t.dtype == G3_BF16 && to == G3_F32)
    widen(t.data, n);
  else if (t.dtype == G3_F32 && to == G3_BF16)
    narrow(t.data, n);
  else
    G3_CHECK(t.dtype == to, "no conversion from %s to %s", g3_dtype_name(t.dtype),
             g3_dtype_name(to));
  return g3_tensor_1d(t.data, to, n);
}
