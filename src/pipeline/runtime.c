#include "pipeline/runtime.h"
#include "pipeline/borders.h"
#include "util/array.h"
#include <stdlib.h>

struct g3_runtime {
  g3_runtime_spec spec;
  g3_borders *borders;
  g3_tensor *buffer[G3_BORDER_KINDS]; /* [borders->count[kind]] */
  g3_xfer *xfers; /* [count of the lane], those of transfers set; groups are neighbours */
  g3_stage **stage; /* [stages of the schedule], those of this rank set by attach */
  g3_comm *pp;
  g3_stream *compute;
};

static const g3_lane *lane_of(const g3_runtime *r) {
  return &r->spec.schedule->lane[r->spec.rank];
}

static g3_tensor tensor_of(const g3_runtime *r, g3_border b) {
  return b.index < 0 ? g3_tensor_none() : r->buffer[b.kind][b.index];
}

static g3_status take_buffers(g3_runtime *r, g3_arenas *arenas) {
  for (int k = 0; k < G3_BORDER_KINDS; k++) {
    G3_TRY(G3_NEW_ARRAY(r->borders->count[k], &r->buffer[k]));
    for (int i = 0; i < r->borders->count[k]; i++)
      r->buffer[k][i] =
          g3_arena_tensor(arenas, G3_MEM_BOUNDARY, r->spec.dtype, r->spec.rows, r->spec.width);
  }
  return G3_OK;
}

static g3_status prepare_xfers(g3_runtime *r) {
  const g3_schedule *s = r->spec.schedule;
  const g3_lane *l = lane_of(r);
  G3_TRY(G3_NEW_ARRAY(l->count, &r->xfers));
  for (int i = 0; i < l->count; i++) {
    const g3_action a = l->act[i];
    const int other = g3_act_table[a.kind].other;
    if (other == 0) continue;
    const bool sends = a.kind == G3_ACT_SEND_F || a.kind == G3_ACT_SEND_B;
    r->xfers[i] = (g3_xfer){.dir = sends ? G3_SEND : G3_RECV,
                            .peer = s->rank_of_stage[a.stage + other],
                            .t = tensor_of(r, r->borders->use[i].from)};
  }
  return G3_OK;
}

g3_status g3_runtime_create(const g3_runtime_spec *spec, g3_arenas *arenas, g3_runtime **out) {
  g3_status st = G3_OK;
  g3_runtime *r = NULL;
  G3_TRY(G3_NEW_ARRAY(1, &r));
  r->spec = *spec;
  G3_TRY_TO(failed, st, g3_borders_make(spec->schedule, spec->rank, &r->borders));
  G3_TRY_TO(failed, st, G3_NEW_ARRAY(spec->schedule->stages, &r->stage));
  G3_TRY_TO(failed, st, take_buffers(r, arenas));
  G3_TRY_TO(failed, st, prepare_xfers(r));
  *out = r;
  return G3_OK;
failed:
  g3_runtime_destroy(r);
  return st;
}

void g3_runtime_destroy(g3_runtime *r) {
  if (!r) return;
  g3_borders_free(r->borders);
  for (int k = 0; k < G3_BORDER_KINDS; k++)
    free(r->buffer[k]);
  free(r->xfers);
  free(r->stage);
  free(r);
}

int g3_runtime_slots(const g3_runtime *r) {
  return r->borders->slots;
}

void g3_runtime_attach(g3_runtime *r, g3_stage *const *stages, int nstages, g3_comm *pp,
                       g3_stream *compute) {
  const g3_schedule *s = r->spec.schedule;
  G3_CHECK(pp->size == s->ranks && pp->rank == r->spec.rank,
           "a schedule for rank %d of %d was given rank %d of %d", r->spec.rank, s->ranks, pp->rank,
           pp->size);
  int given = 0;
  for (int i = 0; i < s->stages; i++) {
    r->stage[i] = NULL;
    if (s->rank_of_stage[i] != r->spec.rank) continue;
    G3_CHECK(given < nstages && stages[given]->index == i,
             "pipeline rank %d was given %d stages, of which number %d is not stage %d",
             r->spec.rank, nstages, given, i);
    r->stage[i] = stages[given++];
  }
  G3_CHECK(given == nstages, "pipeline rank %d was given %d stages, but has %d", r->spec.rank,
           nstages, given);
  r->pp = pp;
  r->compute = compute;
}

/* What g3_runtime_run was called with. */
typedef struct {
  g3_bucket_done done;
  g3_reduce_fn reduce;
  void *ctx;
} callbacks;

static g3_status run_forward(g3_runtime *r, int at, const callbacks *call) {
  (void)call;
  const g3_action a = lane_of(r)->act[at];
  const g3_border_use *u = &r->borders->use[at];
  g3_stage *stage = r->stage[a.stage];
  return stage->ops->forward(stage, r->compute, a.micro, u->slot, tensor_of(r, u->from),
                             tensor_of(r, u->to), r->borders->train);
}

static g3_status run_backward(g3_runtime *r, int at, const callbacks *call) {
  static const g3_bwd_part part[G3_ACT_KINDS] = {
      [G3_ACT_B] = G3_BWD_BOTH, [G3_ACT_I] = G3_BWD_INPUT, [G3_ACT_W] = G3_BWD_WEIGHT};
  const g3_action a = lane_of(r)->act[at];
  const g3_border_use *u = &r->borders->use[at];
  g3_stage *stage = r->stage[a.stage];
  return stage->ops->backward(stage, r->compute, a.micro, u->slot, tensor_of(r, u->from),
                              tensor_of(r, u->to), part[a.kind], u->last ? call->done : NULL,
                              call->ctx);
}

static int group_size(const g3_lane *l, int at) {
  int n = 1;
  while (at + n < l->count && l->act[at + n].group == l->act[at].group)
    n++;
  return n;
}

/* Called at a group's first transfer, for all of it. */
static g3_status run_exchange(g3_runtime *r, int at, const callbacks *call) {
  (void)call;
  return r->pp->ops->exchange(r->pp, r->compute, &r->xfers[at], group_size(lane_of(r), at));
}

static g3_status run_reduce(g3_runtime *r, int at, const callbacks *call) {
  if (!call->reduce) return G3_OK;
  return call->reduce(call->ctx, lane_of(r)->act[at].stage, r->compute);
}

typedef g3_status (*run_fn)(g3_runtime *, int at, const callbacks *);

static const run_fn run[G3_ACT_KINDS] = {
    [G3_ACT_F] = run_forward,       [G3_ACT_B] = run_backward,      [G3_ACT_I] = run_backward,
    [G3_ACT_W] = run_backward,      [G3_ACT_SEND_F] = run_exchange, [G3_ACT_RECV_F] = run_exchange,
    [G3_ACT_SEND_B] = run_exchange, [G3_ACT_RECV_B] = run_exchange, [G3_ACT_REDUCE] = run_reduce,
};

g3_status g3_runtime_run(g3_runtime *r, g3_bucket_done done, g3_reduce_fn reduce, void *ctx) {
  G3_CHECK(r->pp && r->compute, "a pipeline was run before its stages were attached");
  const callbacks call = {done, reduce, ctx};
  const g3_lane *l = lane_of(r);
  for (int i = 0; i < l->count;) {
    G3_TRY(run[l->act[i].kind](r, i, &call));
    i += g3_act_table[l->act[i].kind].other == 0 ? 1 : group_size(l, i);
  }
  return G3_OK;
}
