/* A pipeline schedule is data: a list of actions a rank, the same for runtime, check, plan and
 * picture. Generators emit compute only; one pass places transfers, one fuses them, one proves the
 * result. All pure: no MPI, no device, the same answer on every rank. */
#ifndef G3_PIPELINE_SCHEDULE_H
#define G3_PIPELINE_SCHEDULE_H
#include "pipeline/action.h"
#include "util/status.h"
#include <stdio.h>

typedef struct {
  g3_action *act;
  int count, room;
} g3_lane; /* what one pipeline rank does, in order */

typedef struct {
  int ranks, stages, micros;
  int *rank_of_stage; /* [stages] */
  g3_lane *lane; /* [ranks] */
} g3_schedule;

typedef struct {
  int ranks, chunks, micros; /* stages = ranks * chunks; stage s lives on rank s % ranks */
} g3_sched_shape;

/* Appends compute actions to the lanes of an empty schedule. */
typedef g3_status (*g3_sched_fn)(const g3_sched_shape *, g3_schedule *);

typedef struct {
  const char *name, *about; /* about: one line, for help */
  g3_sched_fn make;
} g3_sched_kind;

extern const g3_sched_kind g3_sched_kinds[]; /* "gpipe", "1f1b", "forward"; ends with a NULL name */

/* Local. Generates, lowers, fuses and checks: what comes back can run. Caller frees by
 * g3_sched_free. An unknown kind is G3_EINVAL and lists those known. */
G3_MUST_USE g3_status g3_sched_make(const char *kind, const g3_sched_shape *shape,
                                    g3_schedule **out);
void g3_sched_free(g3_schedule *s); /* NULL is fine */

/* The passes by themselves, for tests and tools. Local. */
G3_MUST_USE g3_status g3_sched_generate(const char *kind, const g3_sched_shape *shape,
                                        g3_schedule **out); /* compute only */

/* Places both ends of each transfer at once, from the sender's side, at the moment when the
 * sender's compute ends on a clock that runs by g3_act_info.cost. So all transfers have one common
 * order, in which no cycle of waits can be, and no rank waits for data before a compute that can do
 * without. A REDUCE of each stage follows at the end of its lane, in order of last backwards: it
 * may wait for other ranks (tied weights), so nothing of the pipeline may stand behind it. Each
 * transfer is a group of its own. Local. G3_EINVAL when the computes cannot be ordered; the
 * schedule is then unchanged. */
G3_MUST_USE g3_status g3_sched_lower(g3_schedule *s);
void g3_sched_fuse(g3_schedule *s); /* neighbouring transfers become one group */

/* Proves: every F, and every B or I + W, once (or F only); dependencies met; the transfers of each
 * pair of ranks in one order at both ends, and no wait cycle when sends block until received; a
 * REDUCE of each stage, with nothing but REDUCEs behind it. peak_live [ranks] (may be NULL) gets
 * the most micro-batches whose activations are kept at once, counting each stage's; 0 for F only.
 * Local. G3_EINVAL names rank and action. */
G3_MUST_USE g3_status g3_sched_check(const g3_schedule *s, int *peak_live);

/* Local. One rank a line: "0F0,0SEND_F0,..."; transfers of one group joined by '+'. G3_EIO when the
 * file cannot be written. */
G3_MUST_USE g3_status g3_sched_write(FILE *out, const g3_schedule *s);

/* Local. The inverse of g3_sched_write: reads to the end of the file, skipping lines that begin
 * with '#'. Groups are numbered anew. Says nothing about whether it can run: that is
 * g3_sched_check. G3_EFORMAT names line and action. */
G3_MUST_USE g3_status g3_sched_read(FILE *in, g3_schedule **out);

/* Local. A schedule with empty lanes and all stages on rank 0. G3_EINVAL when a count is not
 * positive or the actions would be more than an int counts. Caller frees by g3_sched_free. */
G3_MUST_USE g3_status g3_sched_new(int ranks, int stages, int micros, g3_schedule **out);

/* Local. Appends one action to a lane, growing it. */
G3_MUST_USE g3_status g3_lane_add(g3_lane *l, g3_action a);

#endif
