/* The flat space of a rank's parameters: tensors in buckets, buckets in backward order, each bucket
 * cut into equal ranges for data parallelism and reduced and gathered in place. Pure arithmetic: no
 * memory, no ranks. */
#ifndef G3_PARALLEL_FLAT_H
#define G3_PARALLEL_FLAT_H
#include "parallel/slice.h"

enum { G3_FLAT_ALIGN = 128 }; /* elements: 256 bytes of bf16, 512 of f32 */

/* A parameter as one rank holds it. The model's table fills all but offset and bucket. */
typedef struct {
  char name[64]; /* "blocks.7.mlp.up.weight": the same in every layout */
  int number; /* in table order over the whole model: its place among the sums of squares */
  int group; /* what backward finishes together, counted in forward order; a bucket holds whole
                groups */
  g3_slice slice; /* the real elements that this rank holds */
  int64_t count; /* elements held, padding (always at the end) included */
  bool decay; /* weight decay applies */
  bool copy; /* the last stage's copy of a tied embedding: not counted, not saved */
  bool whole_on_tp; /* not cut over tp: counted and saved by tp rank 0 */
  bool sum_tp; /* its gradient must still be summed over tp (sequence parallelism) */
  bool sum_ends; /* ... over first and last stage (tied embedding); has a bucket of its own */
  int64_t offset; /* first element in the flat space, a multiple of G3_FLAT_ALIGN */
  int bucket;
} g3_param;

typedef struct {
  int64_t offset, count; /* elements; count is a multiple of dp * G3_FLAT_ALIGN */
  int64_t sum_tp; /* this many leading elements are summed over tp first */
  bool sum_ends; /* summed over first and last stage before the data-parallel reduction */
  int last_group; /* complete once backward has finished this group */
} g3_bucket;

typedef struct {
  g3_param *param; /* in the order given */
  int nparams;
  g3_bucket *bucket; /* in backward order */
  int nbuckets;
  int64_t count; /* elements in all */
  int dp;
} g3_flat;

/* Local. Lays out n parameters (in forward order, copied) for dp ranks; a bucket is closed at the
 * first end of a group at which it has `bucket_elements` or more. Inside a bucket those with sum_tp
 * come first. */
G3_MUST_USE g3_status g3_flat_create(const g3_param *params, int n, int dp, int64_t bucket_elements,
                                     g3_flat **out);
void g3_flat_destroy(g3_flat *f);

/* The bucket that is complete once backward has finished `group`, or -1. Tied buckets never are:
 * they are left to the flush. */
int g3_flat_finished(const g3_flat *f, int group);

/* A run of one parameter's real elements inside a range of the flat space. */
typedef struct {
  int param; /* index into f->param */
  int64_t start; /* first element within the parameter */
  int64_t count;
  int64_t flat; /* offset in the flat space */
  int64_t shard; /* offset in the owner's shard: its ranges of all buckets, one after another */
} g3_segment;

/* Elements in a shard of `parts`: the sum of bucket counts / parts. */
int64_t g3_flat_shard_count(const g3_flat *f, int parts);

/* Local. The segments that range `index` of `parts` owns (parts = 1: everything), bucket by bucket,
 * in the order of offsets. *out is freed by the caller with free(). Padding is in no segment. */
G3_MUST_USE g3_status g3_flat_segments(const g3_flat *f, int parts, int index, g3_segment **out,
                                       int *n);

#endif
