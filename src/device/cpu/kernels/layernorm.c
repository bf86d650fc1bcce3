#include "device/cpu/kernels/layernorm.h"
#include "device/cpu/kernels/vmath.h"
#include <math.h>

#define BODY static inline __attribute__((always_inline)) void

/* Two passes for the variance: a row stays in the first cache, and x - mean does not cancel. */
BODY forward_body(void *y, float *mean, float *rstd, const void *x, const void *w, const void *b,
                  int64_t n, bool bf16) {
  float sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; i++)
    sum += g3_get(x, i, bf16);
  const float m = sum / (float)n;
#pragma omp simd reduction(+ : squares)
  for (int64_t i = 0; i < n; i++) {
    const float d = g3_get(x, i, bf16) - m;
    squares += d * d;
  }
  const float r = 1.0f / sqrtf(squares / (float)n + 1e-5f);
#pragma omp simd
  for (int64_t i = 0; i < n; i++)
    g3_put(y, i, (g3_get(x, i, bf16) - m) * r * g3_get(w, i, bf16) + g3_get(b, i, bf16), bf16);
  *mean = m;
  *rstd = r;
}
static void forward(void *y, float *mean, float *rstd, const void *x, const void *w, const void *b,
                    int64_t n, bool bf16) {
  if (bf16)
    forward_body(y, mean, rstd, x, w, b, n, true);
  else
    forward_body(y, mean, rstd, x, w, b, n, false);
}

BODY input_body(void *dx, const void *dres, const void *dy, const void *x, const void *w,
                float mean, float rstd, int64_t n, bool bf16) {
  float sum_g = 0, sum_gz = 0;
#pragma omp simd reduction(+ : sum_g, sum_gz)
  for (int64_t i = 0; i < n; i++) {
    const float g = g3_get(dy, i, bf16) * g3_get(w, i, bf16);
    sum_g += g;
    sum_gz += g * ((g3_get(x, i, bf16) - mean) * rstd);
  }
  const float mean_g = sum_g / (float)n, mean_gz = sum_gz / (float)n;
  if (dres) {
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
      const float g = g3_get(dy, i, bf16) * g3_get(w, i, bf16);
      const float z = (g3_get(x, i, bf16) - mean) * rstd;
      g3_put(dx, i, g3_get(dres, i, bf16) + rstd * (g - mean_g - z * mean_gz), bf16);
    }
  } else {
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
      const float g = g3_get(dy, i, bf16) * g3_get(w, i, bf16);
      const float z = (g3_get(x, i, bf16) - mean) * rstd;
      g3_put(dx, i, rstd * (g - mean_g - z * mean_gz), bf16);
    }
  }
}
static void input(void *dx, const void *dres, const void *dy, const void *x, const void *w,
                  float mean, float rstd, int64_t n, bool bf16) {
  if (bf16)
    input_body(dx, dres, dy, x, w, mean, rstd, n, true);
  else
    input_body(dx, dres, dy, x, w, mean, rstd, n, false);
}

/* Columns are summed a stripe at a time, rows in order in blocks with their own partial sums, so
 * that rounding grows with the block and the number of blocks rather than with their product. */
enum { STRIPE = 64, ROWS = 32 };

BODY weight_stripe(float *dw, float *db, const void *dy, int64_t dy_stride, const void *x,
                   int64_t x_stride, const float *mean, const float *rstd, int64_t m, int64_t col,
                   int64_t n, bool bf16) {
  for (int64_t from = 0; from < m; from += ROWS) {
    const int64_t to = m - from < ROWS ? m : from + ROWS;
    float sum_w[STRIPE] = {0}, sum_b[STRIPE] = {0};
    for (int64_t r = from; r < to; r++) {
      const float shift = mean[r], scale = rstd[r];
      const int64_t at_dy = r * dy_stride + col, at_x = r * x_stride + col;
#pragma omp simd
      for (int64_t i = 0; i < n; i++) {
        const float g = g3_get(dy, at_dy + i, bf16);
        sum_w[i] += g * ((g3_get(x, at_x + i, bf16) - shift) * scale);
        sum_b[i] += g;
      }
    }
    for (int64_t i = 0; i < n; i++) {
      dw[col + i] += sum_w[i];
      db[col + i] += sum_b[i];
    }
  }
}

BODY weight_body(float *dw, float *db, const void *dy, int64_t dy_stride, const void *x,
                 int64_t x_stride, const float *mean, const float *rstd, int64_t m, int64_t n,
                 bool bf16) {
  int64_t col = 0;
  for (; col + STRIPE <= n; col += STRIPE)
    weight_stripe(dw, db, dy, dy_stride, x, x_stride, mean, rstd, m, col, STRIPE, bf16);
  if (col < n) weight_stripe(dw, db, dy, dy_stride, x, x_stride, mean, rstd, m, col, n - col, bf16);
}
static void weight(float *dw, float *db, const void *dy, int64_t dy_stride, const void *x,
                   int64_t x_stride, const float *mean, const float *rstd, int64_t m, int64_t n,
                   bool bf16) {
  if (bf16)
    weight_body(dw, db, dy, dy_stride, x, x_stride, mean, rstd, m, n, true);
  else
    weight_body(dw, db, dy, dy_stride, x, x_stride, mean, rstd, m, n, false);
}

const g3_layernorm_kernels G3_KERNEL(g3_layernorm_kernels) = {
    .forward = forward,
    .input = input,
    .weight = weight,
};
