/* Kernels that work element by element on dense runs of n elements, f32 or bf16. All are serial;
 * outputs may be inputs. */
#ifndef G3_DEVICE_CPU_KERNELS_POINTWISE_H
#define G3_DEVICE_CPU_KERNELS_POINTWISE_H
#include "device/cpu/isa.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The dropout mask of one row of hidden states, as device.h says. */
typedef struct {
  uint32_t key[2];
  uint32_t counter[3]; /* words 1 to 3; word 0 is the column / 4 */
  uint32_t threshold; /* a word below it drops its element */
  float scale; /* of what is kept */
} g3_row_mask;

typedef struct {
  void (*fill)(void *y, float value, int64_t n, bool bf16);
  void (*narrow)(void *y, const void *x, int64_t n); /* f32 to bf16 */
  void (*widen)(void *y, const void *x, int64_t n); /* bf16 to f32 */
  void (*gelu)(void *y, const void *x, int64_t n, bool bf16);
  void (*gelu_bwd)(void *dx, const void *dy, const void *x, int64_t n, bool bf16);
  void (*add)(void *y, const void *x, int64_t n, bool bf16); /* y += x */
  void (*add_wide)(float *y, const void *x, int64_t n, bool bf16); /* y, always f32, += x */
  /* y = residual + mask(x + bias); bias, residual and mask may be NULL. Columns from 0. */
  void (*bias_mask_add)(void *y, const void *x, const void *bias, const void *residual, int64_t n,
                        const g3_row_mask *mask, bool bf16);
} g3_pointwise_kernels;

/* The same kernels, compiled for each instruction set. */
extern const g3_pointwise_kernels g3_pointwise_kernels_v2, g3_pointwise_kernels_v3,
    g3_pointwise_kernels_v4;

/* The best of them that this processor runs. */
static inline const g3_pointwise_kernels *g3_pointwise(void) {
  static const g3_pointwise_kernels *const of[G3_ISA_COUNT] = {
      &g3_pointwise_kernels_v2, &g3_pointwise_kernels_v3, &g3_pointwise_kernels_v4};
  return of[g3_cpu_isa()];
}

#endif
