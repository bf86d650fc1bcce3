#include "pipeline/schedule.h"
#include "util/array.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* A stage does at most this many actions a micro-batch: I, W, F and four transfers. */
enum { ACTIONS_PER_MICRO = 8 };

g3_status g3_sched_new(int ranks, int stages, int micros, g3_schedule **out) {
  if (ranks < 1 || stages < 1 || micros < 1)
    return G3_FAIL(G3_EINVAL,
                   "a schedule wants at least 1 rank, 1 stage and 1 micro-batch, but got %d, %d "
                   "and %d",
                   ranks, stages, micros);
  int64_t actions;
  if (!g3_mul_ok((int64_t)stages * micros, ACTIONS_PER_MICRO, &actions) || actions > INT_MAX)
    return G3_FAIL(G3_EINVAL, "a schedule of %d stages and %d micro-batches is too long; use fewer",
                   stages, micros);
  g3_status st = G3_OK;
  g3_schedule *s = NULL;
  G3_TRY(G3_NEW_ARRAY(1, &s));
  *s = (g3_schedule){.ranks = ranks, .stages = stages, .micros = micros};
  G3_TRY_TO(failed, st, G3_NEW_ARRAY(stages, &s->rank_of_stage));
  G3_TRY_TO(failed, st, G3_NEW_ARRAY(ranks, &s->lane));
  *out = s;
  return G3_OK;
failed:
  g3_sched_free(s);
  return st;
}

void g3_sched_free(g3_schedule *s) {
  if (!s) return;
  for (int r = 0; s->lane && r < s->ranks; r++)
    free(s->lane[r].act);
  free(s->lane);
  free(s->rank_of_stage);
  free(s);
}

g3_status g3_lane_add(g3_lane *l, g3_action a) {
  if (l->count == l->room) {
    const int64_t room = l->room ? (int64_t)l->room * 2 : 16;
    if (room > INT_MAX) return G3_FAIL(G3_ENOMEM, "a list of %d actions cannot grow", l->room);
    g3_action *act = NULL;
    G3_TRY(G3_NEW_ARRAY(room, &act));
    if (l->count) memcpy(act, l->act, (size_t)l->count * sizeof *act);
    free(l->act);
    l->act = act;
    l->room = (int)room;
  }
  l->act[l->count++] = a;
  return G3_OK;
}

g3_status g3_sched_make(const char *kind, const g3_sched_shape *shape, g3_schedule **out) {
  g3_status st = G3_OK;
  g3_schedule *s = NULL;
  G3_TRY(g3_sched_generate(kind, shape, &s));
  G3_TRY_TO(failed, st, g3_sched_lower(s));
  g3_sched_fuse(s);
  G3_TRY_TO(failed, st, g3_sched_check(s, NULL));
  *out = s;
  return G3_OK;
failed:
  g3_sched_free(s);
  return st;
}
