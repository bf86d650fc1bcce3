/* Whole parameters, or their gradients, put together on rank 0 from where they lie: for looking at
 * them, not for training. */
#ifndef G3_TRAIN_GATHER_H
#define G3_TRAIN_GATHER_H
#include "train/job.h"

/* One whole tensor as its owners hold it. */
typedef struct {
  float *value; /* [count] from the ranks that count: tp rank 0 for what is whole on tp, not the
                   tied copy */
  float *tp_sum; /* [count] the sum over tp ranks of what is whole on tp; zeros elsewhere */
  int64_t count;
  bool agree; /* every tp rank, and the tied copy, hold the same bits as the rank that counts */
} g3_whole;

/* Collective over world. Parameter `number` (in table order) of `flat`, a tensor over the flat
 * space (f32 or bf16) of which each data rank's own range counts. On rank 0 *out is filled, with
 * room for `count` elements given by the caller in value and tp_sum; elsewhere out is not looked
 * at. */
G3_MUST_USE g3_status g3_gather_whole(g3_job *job, g3_tensor flat, int number, g3_whole *out);

#endif
