#include "device/cpu/kernels/pointwise.h"
#include "device/cpu/kernels/vmath.h"
#include "util/philox.h"

/* Each body is inlined once with a constant type, so that its loop has no branch. */
#define BY_TYPE(bf16, body, ...)                                                                   \
  do {                                                                                             \
    if (bf16)                                                                                      \
      body(__VA_ARGS__, true);                                                                     \
    else                                                                                           \
      body(__VA_ARGS__, false);                                                                    \
  } while (0)
#define BODY static inline __attribute__((always_inline)) void

BODY fill_body(void *y, float value, int64_t n, bool bf16) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++)
    g3_put(y, i, value, bf16);
}
static void fill(void *y, float value, int64_t n, bool bf16) {
  BY_TYPE(bf16, fill_body, y, value, n);
}

static void narrow(void *y, const void *x, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++)
    g3_put(y, i, g3_get(x, i, false), true);
}

static void widen(void *y, const void *x, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++)
    g3_put(y, i, g3_get(x, i, true), false);
}

/* e^(-2u), u = sqrt(2 / pi) (x + 0.044715 x^3). */
static inline float gelu_exp(float x) {
  return g3_expf(-1.5957691216f * (x + 0.044715f * x * x * x));
}

/* 0.5 x (1 + tanh(u)) = x s, with s = 1 / (1 + e^(-2u)): no cancellation where tanh is near -1. */
BODY gelu_body(void *y, const void *x, int64_t n, bool bf16) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    const float xi = g3_get(x, i, bf16);
    g3_put(y, i, xi * (1.0f / (1.0f + gelu_exp(xi))), bf16);
  }
}
static void gelu(void *y, const void *x, int64_t n, bool bf16) {
  BY_TYPE(bf16, gelu_body, y, x, n);
}

/* (x s)' = s + x s (1 - s) (2u)', with 1 - s = s e^(-2u). Beyond 9.5 that is 0 or 1 but for 1e-30,
 * and within it nothing overflows. */
BODY gelu_bwd_body(void *dx, const void *dy, const void *x, int64_t n, bool bf16) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    float xi = g3_get(x, i, bf16);
    xi = xi > 9.5f ? 9.5f : xi;
    xi = xi < -9.5f ? -9.5f : xi;
    const float e = gelu_exp(xi);
    const float s = 1.0f / (1.0f + e);
    const float slope = 1.5957691216f * (1.0f + 3.0f * 0.044715f * xi * xi);
    g3_put(dx, i, g3_get(dy, i, bf16) * (s + xi * s * (e * s) * slope), bf16);
  }
}
static void gelu_bwd(void *dx, const void *dy, const void *x, int64_t n, bool bf16) {
  BY_TYPE(bf16, gelu_bwd_body, dx, dy, x, n);
}

BODY add_body(void *y, const void *x, int64_t n, bool bf16) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++)
    g3_put(y, i, g3_get(y, i, bf16) + g3_get(x, i, bf16), bf16);
}
static void add(void *y, const void *x, int64_t n, bool bf16) {
  BY_TYPE(bf16, add_body, y, x, n);
}

BODY add_wide_body(float *y, const void *x, int64_t n, bool bf16) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++)
    y[i] += g3_get(x, i, bf16);
}
static void add_wide(float *y, const void *x, int64_t n, bool bf16) {
  BY_TYPE(bf16, add_wide_body, y, x, n);
}

/* A row is worked on in pieces that stay in registers and the first cache. */
enum { PIECE = 256, BLOCKS = PIECE / 4 };

/* factor[c] = scale or 0 for the columns [from, from + PIECE) of a row. */
static void mask_piece(float *restrict factor, int64_t from, const g3_row_mask *mask) {
  float of_word[4][BLOCKS];
  const g3_row_mask m = *mask;
  const uint32_t first = (uint32_t)(from / 4);
#pragma omp simd
  for (int32_t i = 0; i < BLOCKS; i++) {
    const g3_philox_block b = g3_philox(m.key[0], m.key[1], first + (uint32_t)i, m.counter[0],
                                        m.counter[1], m.counter[2]);
    of_word[0][i] = b.w[0] >= m.threshold ? m.scale : 0.0f;
    of_word[1][i] = b.w[1] >= m.threshold ? m.scale : 0.0f;
    of_word[2][i] = b.w[2] >= m.threshold ? m.scale : 0.0f;
    of_word[3][i] = b.w[3] >= m.threshold ? m.scale : 0.0f;
  }
#pragma omp simd
  for (int32_t i = 0; i < BLOCKS; i++) {
    factor[4 * i] = of_word[0][i];
    factor[4 * i + 1] = of_word[1][i];
    factor[4 * i + 2] = of_word[2][i];
    factor[4 * i + 3] = of_word[3][i];
  }
}

BODY bias_mask_add_body(void *y, const void *x, const void *bias, const void *residual, int64_t n,
                        const g3_row_mask *mask, bool bf16) {
  float v[PIECE], factor[PIECE];
  for (int64_t from = 0; from < n; from += PIECE) {
    const int64_t count = n - from < PIECE ? n - from : PIECE;
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
      v[i] = g3_get(x, from + i, bf16);
    if (bias) {
#pragma omp simd
      for (int64_t i = 0; i < count; i++)
        v[i] += g3_get(bias, from + i, bf16);
    }
    if (mask) {
      mask_piece(factor, from, mask);
#pragma omp simd
      for (int64_t i = 0; i < count; i++)
        v[i] *= factor[i];
    }
    if (residual) {
#pragma omp simd
      for (int64_t i = 0; i < count; i++)
        v[i] += g3_get(residual, from + i, bf16);
    }
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
      g3_put(y, from + i, v[i], bf16);
  }
}
static void bias_mask_add(void *y, const void *x, const void *bias, const void *residual, int64_t n,
                          const g3_row_mask *mask, bool bf16) {
  BY_TYPE(bf16, bias_mask_add_body, y, x, bias, residual, n, mask);
}

const g3_pointwise_kernels G3_KERNEL(g3_pointwise_kernels) = {
    .fill = fill,
    .narrow = narrow,
    .widen = widen,
    .gelu = gelu,
    .gelu_bwd = gelu_bwd,
    .add = add,
    .add_wide = add_wide,
    .bias_mask_add = bias_mask_add,
};
