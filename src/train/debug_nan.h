/* --debug-nan: one NaN, put where it was asked for, to see what a run says and does. */
#ifndef G3_TRAIN_DEBUG_NAN_H
#define G3_TRAIN_DEBUG_NAN_H
#include "train/job.h"

/* Local, on every rank alike, once the job is open. Reads command.debug_nan into job->nan.
 * G3_EINVAL when it is not STEP[-LAST]:STAGE:MICRO:[LAYER.]TENSOR with a stage, a micro-batch of
 * the whole global batch, a layer of that stage (without one: its first, or its last for "final"
 * and "loss") and a tensor that there are; the message lists what there is. */
G3_MUST_USE g3_status g3_debug_nan_read(g3_job *job);

/* Whether one belongs into the coming step. Pure. */
static inline bool g3_debug_nan_due(const g3_job *job) {
  return job->nan.step <= job->step + 1 && job->step < job->nan.last;
}

/* A g3_see_fn; ctx is the job. Makes the first number of the tensor NaN where job->nan means it: on
 * tp rank 0. The caller watches in the right step only. */
g3_status g3_debug_nan_see(void *job, g3_stream *s, const g3_seen *seen);

#endif
