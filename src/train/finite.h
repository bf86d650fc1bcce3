/* Whether numbers are finite: by their sum of squares, so that any device can say it, and no f32's
 * square overflows a float64. */
#ifndef G3_TRAIN_FINITE_H
#define G3_TRAIN_FINITE_H
#include "train/job.h"

/* Local. Whether all of a dense f32 or bf16 tensor is finite. Waits for the compute stream; the
 * step's sums are lost. */
G3_MUST_USE g3_status g3_finite(g3_job *job, g3_tensor t, bool *out);

/* Local. The first row of a dense [rows, columns] or [rows] that holds a number that is not finite,
 * or -1. Like g3_finite. */
G3_MUST_USE g3_status g3_finite_row(g3_job *job, g3_tensor t, int64_t *out);

/* Local. The first of n pieces of a checkpoint that is not finite, or NULL. Like g3_finite. */
G3_MUST_USE g3_status g3_finite_items(g3_job *job, const g3_ckpt_item *items, int n,
                                      const g3_ckpt_item **out);

#endif
