#include "optim/optim.h"
#include "util/array.h"
#include "util/fault.h"
#include <stdlib.h>

struct g3_optim {
  g3_optim_spec spec;
  g3_segment *segment; /* what of the flat space is mine */
  int nsegments;
  g3_tensor sums, control;
  g3_tensor exp_avg, exp_avg_sq, master;
};

static g3_tensor take(g3_arenas *a, g3_dtype t, int64_t count) {
  return g3_tensor_as_1d(g3_arena_tensor(a, G3_MEM_OPTIM, t, count, 1));
}

g3_status g3_optim_create(const g3_optim_spec *spec, g3_arenas *arenas, g3_optim **out) {
  const int64_t mine = g3_flat_shard_count(spec->flat, spec->parts);
  g3_optim *o;
  G3_TRY(G3_NEW_ARRAY(1, &o));
  o->spec = *spec;
  const g3_status st =
      g3_flat_segments(spec->flat, spec->parts, spec->index, &o->segment, &o->nsegments);
  if (st != G3_OK) {
    free(o);
    return g3_trace_up(st, __FILE__, __LINE__);
  }
  o->sums = take(arenas, G3_F64, (int64_t)G3_SUM_SQUARES + spec->nsquares);
  o->control = take(arenas, G3_U8, sizeof(g3_control));
  o->exp_avg = take(arenas, G3_F32, mine);
  o->exp_avg_sq = take(arenas, G3_F32, mine);
  o->master = spec->params.dtype == G3_F32 ? g3_tensor_none() : take(arenas, G3_F32, mine);
  *out = o;
  return G3_OK;
}

void g3_optim_destroy(g3_optim *o) {
  if (!o) return;
  free(o->segment);
  free(o);
}

g3_tensor g3_optim_sums(const g3_optim *o) {
  return o->sums;
}

g3_tensor g3_optim_control(const g3_optim *o) {
  return o->control;
}

g3_tensor g3_optim_exp_avg(const g3_optim *o) {
  return o->exp_avg;
}

g3_tensor g3_optim_exp_avg_sq(const g3_optim *o) {
  return o->exp_avg_sq;
}

g3_tensor g3_optim_master(const g3_optim *o) {
  return o->master;
}

const g3_segment *g3_optim_segments(const g3_optim *o, int *n) {
  *n = o->nsegments;
  return o->segment;
}

/* A segment within a tensor over the flat space, and within one over the shard. */
static g3_tensor in_flat(g3_tensor t, const g3_segment *s) {
  return g3_tensor_part(t, 0, s->flat, s->count);
}

static g3_tensor in_shard(g3_tensor t, const g3_segment *s) {
  return g3_tensor_part(t, 0, s->shard, s->count);
}

g3_status g3_optim_adopt(g3_optim *o, g3_stream *s) {
  if (!o->master.data) return G3_OK;
  for (int i = 0; i < o->nsegments; i++) {
    const g3_segment *part = &o->segment[i];
    G3_TRY(s->dev->ops->cast(s, in_shard(o->master, part), in_flat(o->spec.params, part)));
  }
  return G3_OK;
}

g3_status g3_optim_squares(g3_optim *o, g3_stream *s) {
  if (!o->spec.counts_all) return G3_OK;
  for (int i = 0; i < o->nsegments; i++) {
    const g3_segment *part = &o->segment[i];
    const g3_param *p = &o->spec.flat->param[part->param];
    const bool counted_by_other = p->whole_on_tp && !o->spec.counts_tp;
    if (p->copy || (counted_by_other && !g3_fault("norm-counted-twice"))) continue;
    const g3_tensor sum = g3_tensor_part(o->sums, 0, G3_SUM_SQUARES + p->number, 1);
    G3_TRY(s->dev->ops->sum_squares(s, sum, in_flat(o->spec.grads, part)));
  }
  return G3_OK;
}

g3_status g3_optim_step(g3_optim *o, g3_stream *s, const g3_optim_config *c, double lr) {
  const g3_device_ops *ops = s->dev->ops;
  const bool low = o->master.data != NULL;
  g3_adamw_spec adamw = {(float)lr, (float)c->beta1, (float)c->beta2, (float)c->eps, 0};
  G3_TRY(ops->control(s, o->control, o->sums, (float)c->clip));
  for (int i = 0; i < o->nsegments; i++) {
    const g3_segment *part = &o->segment[i];
    const g3_tensor params = in_flat(o->spec.params, part);
    adamw.decay = o->spec.flat->param[part->param].decay ? (float)c->weight_decay : 0;
    G3_TRY(ops->adamw(s, low ? in_shard(o->master, part) : params, low ? params : g3_tensor_none(),
                      in_shard(o->exp_avg, part), in_shard(o->exp_avg_sq, part),
                      in_flat(o->spec.grads, part), &adamw, o->control));
  }
  return G3_OK;
}
