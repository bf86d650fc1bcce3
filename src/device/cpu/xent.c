/* Softmax cross-entropy over a vocabulary cut into ranges: rows are shared out over the threads,
 * and each is worked on alone. */
#include "device/cpu/kernels/xent.h"
#include "device/cpu/cpu.h"
#include "device/cpu/isa.h"
#include <math.h>
#include <string.h>

static const g3_xent_kernels *const kernels[G3_ISA_COUNT] = {
    [G3_ISA_V2] = &g3_xent_kernels_v2,
    [G3_ISA_V3] = &g3_xent_kernels_v3,
    [G3_ISA_V4] = &g3_xent_kernels_v4,
};

/* Logits [m, n], or blocks of columns [blocks, m, n]; of all columns the first `valid` are real. */
static void check_logits(const char *op, g3_tensor logits, int64_t valid) {
  const bool one = logits.ndim == 2 && (logits.stride[1] == 1 || logits.dim[1] == 1);
  const bool blocks = logits.ndim == 3 && g3_tensor_dense(logits);
  G3_CHECK(logits.data && (one || blocks) && logits.dtype == G3_F32 && valid >= 0 &&
               valid <= g3_gemm_columns(logits),
           "%s: logits are not f32 [m, n] with dense rows, or dense [blocks, m, n], of which %lld "
           "columns are real",
           op, (long long)valid);
}

static void check_vector(const char *op, const char *name, g3_tensor t, g3_dtype dtype,
                         int64_t rows) {
  G3_CHECK(t.data && t.dtype == dtype && g3_tensor_count(t) == rows && g3_tensor_dense(t),
           "%s: %s is not dense %s [%lld]", op, name, g3_dtype_name(dtype), (long long)rows);
}

/* A block of columns: [m, n], the number of its first column and how many of its columns are real.
 */
typedef struct {
  g3_tensor t;
  int64_t first, valid;
} block;

static int64_t blocks_of(g3_tensor logits) {
  return logits.ndim == 3 ? logits.dim[0] : 1;
}

static block block_of(g3_tensor t, int64_t i, int64_t valid) {
  if (t.ndim == 2) return (block){t, 0, valid};
  const int64_t n = t.dim[2], left = valid - i * n;
  return (block){g3_tensor_2d(g3_tensor_at(t, i * t.stride[0]), t.dtype, t.dim[1], n), i * n,
                 left < 0   ? 0
                 : left < n ? left
                            : n};
}

static const float *row_of(g3_tensor logits, int64_t row) {
  return (const float *)logits.data + row * logits.stride[0];
}

static float peak_of_row(const g3_xent_kernels *run, g3_tensor logits, int64_t valid, int64_t r) {
  float top = -INFINITY;
  for (int64_t i = 0; i < blocks_of(logits); i++) {
    const block b = block_of(logits, i, valid);
    const float peak = run->peak(row_of(b.t, r), b.valid);
    top = peak > top ? peak : top;
  }
  return top;
}

g3_status g3_cpu_xent_peak(g3_stream *s, g3_tensor peak, g3_tensor logits, int64_t valid) {
  G3_TRY(g3_stream_drain(s));
  check_logits("xent_peak", logits, valid);
  const int64_t rows = g3_gemm_rows(logits);
  check_vector("xent_peak", "peak", peak, G3_F32, rows);
  const g3_xent_kernels *run = kernels[g3_cpu_isa()];
  float *to = peak.data;
#pragma omp parallel for schedule(static) num_threads(g3_cpu_threads(s, rows *valid))
  for (int64_t r = 0; r < rows; r++)
    to[r] = peak_of_row(run, logits, valid, r);
  return G3_OK;
}

