#include "parallel/tree.h"

enum { AT_ONCE = 32 }; /* ranges in one exchange */

/* Range p is still this rank's at a level when both agree in the bits below it. */
static bool held(int p, int rank, int bit) {
  return ((p ^ rank) & (bit - 1)) == 0;
}

static g3_tensor range_of(g3_tensor t, int64_t each, int64_t p) {
  return g3_tensor_1d(g3_tensor_at(t, p * each), t.dtype, each);
}

/* Ranges to and from the neighbour, AT_ONCE at a time. */
typedef struct {
  g3_xfer xfer[2 * AT_ONCE];
  int to_add[AT_ONCE];
  int sends, receives;
} batch;

static g3_status run(g3_comm *c, g3_stream *s, batch *b, g3_tensor t, g3_tensor scratch,
                     int64_t each) {
  if (b->sends + b->receives == 0) return G3_OK;
  g3_xfer all[2 * AT_ONCE];
  int n = 0;
  for (int i = 0; i < b->sends; i++)
    all[n++] = b->xfer[i];
  for (int i = 0; i < b->receives; i++)
    all[n++] = b->xfer[AT_ONCE + i];
  G3_TRY(c->ops->exchange(c, s, all, n));
  for (int i = 0; i < b->receives; i++)
    G3_TRY(s->dev->ops->add(s, range_of(t, each, b->to_add[i]), range_of(scratch, each, i)));
  b->sends = b->receives = 0;
  return G3_OK;
}

/* Halves what this rank holds: with the neighbour that differs in `bit`. */
static g3_status halve(g3_comm *c, g3_stream *s, g3_tensor t, g3_tensor scratch, int bit) {
  const int64_t each = g3_tensor_count(t) / c->size;
  const int peer = c->rank ^ bit;
  batch b = {.sends = 0};
  for (int p = 0; p < c->size; p++) {
    if (!held(p, c->rank, bit)) continue;
    if ((p & bit) != (c->rank & bit)) {
      b.xfer[b.sends++] = (g3_xfer){G3_SEND, peer, range_of(t, each, p)};
    } else {
      b.to_add[b.receives] = p;
      b.xfer[AT_ONCE + b.receives] = (g3_xfer){G3_RECV, peer, range_of(scratch, each, b.receives)};
      b.receives++;
    }
    if (b.sends == AT_ONCE || b.receives == AT_ONCE) G3_TRY(run(c, s, &b, t, scratch, each));
  }
  return run(c, s, &b, t, scratch, each);
}

g3_status g3_tree_reduce_scatter(g3_comm *c, g3_stream *s, g3_tensor t, g3_tensor scratch) {
  if (c->size == 1) return G3_OK;
  const int64_t n = g3_tensor_count(t);
  G3_CHECK((c->size & (c->size - 1)) == 0 && t.dtype == G3_F32 && g3_tensor_dense(t) &&
               n % c->size == 0 && scratch.dtype == G3_F32 && g3_tensor_count(scratch) >= n / 2,
           "a tree over %d ranks of %s: %lld elements with %lld of scratch", c->size, c->name,
           (long long)n, (long long)g3_tensor_count(scratch));
  for (int bit = 1; bit < c->size; bit *= 2)
    G3_TRY(halve(c, s, t, scratch, bit));
  return G3_OK;
}

g3_status g3_tree_all_reduce(g3_comm *c, g3_stream *s, g3_tensor t, g3_tensor scratch) {
  if (c->size == 1) return G3_OK;
  const int64_t each = g3_tensor_count(t) / c->size;
  G3_TRY(g3_tree_reduce_scatter(c, s, t, scratch));
  return c->ops->all_gather(c, s, g3_tensor_as_1d(t), range_of(t, each, c->rank));
}
