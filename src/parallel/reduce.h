/* Data-parallel gradient reduction in buckets, started as each bucket's last gradient is ready, and
 * the gathering of updated weights (ZeRO stage 1: Rajbhandari et al., 2020, section 5). */
#ifndef G3_PARALLEL_REDUCE_H
#define G3_PARALLEL_REDUCE_H
#include "parallel/flat.h"
#include "parallel/mesh.h"

typedef struct g3_reducer g3_reducer;

typedef struct {
  const g3_flat *flat; /* borrowed, as everything here */
  g3_tensor grads; /* f32 [flat->count] */
  g3_tensor params; /* [flat->count], f32 or bf16 */
  const g3_mesh *mesh; /* tp, dp and ends are used */
  g3_device *dev;
  g3_stream *side; /* reductions run here */
  bool zero; /* true: reduce-scatter and gather; false: all-reduce */
  bool tree; /* sums over dp along trees (parallel/tree.h), and the tied embedding's two gradients
                last of all, whether they lie on two ranks or on one */
  g3_tensor scratch; /* f32, with tree and dp > 1: half of the largest bucket */
} g3_reducer_spec;

/* Local. */
G3_MUST_USE g3_status g3_reducer_create(const g3_reducer_spec *spec, g3_reducer **out);
void g3_reducer_destroy(g3_reducer *r);

/* Collective over dp (and tp where a bucket has sum_tp). The bucket's gradients are enqueued on
 * `compute`: its reduction may start. The type is that of g3_bucket_done, ctx a g3_reducer. */
G3_MUST_USE g3_status g3_reducer_bucket(void *ctx, int bucket, g3_stream *compute);

/* Collective over dp, tp and ends. Reduces what g3_reducer_bucket was not told of (the tied
 * embedding: first over the ends, then over dp; with tree the other way round), and makes `compute`
 * wait for all. Afterwards rank d's range of each bucket (zero), or everything, holds the sum;
 * called once a step. */
G3_MUST_USE g3_status g3_reducer_flush(g3_reducer *r, g3_stream *compute);

/* Collective over dp. With zero: gathers each bucket's updated ranges. */
G3_MUST_USE g3_status g3_reducer_gather(g3_reducer *r, g3_stream *compute);

#endif
