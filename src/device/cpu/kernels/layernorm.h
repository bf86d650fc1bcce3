/* LayerNorm kernels. All are serial; rows are dense, f32 or bf16; sums are in f32. */
#ifndef G3_DEVICE_CPU_KERNELS_LAYERNORM_H
#define G3_DEVICE_CPU_KERNELS_LAYERNORM_H
#include "device/cpu/isa.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
  /* One row: y = (x - mean) rstd w + b; writes mean and rstd. */
  void (*forward)(void *y, float *mean, float *rstd, const void *x, const void *w, const void *b,
                  int64_t n, bool bf16);
  /* One row: dx = dres + rstd (g - mean(g) - z mean(g z)), g = dy w, z = (x - mean) rstd; dres may
   * be NULL or dx. */
  void (*input)(void *dx, const void *dres, const void *dy, const void *x, const void *w,
                float mean, float rstd, int64_t n, bool bf16);
  /* n columns of m rows, stride elements apart: dw += sum of dy z, db += sum of dy, rows in order.
   */
  void (*weight)(float *dw, float *db, const void *dy, int64_t dy_stride, const void *x,
                 int64_t x_stride, const float *mean, const float *rstd, int64_t m, int64_t n,
                 bool bf16);
} g3_layernorm_kernels;

/* The same kernels, compiled for each instruction set. */
extern const g3_layernorm_kernels g3_layernorm_kernels_v2, g3_layernorm_kernels_v3,
    g3_layernorm_kernels_v4;

/* The best of them that this processor runs. */
static inline const g3_layernorm_kernels *g3_layernorm(void) {
  static const g3_layernorm_kernels *const of[G3_ISA_COUNT] = {
      &g3_layernorm_kernels_v2, &g3_layernorm_kernels_v3, &g3_layernorm_kernels_v4};
  return of[g3_cpu_isa()];
}

#endif
