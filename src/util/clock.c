#include "util/clock.h"
#include "util/status.h"
#include <time.h>

double g3_now(void) {
  struct timespec t;
  G3_CHECK(clock_gettime(CLOCK_MONOTONIC, &t) == 0, "this machine has no monotonic clock");
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
