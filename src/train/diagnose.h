/* What a layout that computes something else has probably got wrong: the parameter and the axis. */
#ifndef G3_TRAIN_DIAGNOSE_H
#define G3_TRAIN_DIAGNOSE_H
#include "train/job.h"

/* How one parameter's gradient, or updated weight, compares with one rank's; norms are Euclidean.
 */
typedef struct {
  const g3_param *param; /* of the one-rank job; NULL: none yet */
  double difference, reference, rounding, allowed;
  double ratio; /* of the layout to one rank, along the latter */
  bool tp_sum_fits; /* the sum over tp ranks would have been right */
  bool agree; /* ranks that hold the same parameter hold the same bits */
  bool good;
} g3_finding;

/* A step's findings. */
typedef struct {
  g3_finding grad[G3_ROWS], weight[G3_ROWS]; /* the worst of each row of the parameter table */
  double cut_squares, whole_squares; /* of one rank's gradients: of what tp cuts, and of the rest */
  double loss, norm; /* the layout's */
  double one_loss, one_norm;
  bool loss_good, norm_good, data_good;
} g3_evidence;

/* Local; rank 0's voice. Prints what the evidence points to, one line each, and returns the
 * parameter that differs first, or NULL. `one` is the one-rank job before its update; it may be
 * run, and is left as it was but for its gradients. */
const char *g3_diagnose(const g3_job *layout, g3_job *one, const g3_evidence *e);

#endif
