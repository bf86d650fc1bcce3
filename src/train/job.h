/* A training job on this rank: everything that is opened once and used each step. */
#ifndef G3_TRAIN_JOB_H
#define G3_TRAIN_JOB_H
#include "data/data.h"
#include "parallel/reduce.h"
#include "plan/rank.h"
#include "train/rundir.h"
#include "train/threads.h"

/* Where --debug-nan puts a NaN. */
typedef struct {
  int64_t step, last; /* in these steps; 0: in none */
  int64_t stage, micro, layer; /* micro-batch of the global batch; layer of the whole model */
  g3_seen_kind kind;
} g3_debug_nan;

typedef struct {
  g3_settings *settings; /* borrowed */
  const g3_config *config; /* &settings->value */
  g3_comm *world; /* borrowed */
  g3_mesh *mesh;
  g3_thread_plan threads;
  g3_device *dev;
  g3_stream *compute, *side;
  void *memory[G3_MEM_CLASSES];
  size_t bytes[G3_MEM_CLASSES]; /* as planned, and allocated */
  size_t used[G3_MEM_CLASSES]; /* taken from the arenas once everything was laid out */
  int64_t resident_before; /* what the process held before that: VmRSS in bytes */
  g3_rank *rank;
  g3_reducer *reducer;
  g3_tokens *tokens;
  g3_split split; /* seq alone counts in evaluation of a whole file */
  g3_rundir dir;

  int64_t step; /* steps done */
  int64_t consumed; /* training samples seen */
  int64_t start_step; /* where this process began */
  int64_t bad_steps; /* skipped in a row */
  g3_debug_nan nan;
} g3_job;

/* Collective over world. Opens device, communicators, memory and data for settings that passed
 * their checks for this world; on failure every rank has the same status and what was opened is
 * closed. */
G3_MUST_USE g3_status g3_job_open(g3_settings *settings, g3_comm *world, g3_job *out);

/* The same for evaluation of all of the data, which needs two tokens and is not split. */
G3_MUST_USE g3_status g3_job_open_file(g3_settings *settings, g3_comm *world, g3_job *out);
void g3_job_close(g3_job *job);

#endif
