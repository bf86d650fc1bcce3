/* Schedules from and to strings, and disturbed ones, for tests. */
#ifndef G3_TESTS_SCHED_TOOLS_H
#define G3_TESTS_SCHED_TOOLS_H
#include "pipeline/schedule.h"
#include "util/philox.h"

/* Reads a schedule from a string. The caller frees it by g3_sched_free. */
static inline g3_status sched_from(const char *text, g3_schedule **out) {
  FILE *f = fmemopen((void *)(uintptr_t)text, __builtin_strlen(text), "r");
  G3_CHECK(f, "no memory for a file");
  const g3_status st = g3_sched_read(f, out);
  fclose(f);
  return st;
}

/* Writes a schedule into `buf`, as a string. */
static inline void sched_into(const g3_schedule *s, char *buf, size_t bytes) {
  FILE *f = fmemopen(buf, bytes, "w");
  G3_CHECK(f, "no memory for a file");
  G3_CHECK(g3_sched_write(f, s) == G3_OK, "%s", g3_last_error());
  G3_CHECK((size_t)ftell(f) < bytes, "the schedule does not fit into %zu bytes", bytes);
  fclose(f);
}

/* Exchanges a few neighbours in each lane and puts transfers into other groups; the same for the
 * same seed. Most of what comes out is wrong, some of it can run. */
static inline void sched_disturb(g3_schedule *s, uint32_t seed) {
  uint32_t n = 0;
  for (int r = 0; r < s->ranks; r++) {
    g3_lane *l = &s->lane[r];
    for (uint32_t swaps = g3_philox(seed, 0, n++, 0, 0, 0).w[0] % 4; swaps > 0; swaps--) {
      const int at = (int)(g3_philox(seed, 0, n++, 0, 0, 0).w[0] % (uint32_t)l->count);
      if (at == 0 || l->act[at].kind == G3_ACT_REDUCE) continue;
      const g3_action a = l->act[at];
      l->act[at] = l->act[at - 1];
      l->act[at - 1] = a;
    }
    int group = -1;
    for (int i = 0; i < l->count; i++) {
      if (l->act[i].group < 0) continue;
      const int before = i ? l->act[i - 1].group : -1;
      const bool join = before >= 0 && g3_philox(seed, 0, n++, 0, 0, 0).w[0] % 2;
      l->act[i].group = join ? group : ++group;
    }
  }
}

#endif
