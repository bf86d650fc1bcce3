/* Softmax cross-entropy of one row over a range of the vocabulary. */
#ifndef G3_DEVICE_CPU_KERNELS_XENT_H
#define G3_DEVICE_CPU_KERNELS_XENT_H
#include <stdbool.h>
#include <stdint.h>

/* The functions of one instruction set. */
typedef struct {
  /* The largest of n logits; -inf when n = 0. NaN is passed over: the sum shows it. */
  float (*peak)(const float *logits, int64_t n);
  /* The sum of exp(logit - peak) over n logits. */
  float (*sum)(const float *logits, int64_t n, float peak);
  /* out = exp(logit - peak) * factor over n logits; f32 (may be logits itself) or bf16. When 0 <=
   * target < n, `scale` is taken from out[target] before rounding. */
  void (*gradient)(void *out, bool bf16, const float *logits, int64_t n, float peak, float factor,
                   int64_t target, float scale);
} g3_xent_kernels;

/* One table for each instruction set; the caller picks by g3_cpu_isa(). */
extern const g3_xent_kernels g3_xent_kernels_v2, g3_xent_kernels_v3, g3_xent_kernels_v4;

#endif
