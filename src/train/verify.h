/* One step of a layout against one rank, parameter by parameter. */
#ifndef G3_TRAIN_VERIFY_H
#define G3_TRAIN_VERIFY_H
#include "train/gather.h"

/* The jobs that are compared. The references live on rank 0 of the layout's world and are NULL
 * elsewhere. */
typedef struct {
  g3_job *layout;
  g3_job *one; /* one rank, the same dtype */
  g3_job *exact; /* bf16 only: one rank in f32, which says how much rounding is usual; else NULL */
} g3_verify_jobs;

/* Collective over the layout's world. Runs one step on all jobs and compares: loss, gradient norm,
 * and for each row of the parameter table the gradient before clipping and the updated weight. Rank
 * 0 prints the table; *good is the verdict, on every rank. Bounds, with |.| the Euclidean norm over
 * a parameter of n elements: f32   gradient |d| <= 1e-5 |ref|;  weight |d| <= 1e-5 |ref| + 1e-3 lr
 * sqrt(n);  loss 1e-6, norm 1e-5 relative bf16  |d| <= 2 |bf16 on one rank - f32 on one rank|, of
 * the same step: two roundings of the same step may each be that far from the unrounded one; plus
 * the f32 bound. */
G3_MUST_USE g3_status g3_verify_step(const g3_verify_jobs *jobs, bool *good);

#endif
