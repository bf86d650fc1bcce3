/* The optimizer's kernel. Serial; dense f32, and bf16 for `low`. */
#ifndef G3_DEVICE_CPU_KERNELS_ADAMW_H
#define G3_DEVICE_CPU_KERNELS_ADAMW_H
#include "device/cpu/isa.h"
#include <stddef.h>
#include <stdint.h>

/* device.h's g3_adamw_spec, with what depends on the step worked out. */
typedef struct {
  float beta1, beta2, one_minus_beta1, one_minus_beta2;
  float step; /* lr / (1 - beta1^t) */
  float root; /* 1 / sqrt(1 - beta2^t) */
  float eps;
  float keep; /* 1 - lr decay */
  float clip; /* factor on the gradient */
} g3_adamw_step;

typedef struct {
  /* n elements; low may be NULL. */
  void (*update)(float *p, uint16_t *low, float *m, float *v, const float *g, int64_t n,
                 const g3_adamw_step *step);
} g3_adamw_kernels;

/* The same kernels, compiled for each instruction set. */
extern const g3_adamw_kernels g3_adamw_kernels_v2, g3_adamw_kernels_v3, g3_adamw_kernels_v4;

/* The best of them that this processor runs. */
static inline const g3_adamw_kernels *g3_adamw(void) {
  static const g3_adamw_kernels *const of[G3_ISA_COUNT] = {
      &g3_adamw_kernels_v2, &g3_adamw_kernels_v3, &g3_adamw_kernels_v4};
  return of[g3_cpu_isa()];
}

#endif
