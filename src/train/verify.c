#include "train/verify.h"
#include "train/diagnose.h"
#include "train/step.h"
#include "util/array.h"
#include "util/fault.h"
#include "util/half.h"
#include "util/log.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

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
static double allowed(const g3_finding *f, bool grads, double lr, int64_t n) {
  const double weight = grads ? 0.0 : 1e-3 * lr * sqrt((double)n);
  return grad_bound * f->reference + weight + 2.0 * f->rounding;
}

static g3_finding compare(const g3_verify_jobs *jobs, const g3_param *p, const g3_whole *got,
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
  g3_finding f = {.param = p,
                  .difference = sqrt(d2),
                  .reference = sqrt(ref2),
                  .rounding = sqrt(rounding2),
                  .ratio = ref2 > 0.0 ? dot / ref2 : 1.0,
                  .agree = got->agree};
  f.allowed = allowed(&f, grads, lr, got->count);
  f.tp_sum_fits = p->whole_on_tp && sqrt(sum_d2) <= f.allowed;
  f.good = f.difference <= f.allowed && f.agree;
  return f;
}

static bool worse(const g3_finding *a, const g3_finding *b) {
  if (!b->param || a->good != b->good) return !b->param || !a->good;
  return !(a->difference / (a->reference + 1e-30) <= b->difference / (b->reference + 1e-30));
}

/* Gradients before the update, weights after it. */
static g3_status compare_all(const g3_verify_jobs *jobs, bool grads, double lr,
                             const g3_param_place *place, g3_evidence *e) {
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
      const g3_finding f = compare(jobs, p, &whole, grads, lr);
      g3_finding *row = grads ? &e->grad[place[at].row] : &e->weight[place[at].row];
      if (worse(&f, row)) *row = f;
      if (grads)
        *(p->whole_on_tp ? &e->whole_squares : &e->cut_squares) += f.reference * f.reference;
    }
    free(whole.value);
    free(whole.tp_sum);
    if (st != G3_OK) return st;
  }
  return G3_OK;
}

static bool say_scalar(const char *what, double got, double want, double exact, double bound) {
  const double difference = fabs(got - want),
               allowed_difference = bound * fabs(want) + 2.0 * fabs(want - exact);
  const bool good = difference <= allowed_difference;
  G3_INFO("%-28s %.9g, one rank %.9g, relative difference %.1e (allowed %.1e): %s", what, got, want,
          difference / fabs(want), allowed_difference / fabs(want), good ? "ok" : "WRONG");
  return good;
}

static bool say_rows(const g3_evidence *e) {
  bool good = true;
  G3_INFO("%-28s %12s %9s %9s %12s %9s  %s", "worst parameter of each row", "gradient |d|",
          "allowed", "ratio", "weight |d|", "allowed", "verdict");
  for (int r = 0; r < G3_ROWS; r++) {
    const g3_finding *g = &e->grad[r], *w = &e->weight[r];
    if (!g->param) continue;
    const bool row_good = g->good && w->good;
    G3_INFO("%-28s %12.2e %9.1e %9.6f %12.2e %9.1e  %s",
            g->good && !w->good ? w->param->name : g->param->name, g->difference / g->reference,
            g->allowed / g->reference, g->ratio, w->difference, w->allowed,
            row_good ? "ok" : "WRONG");
    good = good && row_good;
  }
  return good;
}

/* The layout's ranks have read the rows of the global batch that one rank has at their place. */
static g3_status compare_data(const g3_verify_jobs *jobs, bool *good) {
  g3_job *job = jobs->layout;
  const g3_tensor mine = job->rank->tokens;
  void *all = NULL;
  size_t *sizes = NULL;
  G3_TRY(
      job->world->ops->host_gather(job->world, mine.data, g3_tensor_bytes(mine), 0, &all, &sizes));
  *good = true;
  for (int r = 0; all && r < job->world->size; r++) {
    const int dp = g3_grid_coord(&job->mesh->grid, r).at[G3_DP];
    const size_t n = g3_tensor_bytes(mine);
    const char *want = (const char *)jobs->one->rank->tokens.data + (size_t)dp * n;
    if (memcmp((const char *)all + (size_t)r * n, want, n) != 0) *good = false;
  }
  free(all);
  free(sizes);
  return G3_OK;
}

