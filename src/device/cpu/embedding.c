/* Rows looked up in tables. Backward adds rows in order; each thread owns a stripe of columns. */
#include "device/cpu/cpu.h"
#include "device/cpu/kernels/pointwise.h"
#include <string.h>

enum { STRIPE = 64 };

static bool is_rows(g3_tensor t, int64_t n) {
  return t.data && t.ndim == 2 && t.dim[1] == n && (n <= 1 || t.stride[1] == 1);
}

static bool is_ids(g3_tensor t, int64_t m) {
  return t.data && t.dtype == G3_I32 && g3_tensor_dense(t) && g3_tensor_count(t) == m;
}

g3_status g3_cpu_embedding(g3_stream *s, g3_tensor y, g3_tensor ids, g3_tensor table,
                           int64_t first) {
  G3_TRY(g3_stream_drain(s));
  const int64_t m = y.dim[0], n = y.dim[1];
  G3_CHECK(is_rows(y, n) && is_rows(table, n) && is_ids(ids, m) && y.dtype == table.dtype,
           "embedding wants y [m, n], i32 ids [m] and a table [rows, n] of y's type");
  const int32_t *id = ids.data;
  const size_t bytes = (size_t)n * g3_dtype_bytes(y.dtype);
  const int threads = g3_cpu_threads(s, m * n);
#pragma omp parallel for num_threads(threads)
  for (int64_t r = 0; r < m; r++) {
    const int64_t row = id[r] - first;
    if (row >= 0 && row < table.dim[0])
      memcpy(g3_tensor_at(y, r * y.stride[0]), g3_tensor_at(table, row * table.stride[0]), bytes);
    else
      memset(g3_tensor_at(y, r * y.stride[0]), 0, bytes);
  }
  return G3_OK;
}

g3_status g3_cpu_embedding_bwd(g3_stream *s, g3_tensor dtable, g3_tensor ids, g3_tensor dy,
                               int64_t first) {
  G3_TRY(g3_stream_drain(s));
  const int64_t m = dy.dim[0], n = dy.dim[1];
  G3_CHECK(is_rows(dy, n) && is_rows(dtable, n) && is_ids(ids, m) && dtable.dtype == G3_F32,
           "embedding_bwd wants dy [m, n], i32 ids [m] and an f32 table [rows, n]");
  const g3_pointwise_kernels *k = g3_pointwise();
  const int32_t *id = ids.data;
  const int threads = g3_cpu_threads(s, m * n);
#pragma omp parallel for num_threads(threads)
  for (int64_t c = 0; c < n; c += STRIPE)
    for (int64_t r = 0; r < m; r++) {
      const int64_t row = id[r] - first;
      if (row >= 0 && row < dtable.dim[0])
        k->add_wide(g3_tensor_at(dtable, row * dtable.stride[0] + c),
                    g3_tensor_at(dy, r * dy.stride[0] + c), n - c < STRIPE ? n - c : STRIPE,
                    dy.dtype == G3_BF16);
    }
  return G3_OK;
}

static void check_positions(const char *op, g3_tensor x, g3_tensor table, int64_t row,
                            int64_t seq) {
  G3_CHECK(is_rows(x, x.dim[1]) && is_rows(table, x.dim[1]) && row >= 0 && seq > 0 &&
               table.dim[0] >= seq,
           "%s: x [%lld, %lld] from row %lld, table [%lld, %lld], seq %lld", op,
           (long long)x.dim[0], (long long)x.dim[1], (long long)row, (long long)table.dim[0],
           (long long)table.dim[1], (long long)seq);
}

g3_status g3_cpu_position(g3_stream *s, g3_tensor x, g3_tensor table, int64_t row, int64_t seq) {
  G3_TRY(g3_stream_drain(s));
  check_positions("position", x, table, row, seq);
  G3_CHECK(x.dtype == table.dtype, "position: x and its table differ in type");
  const g3_pointwise_kernels *k = g3_pointwise();
  const int64_t m = x.dim[0], n = x.dim[1];
  const int threads = g3_cpu_threads(s, m * n);
#pragma omp parallel for num_threads(threads)
  for (int64_t r = 0; r < m; r++)
    k->add(g3_tensor_at(x, r * x.stride[0]), g3_tensor_at(table, (row + r) % seq * table.stride[0]),
           n, x.dtype == G3_BF16);
  return G3_OK;
}

g3_status g3_cpu_position_bwd(g3_stream *s, g3_tensor dtable, g3_tensor dx, int64_t row,
                              int64_t seq) {
  G3_TRY(g3_stream_drain(s));
  check_positions("position_bwd", dx, dtable, row, seq);
  G3_CHECK(dtable.dtype == G3_F32, "position_bwd: the table's gradient is f32");
  const g3_pointwise_kernels *k = g3_pointwise();
  const int64_t m = dx.dim[0], n = dx.dim[1];
  const int threads = g3_cpu_threads(s, m * n);
#pragma omp parallel for num_threads(threads)
  for (int64_t c = 0; c < n; c += STRIPE)
    for (int64_t r = 0; r < m; r++)
      k->add_wide(g3_tensor_at(dtable, (row + r) % seq * dtable.stride[0] + c),
                  g3_tensor_at(dx, r * dx.stride[0] + c), n - c < STRIPE ? n - c : STRIPE,
                  dx.dtype == G3_BF16);
  return G3_OK;
}
