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

static void check_logits(const char *op, g3_tensor logits, int64_t valid) {
  G3_CHECK(logits.data && logits.ndim == 2 && logits.dtype == G3_F32 &&
               (logits.stride[1] == 1 || logits.dim[1] == 1) && valid >= 0 &&
               valid <= logits.dim[1],
           "%s: logits are not f32 [m, n] with dense rows, of which %lld columns are real", op,
           (long long)valid);
}

static void check_vector(const char *op, const char *name, g3_tensor t, g3_dtype dtype,
                         int64_t rows) {
  G3_CHECK(t.data && t.dtype == dtype && g3_tensor_count(t) == rows && g3_tensor_dense(t),
           "%s: %s is not dense %s [%lld]", op, name, g3_dtype_name(dtype), (long long)rows);
}

static const float *row_of(g3_tensor logits, int64_t row) {
  return (const float *)logits.data + row * logits.stride[0];
}

g3_status g3_cpu_xent_peak(g3_stream *s, g3_tensor peak, g3_tensor logits, int64_t valid) {
  G3_TRY(g3_stream_drain(s));
  check_logits("xent_peak", logits, valid);
  const int64_t rows = logits.dim[0];
  check_vector("xent_peak", "peak", peak, G3_F32, rows);
  const g3_xent_kernels *run = kernels[g3_cpu_isa()];
  float *to = peak.data;
#pragma omp parallel for schedule(static) num_threads(g3_cpu_threads(s, rows *valid))
  for (int64_t r = 0; r < rows; r++)
    to[r] = run->peak(row_of(logits, r), valid);
  return G3_OK;
}

g3_status g3_cpu_xent_sums(g3_stream *s, g3_tensor sums, g3_tensor logits, g3_tensor peak,
                           g3_tensor targets, int64_t first, int64_t valid) {
  G3_TRY(g3_stream_drain(s));
  check_logits("xent_sums", logits, valid);
  const int64_t rows = logits.dim[0];
  check_vector("xent_sums", "sums", sums, G3_F32, 2 * rows);
  check_vector("xent_sums", "peak", peak, G3_F32, rows);
  check_vector("xent_sums", "targets", targets, G3_I32, rows);
  const g3_xent_kernels *run = kernels[g3_cpu_isa()];
  float *exps = sums.data, *hits = exps + rows;
  const float *top = peak.data;
  const int32_t *target = targets.data;
#pragma omp parallel for schedule(static) num_threads(g3_cpu_threads(s, rows *valid))
  for (int64_t r = 0; r < rows; r++) {
    const float *row = row_of(logits, r);
    const int64_t at = target[r] - first;
    exps[r] = run->sum(row, valid, top[r]);
    hits[r] = target[r] >= 0 && at >= 0 && at < valid ? row[at] : 0;
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

g3_status g3_cpu_xent_loss(g3_stream *s, g3_tensor loss, g3_tensor dlogits, g3_tensor logits,
                           g3_tensor peak, g3_tensor sums, g3_tensor targets, int64_t first,
                           int64_t valid, float scale) {
  G3_TRY(g3_stream_drain(s));
  check_logits("xent_loss", logits, valid);
  const int64_t rows = logits.dim[0];
  check_vector("xent_loss", "loss", loss, G3_F32, rows);
  check_vector("xent_loss", "peak", peak, G3_F32, rows);
  check_vector("xent_loss", "sums", sums, G3_F32, 2 * rows);
  check_vector("xent_loss", "targets", targets, G3_I32, rows);
  G3_CHECK(!dlogits.data ||
               ((dlogits.dtype == G3_F32 || dlogits.dtype == G3_BF16) && dlogits.ndim == 2 &&
                dlogits.dim[0] == rows && dlogits.dim[1] == logits.dim[1] &&
                (dlogits.stride[1] == 1 || dlogits.dim[1] == 1)),
           "xent_loss: dlogits are not f32 or bf16 [%lld, %lld] with dense rows", (long long)rows,
           (long long)logits.dim[1]);
  const g3_xent_kernels *run = kernels[g3_cpu_isa()];
  const float *exps = sums.data, *hits = exps + rows, *top = peak.data;
  const int32_t *target = targets.data;
  float *to = loss.data;
#pragma omp parallel for schedule(static) num_threads(g3_cpu_threads(s, rows *valid))
  for (int64_t r = 0; r < rows; r++) {
    const bool counts = target[r] >= 0;
    to[r] = counts ? logf(exps[r]) + top[r] - hits[r] : 0;
    if (dlogits.data)
      gradient_row(run, dlogits, r, row_of(logits, r), valid, top[r], exps[r], target[r] - first,
                   counts, scale);
  }
  return G3_OK;
}
