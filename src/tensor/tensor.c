#include "tensor/tensor.h"
#include "util/array.h"

static const struct {
  const char *name;
  size_t bytes;
} dtypes[G3_DTYPE_COUNT] = {
    [G3_F32] = {"f32", 4}, [G3_BF16] = {"bf16", 2}, [G3_F64] = {"f64", 8},
    [G3_I32] = {"i32", 4}, [G3_U8] = {"u8", 1},
};

static void check_dtype(g3_dtype t) {
  G3_CHECK((unsigned)t < G3_DTYPE_COUNT, "%d is no dtype", (int)t);
}

size_t g3_dtype_bytes(g3_dtype t) {
  check_dtype(t);
  return dtypes[t].bytes;
}

const char *g3_dtype_name(g3_dtype t) {
  check_dtype(t);
  return dtypes[t].name;
}

static g3_tensor dense(void *data, g3_dtype dtype, int ndim, const int64_t *dim) {
  g3_tensor t = g3_tensor_none();
  t.data = data;
  t.dtype = dtype;
  t.ndim = ndim;
  int64_t stride = 1;
  for (int i = ndim - 1; i >= 0; i--) {
    t.dim[i] = dim[i];
    t.stride[i] = stride;
    G3_CHECK(dim[i] >= 0 && g3_mul_ok(stride, dim[i], &stride),
             "dimension %d = %lld is negative, or too large with those after it", i,
             (long long)dim[i]);
  }
  return t;
}

g3_tensor g3_tensor_1d(void *data, g3_dtype t, int64_t d0) {
  return dense(data, t, 1, (const int64_t[]){d0});
}

g3_tensor g3_tensor_2d(void *data, g3_dtype t, int64_t d0, int64_t d1) {
  return dense(data, t, 2, (const int64_t[]){d0, d1});
}

g3_tensor g3_tensor_3d(void *data, g3_dtype t, int64_t d0, int64_t d1, int64_t d2) {
  return dense(data, t, 3, (const int64_t[]){d0, d1, d2});
}

g3_tensor g3_tensor_4d(void *data, g3_dtype t, int64_t d0, int64_t d1, int64_t d2, int64_t d3) {
  return dense(data, t, 4, (const int64_t[]){d0, d1, d2, d3});
}

int64_t g3_tensor_count(g3_tensor t) {
  if (t.ndim == 0) return 0;
  int64_t n = 1;
  for (int i = 0; i < t.ndim; i++)
    n *= t.dim[i];
  return n;
}

size_t g3_tensor_bytes(g3_tensor t) {
  int64_t bytes;
  G3_CHECK(g3_mul_ok(g3_tensor_count(t), (int64_t)g3_dtype_bytes(t.dtype), &bytes),
           "%lld elements of %s are more bytes than fit in 64 bits", (long long)g3_tensor_count(t),
           g3_dtype_name(t.dtype));
  return (size_t)bytes;
}

bool g3_tensor_dense(g3_tensor t) {
  int64_t stride = 1;
  for (int i = t.ndim - 1; i >= 0; i--) {
    if (t.dim[i] != 1 && t.stride[i] != stride) return false;
    stride *= t.dim[i];
  }
  return true;
}

g3_tensor g3_tensor_part(g3_tensor t, int d, int64_t start, int64_t count) {
  G3_CHECK(d >= 0 && d < t.ndim && start >= 0 && count >= 0 && start <= t.dim[d] &&
               count <= t.dim[d] - start,
           "part [%lld, +%lld) of dimension %d is outside the tensor", (long long)start,
           (long long)count, d);
  if (t.data) t.data = g3_tensor_at(t, start * t.stride[d]);
  t.dim[d] = count;
  return t;
}

g3_tensor g3_tensor_as_1d(g3_tensor t) {
  G3_CHECK(g3_tensor_dense(t), "only a dense tensor can take another shape");
  return g3_tensor_1d(t.data, t.dtype, g3_tensor_count(t));
}

g3_tensor g3_tensor_as_2d(g3_tensor t, int64_t d0, int64_t d1) {
  int64_t count;
  G3_CHECK(g3_tensor_dense(t) && g3_mul_ok(d0, d1, &count) && count == g3_tensor_count(t),
           "%lld x %lld is not a shape of this tensor", (long long)d0, (long long)d1);
  return g3_tensor_2d(t.data, t.dtype, d0, d1);
}
