#include "plan/pieces.h"
#include "util/array.h"
#include <stdio.h>
#include <stdlib.h>

/* What a checkpoint holds of each parameter. */
typedef struct {
  const char *prefix;
  g3_tensor whole; /* 1-d: the memory that pieces lie in */
  bool by_shard; /* addressed by a segment's place in the shard, else by its place in the flat space
                  */
} source;

typedef struct {
  g3_ckpt_item *item;
  int count, room;
} list;

static g3_status add(list *l, const g3_ckpt_item *item) {
  if (l->count == l->room) {
    const int room = l->room ? 2 * l->room : 64;
    g3_ckpt_item *bigger;
    G3_TRY(G3_NEW_ARRAY(room, &bigger));
    for (int i = 0; i < l->count; i++)
      bigger[i] = l->item[i];
    free(l->item);
    l->item = bigger;
    l->room = room;
  }
  l->item[l->count++] = *item;
  return G3_OK;
}

/* A segment's elements as slices of the whole tensor, which lie one after another in memory. */
static g3_status add_segment(list *l, const source *from, const g3_param *p,
                             const g3_segment *seg) {
  g3_slice slices[G3_SLICES_OF_RANGE];
  const int n = g3_slice_range(&p->slice, seg->start, seg->count, slices);
  int64_t at = from->by_shard ? seg->shard : seg->flat;
  for (int i = 0; i < n; i++) {
    g3_ckpt_item item = {.slice = slices[i]};
    const int64_t count = g3_slice_count(&slices[i]);
    const int length = snprintf(item.name, sizeof item.name, "%s%s", from->prefix, p->name);
    G3_CHECK(length > 0 && length < (int)sizeof item.name, "the name %s is too long", p->name);
    item.local = g3_tensor_part(from->whole, 0, at, count);
    G3_TRY(add(l, &item));
    at += count;
  }
  return G3_OK;
}

static g3_status add_source(list *l, const g3_rank *r, const source *from, const g3_segment *seg,
                            int n, bool once) {
  if (!from->whole.data) return G3_OK;
  for (int i = 0; i < n; i++) {
    const g3_param *p = &r->flat->param[seg[i].param];
    const bool elsewhere = p->copy || (p->whole_on_tp && r->at.at[G3_TP] != 0);
    if (once && elsewhere) continue;
    G3_TRY(add_segment(l, from, p, &seg[i]));
  }
  return G3_OK;
}

enum { STATES = 3 };

static void state_sources(const g3_rank *r, source out[STATES]) {
  const bool zero = r->config->parallel.zero > 0;
  out[0] = (source){"optim/exp_avg/", g3_optim_exp_avg(r->optim), zero};
  out[1] = (source){"optim/exp_avg_sq/", g3_optim_exp_avg_sq(r->optim), zero};
  out[2] = (source){"optim/master/", g3_optim_master(r->optim), zero};
}

static g3_status add_weights(list *l, const g3_rank *r, int parts, int index, bool once) {
  g3_segment *seg;
  int n;
  G3_TRY(g3_flat_segments(r->flat, parts, index, &seg, &n));
  const source weights = {"model/", r->params, false};
  const g3_status st = add_source(l, r, &weights, seg, n, once);
  free(seg);
  return st;
}

static g3_status add_states(list *l, const g3_rank *r, int parts, int index, bool once) {
  g3_segment *seg;
  source sources[STATES];
  int n;
  state_sources(r, sources);
  G3_TRY(g3_flat_segments(r->flat, parts, index, &seg, &n));
  g3_status st = G3_OK;
  for (int i = 0; i < STATES && st == G3_OK; i++)
    st = add_source(l, r, &sources[i], seg, n, once);
  free(seg);
  return st;
}

static g3_status finish(list *l, g3_status st, g3_ckpt_item **out, int *n) {
  if (st != G3_OK) {
    free(l->item);
    return st;
  }
  *out = l->item;
  *n = l->count;
  return G3_OK;
}

g3_status g3_pieces_to_save(const g3_rank *r, g3_ckpt_item **out, int *n) {
  const int parts = r->grid.size[G3_DP], index = r->at.at[G3_DP];
  list l = {0};
  g3_status st = add_weights(&l, r, parts, index, true);
  if (st == G3_OK) st = add_states(&l, r, parts, index, true);
  return finish(&l, st, out, n);
}

g3_status g3_rank_load_items(const g3_rank *r, g3_ckpt_item **out, int *n) {
  const bool zero = r->config->parallel.zero > 0;
  list l = {0};
  g3_status st = add_weights(&l, r, 1, 0, false);
  if (st == G3_OK)
    st = add_states(&l, r, zero ? r->grid.size[G3_DP] : 1, zero ? r->at.at[G3_DP] : 0, false);
  return finish(&l, st, out, n);
}
