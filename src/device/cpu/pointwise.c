/* GELU, and bias + dropout + residual. */
#include "device/cpu/kernels/pointwise.h"
#include "device/cpu/cpu.h"

enum { BLOCK = 1 << 12, ROWS = 4 }; /* elements and rows that a thread takes at a time */

static bool alike(g3_tensor a, g3_tensor b) {
  return a.data && b.data && g3_tensor_dense(a) && g3_tensor_dense(b) && a.dtype == b.dtype &&
         g3_tensor_count(a) == g3_tensor_count(b);
}

static int64_t block_at(int64_t n, int64_t i) {
  return n - i < BLOCK ? n - i : BLOCK;
}

g3_status g3_cpu_gelu(g3_stream *s, g3_tensor y, g3_tensor x) {
  G3_TRY(g3_stream_drain(s));
  G3_CHECK(alike(y, x), "gelu wants two dense tensors of one count and type");
  const g3_pointwise_kernels *k = g3_pointwise();
  const int64_t n = g3_tensor_count(x);
  const int threads = g3_cpu_threads(s, n);
#pragma omp parallel for num_threads(threads)
  for (int64_t i = 0; i < n; i += BLOCK)
    k->gelu(g3_tensor_at(y, i), g3_tensor_at(x, i), block_at(n, i), x.dtype == G3_BF16);
  return G3_OK;
}

g3_status g3_cpu_gelu_bwd(g3_stream *s, g3_tensor dx, g3_tensor dy, g3_tensor x) {
  G3_TRY(g3_stream_drain(s));
  G3_CHECK(alike(dx, x) && alike(dy, x),
           "gelu_bwd wants three dense tensors of one count and type");
  const g3_pointwise_kernels *k = g3_pointwise();
  const int64_t n = g3_tensor_count(x);
  const int threads = g3_cpu_threads(s, n);
#pragma omp parallel for num_threads(threads)
  for (int64_t i = 0; i < n; i += BLOCK)
    k->gelu_bwd(g3_tensor_at(dx, i), g3_tensor_at(dy, i), g3_tensor_at(x, i), block_at(n, i),
                x.dtype == G3_BF16);
  return G3_OK;
}

static bool is_rows(g3_tensor t, int64_t m, int64_t n, g3_dtype dtype) {
  return t.data && t.ndim == 2 && t.dim[0] == m && t.dim[1] == n && (n <= 1 || t.stride[1] == 1) &&
         t.dtype == dtype;
}

/* The mask of the batch's row `spec->row + r`. */
static g3_row_mask mask_of(const g3_dropout_spec *spec, int64_t r) {
  const int64_t flat = spec->row + r;
  const uint64_t sample = (uint64_t)(spec->sample + flat / spec->seq);
  return (g3_row_mask){
      .key = {(uint32_t)spec->key, (uint32_t)(spec->key >> 32)},
      .counter = {(uint32_t)(flat % spec->seq), (uint32_t)sample, (uint32_t)(sample >> 32) << 16},
      .threshold = (uint32_t)((double)spec->p * 4294967296.0),
      .scale = 1.0f / (1.0f - spec->p),
  };
}

static void rows(g3_stream *s, g3_tensor y, g3_tensor x, const void *bias, g3_tensor residual,
                 const g3_dropout_spec *spec) {
  const g3_pointwise_kernels *k = g3_pointwise();
  const int64_t m = x.dim[0], n = x.dim[1];
  const int threads = g3_cpu_threads(s, m * n);
#pragma omp parallel for num_threads(threads) schedule(static, ROWS)
  for (int64_t r = 0; r < m; r++) {
    const bool drops = spec && spec->p > 0;
    const g3_row_mask mask = drops ? mask_of(spec, r) : (g3_row_mask){0};
    k->bias_mask_add(g3_tensor_at(y, r * y.stride[0]), g3_tensor_at(x, r * x.stride[0]), bias,
                     residual.data ? g3_tensor_at(residual, r * residual.stride[0]) : NULL, n,
                     drops ? &mask : NULL, x.dtype == G3_BF16);
  }
}

static void check_spec(const g3_dropout_spec *spec) {
  G3_CHECK(!spec || spec->p == 0 ||
               (spec->p > 0 && spec->p < 1 && spec->seq > 0 && spec->row >= 0 && spec->sample >= 0),
           "dropout: p %g, row %lld, seq %lld", (double)spec->p, (long long)spec->row,
           (long long)spec->seq);
}

g3_status g3_cpu_bias_dropout_add(g3_stream *s, g3_tensor y, g3_tensor x, g3_tensor bias,
                                  g3_tensor residual, const g3_dropout_spec *spec) {
  G3_TRY(g3_stream_drain(s));
  const int64_t m = x.dim[0], n = x.dim[1];
  const g3_dtype t = x.dtype;
  G3_CHECK(
      is_rows(x, m, n, t) && is_rows(y, m, n, t) &&
          (!residual.data || is_rows(residual, m, n, t)) &&
          (!bias.data || (g3_tensor_count(bias) == n && g3_tensor_dense(bias) && bias.dtype == t)),
      "bias_dropout_add: shapes or types differ from x [%lld, %lld] %s", (long long)m, (long long)n,
      g3_dtype_name(t));
  check_spec(spec);
  rows(s, y, x, bias.data, residual, spec);
  return G3_OK;
}

g3_status g3_cpu_dropout_bwd(g3_stream *s, g3_tensor dx, g3_tensor dy,
                             const g3_dropout_spec *spec) {
  G3_TRY(g3_stream_drain(s));
  G3_CHECK(dy.ndim == 2 && is_rows(dx, dy.dim[0], dy.dim[1], dy.dtype) &&
               is_rows(dy, dy.dim[0], dy.dim[1], dy.dtype),
           "dropout_bwd: dx and dy differ in shape or type");
  check_spec(spec);
  rows(s, dx, dy, NULL, g3_tensor_none(), spec);
  return G3_OK;
}
