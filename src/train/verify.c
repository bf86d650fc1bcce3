#include "train/verify.h"
#include "train/step.h"
#include "util/array.h"
#include "util/half.h"
#include "util/log.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One parameter, or the worst of a row's. */
typedef struct {
  const g3_param *param; /* of the one-rank job; NULL: none yet */
  double difference, reference, rounding; /* norms */
  double ratio; /* of the layout to one rank, along the latter */
  bool tp_sum_fits; /* the sum over tp ranks would have been right */
  bool agree, good;
} finding;

typedef struct {
  finding grad, weight;
} row_findings;

static const double grad_bound = 1e-5, loss_bound = 1e-6, norm_bound = 1e-5;

static g3_tensor flat_of(const g3_job *job, bool grads) {
  return grads ? job->rank->grads : job->rank->params;
}

static float value_of(g3_tensor flat, int64_t i) {
  return flat.dtype == G3_BF16 ? g3_bf16_to_f32(((const g3_bf16 *)flat.data)[i])
                               : ((const float *)flat.data)[i];
}

/* sqrt(n) * 1e-3 * lr: where a gradient is nearly zero Adam's step is its sign, which is rounding.
 */
static double allowed(const finding *f, bool grads, double lr, int64_t n) {
  const double weight = grads ? 0.0 : 1e-3 * lr * sqrt((double)n);
  return grad_bound * f->reference + weight + 2.0 * f->rounding;
}

static finding compare(const g3_verify_jobs *jobs, const g3_param *p, const g3_whole *got,
                       bool grads, double lr) {
  const g3_tensor one = flat_of(jobs->one, grads);
  double d2 = 0.0, ref2 = 0.0, dot = 0.0, sum_d2 = 0.0, rounding2 = 0.0;
  for (int64_t i = 0; i < got->count; i++) {
    const double want = value_of(one, p->offset + i), d = got->value[i] - want;
    const double exact = jobs->exact ? value_of(flat_of(jobs->exact, grads), p->offset + i) : want;
    d2 += d * d;
    ref2 += want * want;
    dot += got->value[i] * want;
    sum_d2 += (got->tp_sum[i] - want) * (got->tp_sum[i] - want);
    rounding2 += (want - exact) * (want - exact);
  }
  finding f = {.param = p,
               .difference = sqrt(d2),
               .reference = sqrt(ref2),
               .rounding = sqrt(rounding2),
               .ratio = ref2 > 0.0 ? dot / ref2 : 1.0,
               .agree = got->agree};
  const double bound = allowed(&f, grads, lr, got->count);
  f.tp_sum_fits = p->whole_on_tp && sqrt(sum_d2) <= bound;
  f.good = f.difference <= bound && f.agree;
  return f;
}

static bool worse(const finding *a, const finding *b) {
  if (!b->param || a->good != b->good) return !b->param || !a->good;
  return !(a->difference / (a->reference + 1e-30) <= b->difference / (b->reference + 1e-30));
}

/* Gradients before the update, weights after it. */
static g3_status compare_all(const g3_verify_jobs *jobs, bool grads, double lr,
                             const g3_param_place *place, row_findings *rows) {
  const int tensors = g3_gpt_tensors(&jobs->layout->config->model);
  for (int number = 0; number < tensors; number++) {
    g3_whole whole = {.count = 0};
    const g3_param *p = NULL;
    int at = 0;
    g3_status st = G3_OK;
    if (jobs->one) {
      const g3_flat *flat = jobs->one->rank->flat;
      while (flat->param[at].number != number)
        at++;
      p = &flat->param[at];
      whole.count = g3_slice_count(&p->slice);
      st = G3_NEW_ARRAY(whole.count, &whole.value);
      if (st == G3_OK) st = G3_NEW_ARRAY(whole.count, &whole.tp_sum);
    }
    st = g3_comm_agree(jobs->layout->world, st);
    if (st == G3_OK)
      st = g3_gather_whole(jobs->layout, flat_of(jobs->layout, grads), number, &whole);
    if (st == G3_OK && p) {
      const finding f = compare(jobs, p, &whole, grads, lr);
      finding *row = grads ? &rows[place[at].row].grad : &rows[place[at].row].weight;
      if (worse(&f, row)) *row = f;
    }
    free(whole.value);
    free(whole.tp_sum);
    if (st != G3_OK) return st;
  }
  return G3_OK;
}

/* The axes that have so many ranks, "tp or dp"; or micro-batches. */
static void axes_of_size(const g3_job *job, int k, char *out, size_t size) {
  const g3_grid *g = &job->mesh->grid;
  const struct {
    const char *name;
    int64_t count;
  } axes[] = {{"tp", g->size[G3_TP]},
              {"dp", g->size[G3_DP]},
              {"pp", g->size[G3_PP]},
              {"micro-batches", job->rank->micros}};
  size_t used = 0;
  out[0] = '\0';
  for (size_t i = 0; i < sizeof axes / sizeof axes[0]; i++)
    if (axes[i].count == k && used < size)
      used += (size_t)snprintf(out + used, size - used, "%s%s", used ? " or " : "", axes[i].name);
}

