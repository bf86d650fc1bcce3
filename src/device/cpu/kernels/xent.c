/* Softmax cross-entropy of one row: each function reads the row once. */
#include "device/cpu/kernels/xent.h"
#include "device/cpu/isa.h"
#include "device/cpu/kernels/vmath.h"
#include <math.h>

/* f32 sums are at most this long; these are added in f64, so that a large vocabulary loses nothing.
 */
enum { BLOCK = 2048 };

static float peak(const float *logits, int64_t n) {
  float top = -INFINITY;
#pragma omp simd reduction(max : top)
  for (int64_t i = 0; i < n; i++)
    top = logits[i] > top ? logits[i] : top;
  return top;
}

static float sum(const float *logits, int64_t n, float top) {
  double all = 0;
  for (int64_t at = 0; at < n; at += BLOCK) {
    const int64_t end = n - at < BLOCK ? n : at + BLOCK;
    float part = 0;
#pragma omp simd reduction(+ : part)
    for (int64_t i = at; i < end; i++)
      part += g3_expf(logits[i] - top);
    all += (double)part;
  }
  return (float)all;
}

static void gradient(void *out, bool bf16, const float *logits, int64_t n, float top, float factor,
                     int64_t target, float scale) {
  const bool here = target >= 0 && target < n;
  const float hit = here ? g3_expf(logits[target] - top) * factor - scale : 0;
  if (bf16) {
    g3_bf16 *to = out;
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
      to[i] = g3_f32_to_bf16(g3_expf(logits[i] - top) * factor);
  } else {
    float *to = out;
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
      to[i] = g3_expf(logits[i] - top) * factor;
  }
  if (here) g3_put(out, target, hit, bf16);
}

extern const g3_xent_kernels G3_KERNEL(g3_xent_kernels);
const g3_xent_kernels G3_KERNEL(g3_xent_kernels) = {.peak = peak, .sum = sum, .gradient = gradient};
