/* From computes to what can run: transfers, reductions, groups. */
#include "pipeline/schedule.h"
#include "util/array.h"
#include <stdlib.h>
#include <string.h>

/* The clock. Rank r has started its first next[r] computes; the last of them ends at end[r], or has
 * ended when end[r] is IDLE. */
enum { IDLE = -1 };

typedef struct {
  const g3_schedule *s;
  int64_t now;
  int *next; /* [ranks] */
  int64_t *end; /* [ranks] */
  bool *done; /* [2][stages][micros]: the forward, the backward has ended */
  g3_lane *lane; /* [ranks] what comes out */
  int *groups; /* [ranks] transfers so far */
} lowering;

static bool *ended(const lowering *l, bool backward, int stage, int micro) {
  const int64_t row = (int64_t)backward * l->s->stages + stage;
  return &l->done[row * l->s->micros + micro];
}

/* What must be given by the neighbour before `a` can start. W needs no more than its I, which
 * stands before it in the lane. */
static bool ready(const lowering *l, g3_action a) {
  const int from = a.kind == G3_ACT_F ? a.stage - 1 : a.stage + 1;
  if (!g3_act_table[a.kind].gives || from < 0 || from >= l->s->stages) return true;
  return *ended(l, a.kind != G3_ACT_F, from, a.micro);
}

static g3_status start_ready(lowering *l) {
  for (int r = 0; r < l->s->ranks; r++) {
    const g3_lane *from = &l->s->lane[r];
    if (l->end[r] != IDLE || l->next[r] == from->count) continue;
    const g3_action a = from->act[l->next[r]];
    if (!ready(l, a)) continue;
    G3_TRY(g3_lane_add(&l->lane[r], a));
    l->end[r] = l->now + g3_act_table[a.kind].cost;
    l->next[r]++;
  }
  return G3_OK;
}

/* Both ends at once: the transfers of all lanes have one common order, which is why no cycle of
 * waits can come about, fused or not. */
static g3_status transfer(lowering *l, int rank, g3_action a) {
  const bool forward = a.kind == G3_ACT_F;
  const int to = forward ? a.stage + 1 : a.stage - 1;
  if (to < 0 || to >= l->s->stages || l->s->rank_of_stage[to] == rank) return G3_OK;
  const int peer = l->s->rank_of_stage[to];
  const g3_action send = {forward ? G3_ACT_SEND_F : G3_ACT_SEND_B, a.stage, a.micro,
                          l->groups[rank]++};
  const g3_action recv = {forward ? G3_ACT_RECV_F : G3_ACT_RECV_B, to, a.micro, l->groups[peer]++};
  G3_TRY(g3_lane_add(&l->lane[rank], send));
  return g3_lane_add(&l->lane[peer], recv);
}

static g3_status end_due(lowering *l) {
  for (int r = 0; r < l->s->ranks; r++) {
    if (l->end[r] != l->now) continue;
    const g3_action a = l->s->lane[r].act[l->next[r] - 1];
    l->end[r] = IDLE;
    if (!g3_act_table[a.kind].gives) continue;
    *ended(l, a.kind != G3_ACT_F, a.stage, a.micro) = true;
    G3_TRY(transfer(l, r, a));
  }
  return G3_OK;
}

/* The next moment when a compute ends; false when none runs. */
static bool advance(lowering *l) {
  int64_t next = INT64_MAX;
  for (int r = 0; r < l->s->ranks; r++)
    if (l->end[r] != IDLE && l->end[r] < next) next = l->end[r];
  if (next == INT64_MAX) return false;
  l->now = next;
  return true;
}

static g3_status add_reduces(lowering *l) {
  int *last = NULL; /* [stages] where each one's last backward stands */
  G3_TRY(G3_NEW_ARRAY(l->s->stages, &last));
  g3_status st = G3_OK;
  for (int r = 0; r < l->s->ranks; r++) {
    const g3_lane *from = &l->s->lane[r];
    for (int i = 0; i < from->count; i++)
      last[from->act[i].stage] = i;
    for (int i = 0; i < from->count; i++) {
      const g3_action a = from->act[i];
      if (!g3_act_table[a.kind].backward || last[a.stage] != i) continue;
      const g3_action reduce = {G3_ACT_REDUCE, a.stage, -1, -1};
      G3_TRY_TO(done, st, g3_lane_add(&l->lane[r], reduce));
    }
  }
done:
  free(last);
  return st;
}

static g3_status run_clock(lowering *l) {
  do {
    G3_TRY(end_due(l));
    G3_TRY(start_ready(l));
  } while (advance(l));
  char text[G3_ACT_TEXT];
  for (int r = 0; r < l->s->ranks; r++)
    if (l->next[r] < l->s->lane[r].count)
      return G3_FAIL(G3_EINVAL,
                     "schedule, rank %d: %s waits for a compute of the neighbouring stage that "
                     "never comes; put the computes into an order that can run",
                     r, g3_act_text(l->s->lane[r].act[l->next[r]], text));
  return add_reduces(l);
}

static g3_status want_computes(const g3_schedule *s) {
  char text[G3_ACT_TEXT];
  for (int r = 0; r < s->ranks; r++)
    for (int i = 0; i < s->lane[r].count; i++) {
      const g3_action a = s->lane[r].act[i];
      if (!g3_act_table[a.kind].compute || a.stage < 0 || a.stage >= s->stages || a.micro < 0 ||
          a.micro >= s->micros)
        return G3_FAIL(G3_EINVAL,
                       "schedule, rank %d: lowering wants computes of stages 0 to %d and "
                       "micro-batches 0 to %d, but found %s",
                       r, s->stages - 1, s->micros - 1, g3_act_text(a, text));
    }
  return G3_OK;
}

static void swap_lanes(g3_schedule *s, g3_lane *lane) {
  for (int r = 0; r < s->ranks; r++) {
    const g3_lane old = s->lane[r];
    s->lane[r] = lane[r];
    lane[r] = old;
  }
}

g3_status g3_sched_lower(g3_schedule *s) {
  G3_TRY(want_computes(s));
  lowering l = {.s = s};
  g3_status st = G3_OK;
  G3_TRY_TO(done, st, G3_NEW_ARRAY(s->ranks, &l.next));
  G3_TRY_TO(done, st, G3_NEW_ARRAY(s->ranks, &l.end));
  G3_TRY_TO(done, st, G3_NEW_ARRAY(s->ranks, &l.groups));
  G3_TRY_TO(done, st, G3_NEW_ARRAY(s->ranks, &l.lane));
  G3_TRY_TO(done, st, G3_NEW_ARRAY((int64_t)2 * s->stages * s->micros, &l.done));
  for (int r = 0; r < s->ranks; r++)
    l.end[r] = IDLE;
  G3_TRY_TO(done, st, run_clock(&l));
  swap_lanes(s, l.lane);
done:
  for (int r = 0; l.lane && r < s->ranks; r++)
    free(l.lane[r].act);
  free(l.lane);
  free(l.done);
  free(l.groups);
  free(l.end);
  free(l.next);
  return st;
}

void g3_sched_fuse(g3_schedule *s) {
  for (int r = 0; r < s->ranks; r++) {
    int group = -1;
    bool inside = false;
    for (int i = 0; i < s->lane[r].count; i++) {
      g3_action *a = &s->lane[r].act[i];
      const bool moves = g3_act_table[a->kind].other != 0;
      if (moves) a->group = inside ? group : ++group;
      inside = moves;
    }
  }
}
