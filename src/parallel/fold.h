/* The gradients of samples, one after another, as sums along a binary tree: what a binary counter
 * does to its digits. A rank with twice as many samples makes one more level of the same tree. */
#ifndef G3_PARALLEL_FOLD_H
#define G3_PARALLEL_FOLD_H
#include "device/device.h"
#include "parallel/flat.h"

typedef struct {
  const g3_flat *flat; /* borrowed, as everything here */
  g3_tensor grads; /* f32 [flat->count]: of one sample; after the last one the sum of all */
  g3_tensor levels; /* f32 [g3_fold_levels(samples), flat->count]; none without levels */
  int64_t samples; /* of a step on this rank: a power of two */
} g3_fold;

/* Pure. Sums that wait at the same time, at most: log2(samples). */
int g3_fold_levels(int64_t samples);

/* Local. Takes in the bucket's gradients of sample `sample`, which come in order from 0, and clears
 * them for the next; after the last, grads holds the sum. */
G3_MUST_USE g3_status g3_fold_bucket(const g3_fold *f, g3_stream *s, int bucket, int64_t sample);

#endif
