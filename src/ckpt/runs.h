/* What two dense pieces of one tensor share, as runs that lie without gaps in both. */
#ifndef G3_CKPT_RUNS_H
#define G3_CKPT_RUNS_H
#include "parallel/slice.h"

/* A walk over the runs: `len` elements at offset a in one and at b in the other. */
typedef struct {
  g3_slice one, two, common;
  int dims; /* of the outer dimensions, walked by `line` */
  int64_t line, lines;
  int64_t a, b, len;
} g3_ckpt_runs;

/* Pure. Starts a walk; g3_ckpt_run_next then gives one run a call, false at the end. */
g3_ckpt_runs g3_ckpt_runs_of(const g3_slice *one, const g3_slice *two);
bool g3_ckpt_run_next(g3_ckpt_runs *r);

#endif
