#include "parallel/reduce.h"
#include "parallel/tree.h"
#include "util/array.h"
#include "util/fault.h"
#include <stdlib.h>

struct g3_reducer {
  g3_reducer_spec spec;
  g3_comm *tp, *dp, *ends; /* of the mesh; ends may be NULL */
  g3_event *ready; /* on compute: gradients are there; on side: sums are */
  bool *started; /* [nbuckets], in this step */
};

g3_status g3_reducer_create(const g3_reducer_spec *spec, g3_reducer **out) {
  const g3_flat *f = spec->flat;
  G3_CHECK(g3_tensor_count(spec->grads) == f->count && spec->grads.dtype == G3_F32 &&
               g3_tensor_count(spec->params) == f->count,
           "gradients and parameters of a flat space of %lld elements have %lld and %lld",
           (long long)f->count, (long long)g3_tensor_count(spec->grads),
           (long long)g3_tensor_count(spec->params));
  g3_status st;
  g3_reducer *r = NULL;
  G3_TRY_TO(done, st, G3_NEW_ARRAY(1, &r));
  r->spec = *spec;
  r->tp = g3_mesh_over(spec->mesh, 1u << G3_TP);
  r->dp = g3_mesh_over(spec->mesh, 1u << G3_DP);
  r->ends = spec->mesh->ends;
  G3_CHECK(r->dp->size == f->dp, "a flat space for dp %d over %d data-parallel ranks", f->dp,
           r->dp->size);
  G3_TRY_TO(done, st, G3_NEW_ARRAY(f->nbuckets, &r->started));
  G3_TRY_TO(done, st, spec->dev->ops->event_create(spec->dev, &r->ready));
  *out = r;
  r = NULL;
done:
  g3_reducer_destroy(r);
  return st;
}

void g3_reducer_destroy(g3_reducer *r) {
  if (!r) return;
  if (r->ready) r->spec.dev->ops->event_destroy(r->ready);
  free(r->started);
  free(r);
}

/* What comes next on `later` starts after what is now on `earlier`. */
static g3_status follow(const g3_reducer *r, g3_stream *later, g3_stream *earlier) {
  const g3_device_ops *ops = r->spec.dev->ops;
  G3_TRY(ops->record(earlier, r->ready));
  G3_TRY(ops->wait(later, r->ready));
  return G3_OK;
}

static g3_tensor elements(g3_tensor flat, int64_t offset, int64_t count) {
  return g3_tensor_1d(g3_tensor_at(flat, offset), flat.dtype, count);
}

/* The part of a bucket that this rank owns. */
static g3_tensor my_range(const g3_reducer *r, g3_tensor flat, const g3_bucket *b) {
  const int64_t range = b->count / r->dp->size;
  return elements(flat, b->offset + r->dp->rank * range, range);
}

static g3_status all_reduce(g3_comm *c, g3_stream *s, g3_tensor t) {
  if (c->size == 1 || g3_tensor_count(t) == 0) return G3_OK;
  return c->ops->all_reduce(c, s, t, G3_SUM);
}

static g3_status sum_over_dp(g3_reducer *r, const g3_bucket *b) {
  const g3_tensor all = elements(r->spec.grads, b->offset, b->count);
  if (r->dp->size == 1) return G3_OK;
  if (r->spec.tree)
    return (r->spec.zero ? g3_tree_reduce_scatter : g3_tree_all_reduce)(r->dp, r->spec.side, all,
                                                                        r->spec.scratch);
  if (!r->spec.zero) return all_reduce(r->dp, r->spec.side, all);
  return r->dp->ops->reduce_scatter(r->dp, r->spec.side, my_range(r, r->spec.grads, b), all);
}

/* What of a bucket this rank holds the sum of. */
static g3_tensor summed(const g3_reducer *r, const g3_bucket *b) {
  return r->spec.zero ? my_range(r, r->spec.grads, b)
                      : elements(r->spec.grads, b->offset, b->count);
}

/* The gradients of the embedding and of the head, each complete, of which the latter is ever the
 * earlier bucket: their sum into both. */
static g3_status join_ends(g3_reducer *r) {
  const g3_device_ops *ops = r->spec.dev->ops;
  const g3_bucket *tied[2] = {NULL, NULL};
  int n = 0;
  for (int b = 0; b < r->spec.flat->nbuckets && n < 2; b++)
    if (r->spec.flat->bucket[b].sum_ends) tied[n++] = &r->spec.flat->bucket[b];
  if (n == 1 && r->ends) return all_reduce(r->ends, r->spec.side, summed(r, tied[0]));
  if (n < 2) return G3_OK;
  G3_TRY(ops->add(r->spec.side, summed(r, tied[0]), summed(r, tied[1])));
  return ops->copy(r->spec.side, summed(r, tied[1]), summed(r, tied[0]));
}

static g3_status start(g3_reducer *r, int bucket) {
  const g3_bucket *b = &r->spec.flat->bucket[bucket];
  g3_stream *side = r->spec.side;
  r->started[bucket] = true;
  if (b->sum_ends && r->ends && g3_fault("tied-after-dp")) {
    if (r->ends->rank == 0) G3_TRY(sum_over_dp(r, b));
    return all_reduce(r->ends, side, my_range(r, r->spec.grads, b));
  }
  if (b->sum_ends && r->ends && !r->spec.tree)
    G3_TRY(all_reduce(r->ends, side, elements(r->spec.grads, b->offset, b->count)));
  if (!g3_fault("norm-not-summed"))
    G3_TRY(all_reduce(r->tp, side, elements(r->spec.grads, b->offset, b->sum_tp)));
  return sum_over_dp(r, b);
}

g3_status g3_reducer_bucket(void *ctx, int bucket, g3_stream *compute) {
  g3_reducer *r = ctx;
  const g3_flat *f = r->spec.flat;
  G3_CHECK(bucket >= 0 && bucket < f->nbuckets && !r->started[bucket] &&
               !f->bucket[bucket].sum_ends,
           "bucket %d of %d is finished twice in a step, or is tied and left to the flush", bucket,
           f->nbuckets);
  G3_TRY(follow(r, r->spec.side, compute));
  G3_TRY(start(r, bucket));
  return G3_OK;
}

g3_status g3_reducer_flush(g3_reducer *r, g3_stream *compute) {
  G3_TRY(follow(r, r->spec.side, compute));
  for (int b = 0; b < r->spec.flat->nbuckets; b++) {
    if (!r->started[b]) G3_TRY(start(r, b));
    r->started[b] = false;
  }
  if (r->spec.tree) G3_TRY(join_ends(r));
  G3_TRY(follow(r, compute, r->spec.side));
  return G3_OK;
}

g3_status g3_reducer_gather(g3_reducer *r, g3_stream *compute) {
  if (!r->spec.zero || r->dp->size == 1) return G3_OK;
  const g3_flat *f = r->spec.flat;
  G3_TRY(follow(r, r->spec.side, compute));
  for (int b = 0; b < f->nbuckets; b++)
    G3_TRY(r->dp->ops->all_gather(r->dp, r->spec.side,
                                  elements(r->spec.params, f->bucket[b].offset, f->bucket[b].count),
                                  my_range(r, r->spec.params, &f->bucket[b])));
  G3_TRY(follow(r, compute, r->spec.side));
  return G3_OK;
}
