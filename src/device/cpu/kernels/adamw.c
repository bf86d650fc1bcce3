#include "device/cpu/kernels/adamw.h"
#include "device/cpu/kernels/vmath.h"
#include <math.h>

/* p = p keep - step m / (sqrt(v) root + eps). */
static void update(float *p, uint16_t *low, float *m, float *v, const float *g, int64_t n,
                   const g3_adamw_step *step) {
  const g3_adamw_step s = *step;
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    const float gi = g[i] * s.clip;
    const float mi = s.beta1 * m[i] + s.one_minus_beta1 * gi;
    const float vi = s.beta2 * v[i] + s.one_minus_beta2 * (gi * gi);
    m[i] = mi;
    v[i] = vi;
    p[i] = p[i] * s.keep - s.step * mi / (sqrtf(vi) * s.root + s.eps);
  }
  if (low) {
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
      low[i] = g3_f32_to_bf16(p[i]);
  }
}

const g3_adamw_kernels G3_KERNEL(g3_adamw_kernels) = {
    .update = update,
};
