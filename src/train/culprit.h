/* Where a step that was skipped went wrong. */
#ifndef G3_TRAIN_CULPRIT_H
#define G3_TRAIN_CULPRIT_H
#include "train/job.h"

/* Collective over world, after a step that was skipped. Computes the step once more, looking at
 * every tensor on the way, and has rank 0 say which was not finite first (in the order weights,
 * forward by micro-batch and layer, backward, gradients), on which rank, stage and layer, of which
 * sample, and where the samples of that micro-batch lie in the data and its documents. */
G3_MUST_USE g3_status g3_culprit_report(g3_job *job);

#endif
