#include "util/fault.h"

#ifdef GPT3D_FAULTS
#include <stdlib.h>
#include <string.h>

static bool is_suspended;

bool g3_fault(const char *name) {
  const char *seeded = getenv("GPT3D_FAULT");
  return !is_suspended && seeded && strcmp(seeded, name) == 0;
}

void g3_fault_suspend(bool suspended) {
  is_suspended = suspended;
}

#endif