g3_status g3_cpu_xent_sums(g3_stream *s, g3_tensor sums, g3_tensor logits, g3_tensor peak,
                           g3_tensor targets, int64_t first, int64_t valid) {
  G3_TRY(g3_stream_drain(s));
  check_logits("xent_sums", logits, valid);
  const int64_t rows = g3_gemm_rows(logits), blocks = blocks_of(logits);
  check_vector("xent_sums", "sums", sums, G3_F32, blocks * 2 * rows);
  check_vector("xent_sums", "peak", peak, G3_F32, rows);
  check_vector("xent_sums", "targets", targets, G3_I32, rows);
  const g3_xent_kernels *run = kernels[g3_cpu_isa()];
  const float *top = peak.data;
  const int32_t *target = targets.data;
#pragma omp parallel for schedule(static) num_threads(g3_cpu_threads(s, rows *valid))
  for (int64_t r = 0; r < rows; r++)
    for (int64_t i = 0; i < blocks; i++) {
      const block b = block_of(logits, i, valid);
      const int64_t at = target[r] - first - b.first;
      const float *row = row_of(b.t, r);
      float *exps = (float *)sums.data + 2 * i * rows, *hits = exps + rows;
      exps[r] = run->sum(row, b.valid, top[r]);
      hits[r] = target[r] >= 0 && at >= 0 && at < b.valid ? row[at] : 0;
    }
  return G3_OK;
}

/* One row of dlogits, padding included. */
static void gradient_row(const g3_xent_kernels *run, g3_tensor dlogits, int64_t r,
                         const float *logits, int64_t valid, float peak, float sum, int64_t target,
                         bool counts, float scale) {
  const size_t bytes = g3_dtype_bytes(dlogits.dtype);
  char *to = g3_tensor_at(dlogits, r * dlogits.stride[0]);
  const int64_t done = counts ? valid : 0;
  if (counts)
    run->gradient(to, dlogits.dtype == G3_BF16, logits, valid, peak, scale / sum, target, scale);
  memset(to + (size_t)done * bytes, 0, (size_t)(dlogits.dim[1] - done) * bytes);
}

static bool fits(g3_tensor dlogits, g3_tensor logits) {
  if ((dlogits.dtype != G3_F32 && dlogits.dtype != G3_BF16) || dlogits.ndim != logits.ndim)
    return false;
  for (int i = 0; i < logits.ndim; i++)
    if (dlogits.dim[i] != logits.dim[i]) return false;
  return dlogits.ndim == 3 ? g3_tensor_dense(dlogits)
                           : dlogits.stride[1] == 1 || dlogits.dim[1] == 1;
}

g3_status g3_cpu_xent_loss(g3_stream *s, g3_tensor loss, g3_tensor dlogits, g3_tensor logits,
                           g3_tensor peak, g3_tensor sums, g3_tensor targets, int64_t first,
                           int64_t valid, float scale) {
  G3_TRY(g3_stream_drain(s));
  check_logits("xent_loss", logits, valid);
  const int64_t rows = g3_gemm_rows(logits);
  check_vector("xent_loss", "loss", loss, G3_F32, rows);
  check_vector("xent_loss", "peak", peak, G3_F32, rows);
  check_vector("xent_loss", "sums", sums, G3_F32, 2 * rows);
  check_vector("xent_loss", "targets", targets, G3_I32, rows);
  G3_CHECK(!dlogits.data || fits(dlogits, logits),
           "xent_loss: dlogits are not f32 or bf16 [%lld, %lld] with dense rows, cut as logits are",
           (long long)rows, (long long)g3_gemm_columns(logits));
  const g3_xent_kernels *run = kernels[g3_cpu_isa()];
  const float *exps = sums.data, *hits = exps + rows, *top = peak.data;
  const int32_t *target = targets.data;
  float *to = loss.data;
#pragma omp parallel for schedule(static) num_threads(g3_cpu_threads(s, rows *valid))
  for (int64_t r = 0; r < rows; r++) {
    const bool counts = target[r] >= 0;
    to[r] = counts ? logf(exps[r]) + top[r] - hits[r] : 0;
    for (int64_t i = 0; dlogits.data && i < blocks_of(logits); i++) {
      const block b = block_of(logits, i, valid);
      gradient_row(run, block_of(dlogits, i, valid).t, r, row_of(b.t, r), b.valid, top[r], exps[r],
                   target[r] - first - b.first, counts, scale);
    }
  }
  return G3_OK;
}