static g3_status backward(const g3_verify_jobs *jobs) {
  G3_TRY(g3_step_backward(jobs->layout));
  g3_fault_suspend(true);
  g3_status st = jobs->one ? g3_step_backward(jobs->one) : G3_OK;
  if (st == G3_OK && jobs->exact) st = g3_step_backward(jobs->exact);
  g3_fault_suspend(false);
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

static double mean_loss(const g3_job *job) {
  const double *sums = g3_optim_sums(job->rank->optim).data;
  return sums[G3_SUM_LOSS] / sums[G3_SUM_TOKENS];
}

/* Rank 0: why it is wrong, while the one-rank job still has the weights of the step; then its
 * gradients anew. */
static g3_status diagnose(const g3_verify_jobs *jobs, const g3_evidence *e, const char **guilty) {
  g3_fault_suspend(true);
  *guilty = g3_diagnose(jobs->layout, jobs->one, e);
  const g3_status st = g3_step_backward(jobs->one);
  g3_fault_suspend(false);
  return st;
}

/* The norm that control makes of the sums of squares. */
static double norm_of(const g3_job *job) {
  const g3_tensor sums = g3_optim_sums(job->rank->optim);
  double total = 0.0;
  for (int64_t i = G3_SUM_SQUARES; i < sums.dim[0]; i++)
    total += ((const double *)sums.data)[i];
  return sqrt(total);
}

static void judge_scalars(const g3_verify_jobs *jobs, g3_evidence *e) {
  const g3_job *exact = jobs->exact ? jobs->exact : jobs->one;
  e->loss = mean_loss(jobs->layout);
  e->norm = norm_of(jobs->layout);
  e->one_loss = mean_loss(jobs->one);
  e->one_norm = norm_of(jobs->one);
  G3_INFO("step %lld", (long long)jobs->layout->step + 1);
  e->loss_good = say_scalar("loss", e->loss, e->one_loss, mean_loss(exact), loss_bound);
  e->norm_good = say_scalar("gradient norm", e->norm, e->one_norm, norm_of(exact), norm_bound);
}

static bool gradients_good(const g3_evidence *e) {
  bool good = e->loss_good && e->norm_good && e->data_good;
  for (int r = 0; r < G3_ROWS; r++)
    good = good && (!e->grad[r].param || e->grad[r].good);
  return good;
}

static g3_status verify_step(const g3_verify_jobs *jobs, const g3_param_place *place,
                             g3_evidence *e, int64_t *verdict) {
  g3_comm *world = jobs->layout->world;
  const char *guilty = NULL;
  g3_step_result got, ignored;
  g3_status st = G3_OK;
  G3_TRY(backward(jobs));
  G3_TRY(compare_data(jobs, &e->data_good));
  G3_TRY(compare_all(jobs, true, 0.0, place, e));
  if (jobs->one) {
    judge_scalars(jobs, e);
    *verdict = gradients_good(e);
    if (!*verdict) st = diagnose(jobs, e, &guilty);
  }
  G3_TRY(g3_comm_agree(world, st));
  g3_step_update(jobs->layout, &got);
  if (jobs->one) g3_step_update(jobs->one, &ignored);
  if (jobs->exact) g3_step_update(jobs->exact, &ignored);
  G3_TRY(compare_all(jobs, false, got.lr, place, e));
  if (!jobs->one) return G3_OK;
  *verdict = say_rows(e) && *verdict;
  if (guilty) G3_INFO("first parameter that differs: %s", guilty);
  return G3_OK;
}

g3_status g3_verify_step(const g3_verify_jobs *jobs, bool *good) {
  g3_comm *world = jobs->layout->world;
  g3_param_place *place = NULL;
  int64_t verdict = 1;
  g3_evidence *e;
  G3_TRY(G3_NEW_ARRAY(1, &e));
  g3_status st = g3_comm_agree(world, read_places(jobs, &place));
  if (st == G3_OK) st = verify_step(jobs, place, e, &verdict);
  if (st == G3_OK) st = world->ops->host_broadcast(world, &verdict, sizeof verdict, 0);
  *good = verdict != 0;
  free(place);
  free(e);
  return st;
}
