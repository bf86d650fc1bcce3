/* Kernels that sum. All are serial; x is f32 or bf16. */
#ifndef G3_DEVICE_CPU_KERNELS_REDUCE_H
#define G3_DEVICE_CPU_KERNELS_REDUCE_H
#include "device/cpu/isa.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
  /* sum[n] += over the m rows of x, stride elements apart, rows in order. */
  void (*columns)(float *sum, const void *x, int64_t stride, int64_t m, int64_t n, bool bf16);
  /* Sums of n elements and of their squares in float64, the same bits on every instruction set: a
   * fixed number of lanes, and squares of f32 are exact in float64. */
  double (*sum)(const void *x, int64_t n, bool bf16);
  double (*squares)(const void *x, int64_t n, bool bf16);
} g3_reduce_kernels;

/* The same kernels, compiled for each instruction set. */
extern const g3_reduce_kernels g3_reduce_kernels_v2, g3_reduce_kernels_v3, g3_reduce_kernels_v4;

/* The best of them that this processor runs. */
static inline const g3_reduce_kernels *g3_reduce(void) {
  static const g3_reduce_kernels *const of[G3_ISA_COUNT] = {
      &g3_reduce_kernels_v2, &g3_reduce_kernels_v3, &g3_reduce_kernels_v4};
  return of[g3_cpu_isa()];
}

#endif
