/* Schedules from and to strings, for tests. */
#ifndef G3_TESTS_SCHED_TEXT_H
#define G3_TESTS_SCHED_TEXT_H
#include "pipeline/schedule.h"

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

#endif
