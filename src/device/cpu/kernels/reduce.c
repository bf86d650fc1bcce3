#include "device/cpu/kernels/reduce.h"
#include "device/cpu/kernels/vmath.h"

#define INLINE static inline __attribute__((always_inline))

/* As in layernorm.c: a stripe of columns, rows in order in blocks with their own partial sums. */
enum { STRIPE = 64, ROWS = 32, LANES = 32 };

INLINE void stripe(float *sum, const void *x, int64_t stride, int64_t m, int64_t col, int64_t n,
                   bool bf16) {
  for (int64_t from = 0; from < m; from += ROWS) {
    const int64_t to = m - from < ROWS ? m : from + ROWS;
    float part[STRIPE] = {0};
    for (int64_t r = from; r < to; r++) {
      const int64_t at = r * stride + col;
#pragma omp simd
      for (int64_t i = 0; i < n; i++)
        part[i] += g3_get(x, at + i, bf16);
    }
    for (int64_t i = 0; i < n; i++)
      sum[col + i] += part[i];
  }
}

INLINE void columns_body(float *sum, const void *x, int64_t stride, int64_t m, int64_t n,
                         bool bf16) {
  int64_t col = 0;
  for (; col + STRIPE <= n; col += STRIPE)
    stripe(sum, x, stride, m, col, STRIPE, bf16);
  if (col < n) stripe(sum, x, stride, m, col, n - col, bf16);
}
static void columns(float *sum, const void *x, int64_t stride, int64_t m, int64_t n, bool bf16) {
  if (bf16)
    columns_body(sum, x, stride, m, n, true);
  else
    columns_body(sum, x, stride, m, n, false);
}

INLINE double lanes_body(const void *x, int64_t n, bool square, bool bf16) {
  double lane[LANES] = {0};
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES) {
#pragma omp simd
    for (int64_t l = 0; l < LANES; l++) {
      const double v = (double)g3_get(x, i + l, bf16);
      lane[l] += square ? v * v : v;
    }
  }
  for (int64_t l = 0; i + l < n; l++) {
    const double v = (double)g3_get(x, i + l, bf16);
    lane[l] += square ? v * v : v;
  }
  double total = 0;
  for (int64_t l = 0; l < LANES; l++)
    total += lane[l];
  return total;
}
static double sum(const void *x, int64_t n, bool bf16) {
  return bf16 ? lanes_body(x, n, false, true) : lanes_body(x, n, false, false);
}
static double squares(const void *x, int64_t n, bool bf16) {
  return bf16 ? lanes_body(x, n, true, true) : lanes_body(x, n, true, false);
}

const g3_reduce_kernels G3_KERNEL(g3_reduce_kernels) = {
    .columns = columns,
    .sum = sum,
    .squares = squares,
};
