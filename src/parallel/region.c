#include "parallel/region.h"

/* Where nothing moves, both names must be one buffer: the caller reads the other one. */
static void check_same(const g3_region *r, g3_tensor whole, g3_tensor part) {
  G3_CHECK(whole.data == part.data && g3_tensor_count(whole) == g3_tensor_count(part),
           "a region over %d ranks of %s whose hidden states are not cut moves nothing on the way "
           "in: whole and part are one buffer",
           r->tp->size, r->tp->name);
}

g3_status g3_region_enter(const g3_region *r, g3_stream *s, g3_tensor whole, g3_tensor part) {
  if (r->tp->size == 1 || !r->sequence) {
    check_same(r, whole, part);
    return G3_OK;
  }
  G3_TRY(r->tp->ops->all_gather(r->tp, s, whole, part));
  return G3_OK;
}

g3_status g3_region_leave(const g3_region *r, g3_stream *s, g3_tensor part, g3_tensor whole) {
  if (r->tp->size == 1 || !r->sequence) {
    check_same(r, whole, part);
    if (r->tp->size == 1) return G3_OK;
    G3_TRY(r->tp->ops->all_reduce(r->tp, s, whole, G3_SUM));
    return G3_OK;
  }
  G3_TRY(r->tp->ops->reduce_scatter(r->tp, s, part, whole));
  return G3_OK;
}
