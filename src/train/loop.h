/* The training loop. */
#ifndef G3_TRAIN_LOOP_H
#define G3_TRAIN_LOOP_H
#include "train/job.h"
#include "train/train.h"

/* Collective over world. Steps until train.steps or a signal, with evaluation, metrics, progress
 * and checkpoints as configured. *code is G3_EXIT_DONE or G3_EXIT_STOPPED. */
G3_MUST_USE g3_status g3_loop(g3_job *job, g3_exit *code);

#endif
