/* Faults seeded on purpose, to see that `gpt3d verify` finds them: only in a build with
 * GPT3D_FAULTS, where the environment's GPT3D_FAULT names one. In any other build g3_fault is the
 * constant false. */
#ifndef G3_UTIL_FAULT_H
#define G3_UTIL_FAULT_H
#include <stdbool.h>

#ifdef GPT3D_FAULTS
#include <stdlib.h>
#include <string.h>
static inline bool g3_fault(const char *name) {
  const char *seeded = getenv("GPT3D_FAULT");
  return seeded && strcmp(seeded, name) == 0;
}
#else
#define g3_fault(name) false
#endif

#endif
