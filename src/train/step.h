/* One optimizer step, and evaluation. */
#ifndef G3_TRAIN_STEP_H
#define G3_TRAIN_STEP_H
#include "train/job.h"

typedef struct {
  double loss; /* mean over the tokens of the global batch */
  double grad_norm; /* before clipping */
  double lr;
  bool skipped; /* loss or norm was not finite, or beyond f32: nothing was updated */
  bool stop; /* a signal reached some rank */
} g3_step_result;

/* Collective over world. Trains on the next global batch and advances job->step and job->consumed.
 * A rank that cannot read its samples fails the step on all ranks, with its message and before any
 * update. No allocation of ours after the first call. */
G3_MUST_USE g3_status g3_step(g3_job *job, g3_step_result *out);

/* Its two halves. After the first, each rank's own range of each bucket (with ZeRO; else
 * everything) holds the sum of the gradients, not clipped; the second cannot fail but by ending the
 * job. */
G3_MUST_USE g3_status g3_step_backward(g3_job *job);
void g3_step_update(g3_job *job, g3_step_result *out);

/* Collective over world, after a step that was skipped: its forward and backward once more, with
 * the same samples, masks and weights, for looking at (g3_gpt_watch). Each rank's gradients stay
 * its own, nothing is reduced or updated, and the job's position stays as it is; meanwhile it is
 * that of before the step. */
G3_MUST_USE g3_status g3_step_again(g3_job *job);

/* Collective over world. Mean loss over the validation samples (the first data.eval_samples of
 * them, or all). The number of passes is the same on every rank; a rank that cannot read its
 * samples fails all, before the pass that needs them. */
G3_MUST_USE g3_status g3_evaluate(g3_job *job, double *loss);

/* The same over all tokens but the first of a job that was opened by g3_job_open_file. */
G3_MUST_USE g3_status g3_evaluate_file(g3_job *job, double *loss);

#endif
