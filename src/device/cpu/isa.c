#include "device/cpu/isa.h"
#include <stdlib.h>
#include <string.h>

static g3_isa detect(void) {
#ifdef __x86_64__
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512cd"))
    return G3_ISA_V4;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("bmi2"))
    return G3_ISA_V3;
#endif
  return G3_ISA_V2;
}

g3_isa g3_cpu_isa(void) {
  static const char *const names[G3_ISA_COUNT] = {"v2", "v3", "v4"};
  const g3_isa best = detect();
  const char *want = getenv("GPT3D_ISA");
  for (int i = 0; want && i < (int)best; i++)
    if (strcmp(want, names[i]) == 0) return (g3_isa)i;
  return best;
}
