#include "ckpt/runs.h"
#include <string.h>

g3_ckpt_runs g3_ckpt_runs_of(const g3_slice *one, const g3_slice *two) {
  g3_ckpt_runs r = {.one = *one, .two = *two};
  if (!g3_slice_meet(one, two, &r.common)) return r;
  const g3_slice *c = &r.common;
  int d = c->ndim - 1;
  r.len = c->count[d];
  while (d > 0 && c->count[d] == one->count[d] && c->count[d] == two->count[d])
    r.len *= c->count[--d];
  r.dims = d;
  r.lines = 1;
  for (int i = 0; i < d; i++)
    r.lines *= c->count[i];
  return r;
}

/* Where an element of the whole lies in a dense piece. */
static int64_t offset_in(const g3_slice *s, const int64_t *at) {
  int64_t off = 0;
  for (int d = 0; d < s->ndim; d++)
    off = off * s->count[d] + at[d] - s->start[d];
  return off;
}

bool g3_ckpt_run_next(g3_ckpt_runs *r) {
  if (r->line == r->lines) return false;
  int64_t at[G3_MAX_DIMS];
  memcpy(at, r->common.start, sizeof at);
  int64_t k = r->line++;
  for (int d = r->dims - 1; d >= 0; d--) {
    at[d] += k % r->common.count[d];
    k /= r->common.count[d];
  }
  r->a = offset_in(&r->one, at);
  r->b = offset_in(&r->two, at);
  return true;
}