/* What a wrong gradient looks like. */
static void explain(const g3_job *job, const finding *f) {
  char axes[96];
  const char *name = f->param->name;
  const double inverse = f->ratio > 0.0 ? 1.0 / f->ratio : 0.0;
  const int less = (int)lround(inverse), more = (int)lround(f->ratio);
  if (!f->agree) G3_INFO("  %s: ranks that should hold the same numbers do not", name);
  if (f->tp_sum_fits) {
    G3_INFO("  %s: the sum over tp is missing", name);
  } else if (less > 1 && fabs(inverse - less) < 0.02 * less) {
    axes_of_size(job, less, axes, sizeof axes);
    G3_INFO("  %s: 1/%d of what it should be: a sum over %s is missing", name, less,
            axes[0] ? axes : "something");
  } else if (more > 1 && fabs(f->ratio - more) < 0.02 * more) {
    axes_of_size(job, more, axes, sizeof axes);
    G3_INFO("  %s: %d times what it should be: summed once too often over %s", name, more,
            axes[0] ? axes : "something");
  } else {
    G3_INFO("  %s: %.3g times one rank's, and not along it", name, f->ratio);
  }
}

static bool say_scalar(const char *what, double got, double want, double exact, double bound) {
  const double difference = fabs(got - want),
               allowed_difference = bound * fabs(want) + 2.0 * fabs(want - exact);
  const bool good = difference <= allowed_difference;
  G3_INFO("%-28s %.9g, one rank %.9g, relative difference %.1e (allowed %.1e): %s", what, got, want,
          difference / fabs(want), allowed_difference / fabs(want), good ? "ok" : "WRONG");
  return good;
}

static bool say_rows(const g3_verify_jobs *jobs, const row_findings *rows, double lr) {
  bool good = true;
  const finding *first = NULL;
  G3_INFO("%-28s %12s %9s %9s %12s %9s  %s", "worst parameter of each row", "gradient |d|",
          "allowed", "ratio", "weight |d|", "allowed", "verdict");
  for (int r = 0; r < G3_ROWS; r++) {
    const finding *g = &rows[r].grad, *w = &rows[r].weight;
    if (!g->param) continue;
    const int64_t n = g3_slice_count(&g->param->slice), m = g3_slice_count(&w->param->slice);
    const bool row_good = g->good && w->good;
    G3_INFO("%-28s %12.2e %9.1e %9.6f %12.2e %9.1e  %s",
            g->good && !w->good ? w->param->name : g->param->name, g->difference / g->reference,
            allowed(g, true, lr, n) / g->reference, g->ratio, w->difference,
            allowed(w, false, lr, m), row_good ? "ok" : "WRONG");
    good = good && row_good;
    if (!row_good && !first) first = g->good ? w : g;
  }
  for (int r = 0; r < G3_ROWS; r++) {
    if (rows[r].grad.param && !rows[r].grad.good) explain(jobs->layout, &rows[r].grad);
  }
  if (first) G3_INFO("first parameter that differs: %s", first->param->name);
  return good;
}

static g3_status backward(const g3_verify_jobs *jobs) {
  G3_TRY(g3_step_backward(jobs->layout));
  g3_status st = jobs->one ? g3_step_backward(jobs->one) : G3_OK;
  if (st == G3_OK && jobs->exact) st = g3_step_backward(jobs->exact);
  return g3_comm_agree(jobs->layout->world, st);
}

static g3_status read_places(const g3_verify_jobs *jobs, g3_param_place **place) {
  g3_param *params;
  int n;
  if (!jobs->one) return G3_OK;
  const g3_rank *r = jobs->one->rank;
  G3_TRY(g3_gpt_params(&r->config->model, &r->part, &params, place, &n));
  free(params);
  return G3_OK;
}

g3_status g3_verify_step(const g3_verify_jobs *jobs, bool *good) {
  g3_comm *world = jobs->layout->world;
  g3_param_place *place = NULL;
  row_findings rows[G3_ROWS];
  g3_step_result got, want = {0}, exact;
  g3_status st;
  int64_t verdict = 1;
  memset(rows, 0, sizeof rows);
  G3_TRY(g3_comm_agree(world, read_places(jobs, &place)));
  G3_TRY_TO(done, st, backward(jobs));
  G3_TRY_TO(done, st, compare_all(jobs, true, 0.0, place, rows));
  g3_step_update(jobs->layout, &got);
  if (jobs->one) g3_step_update(jobs->one, &want);
  exact = want;
  if (jobs->exact) g3_step_update(jobs->exact, &exact);
  G3_TRY_TO(done, st, compare_all(jobs, false, got.lr, place, rows));
  if (jobs->one) {
    G3_INFO("step %lld", (long long)jobs->layout->step);
    const bool loss = say_scalar("loss", got.loss, want.loss, exact.loss, loss_bound);
    const bool norm =
        say_scalar("gradient norm", got.grad_norm, want.grad_norm, exact.grad_norm, norm_bound);
    verdict = say_rows(jobs, rows, got.lr) && loss && norm;
  }
  st = world->ops->host_broadcast(world, &verdict, sizeof verdict, 0);
  *good = verdict != 0;
done:
  free(place);
  return st;
}
