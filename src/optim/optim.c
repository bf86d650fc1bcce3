#include "optim/optim.h"
#include "util/array.h"
#include "util/fault.h"
#include "util/fixed.h"
#include <stdlib.h>

struct g3_optim {
  g3_optim_spec spec;
  g3_segment *segment; /* what of the flat space is mine */
  int nsegments;
  g3_tensor sums, control;
  g3_tensor exact; /* f64 [1 + nsquares, G3_FIXED_SIZE]: the loss, then the squares; or none */
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
  const int64_t exact = (1 + (int64_t)spec->nsquares) * G3_FIXED_SIZE;
  o->exact = spec->exact ? take(arenas, G3_F64, exact) : g3_tensor_none();
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

/* Exact: the sum that entry `number` of the squares, or the loss (-1), is rounded from. */
static g3_tensor exact_entry(const g3_optim *o, int number) {
  return g3_tensor_part(o->exact, 0, (1 + (int64_t)number) * G3_FIXED_SIZE, G3_FIXED_SIZE);
}

g3_tensor g3_optim_loss(const g3_optim *o) {
  return o->exact.data ? exact_entry(o, -1) : g3_tensor_part(o->sums, 0, G3_SUM_LOSS, 1);
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

g3_status g3_optim_clear(g3_optim *o, g3_stream *s) {
  G3_TRY(s->dev->ops->fill(s, o->sums, 0.0f));
  return o->exact.data ? s->dev->ops->fill(s, o->exact, 0.0f) : G3_OK;
}

static g3_status all_reduce(g3_comm *c, g3_stream *s, g3_tensor t) {
  return c->ops->all_reduce(c, s, t, G3_SUM);
}

/* Whole numbers are summed without rounding in any order, and rounded here, once. */
static g3_status sum_up_exact(g3_optim *o, g3_stream *s, g3_comm *world, bool loss_alone) {
  const int64_t all = g3_tensor_count(o->exact);
  const g3_tensor squares = g3_tensor_part(o->exact, 0, G3_FIXED_SIZE, all - G3_FIXED_SIZE);
  G3_TRY(all_reduce(world, s, loss_alone ? g3_optim_loss(o) : o->exact));
  G3_TRY(s->dev->ops->exact_value(s, g3_tensor_part(o->sums, 0, G3_SUM_LOSS, 1), g3_optim_loss(o)));
  if (loss_alone) return G3_OK;
  return s->dev->ops->exact_value(s, g3_tensor_part(o->sums, 0, G3_SUM_SQUARES, o->spec.nsquares),
                                  squares);
}

g3_status g3_optim_sum_up(g3_optim *o, g3_stream *s, g3_comm *world, bool loss_alone) {
  G3_TRY(all_reduce(world, s, loss_alone ? g3_tensor_part(o->sums, 0, G3_SUM_LOSS, 1) : o->sums));
  return o->exact.data ? sum_up_exact(o, s, world, loss_alone) : G3_OK;
}

static g3_status add_squares(g3_optim *o, g3_stream *s, int number, g3_tensor grads) {
  if (o->exact.data) return s->dev->ops->exact_sum(s, exact_entry(o, number), grads, true);
  return s->dev->ops->sum_squares(s, g3_tensor_part(o->sums, 0, G3_SUM_SQUARES + number, 1), grads);
}

g3_status g3_optim_squares(g3_optim *o, g3_stream *s) {
  if (!o->spec.counts_all) return G3_OK;
  for (int i = 0; i < o->nsegments; i++) {
    const g3_segment *part = &o->segment[i];
    const g3_param *p = &o->spec.flat->param[part->param];
    const bool counted_by_other = p->whole_on_tp && !o->spec.counts_tp;
    if (p->copy || (counted_by_other && !g3_fault("norm-counted-twice"))) continue;
    G3_TRY(add_squares(o, s, p->number, in_flat(o->spec.grads, part)));
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
