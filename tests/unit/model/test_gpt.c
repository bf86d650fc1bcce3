/* The whole model by itself: every gradient against central differences, losses that add up,
 * initial weights. */
#include "model/internal.h"
#include "unit/model/one_rank.h"
#include "util/philox.h"
#include <math.h>

enum { SEQ = 8, VOCAB = 21, BATCH = 4, PICKS = 6 };

static void open_tiny(one_rank *o, const char *tied, const char *dropout, const char *dtype) {
  char *args[] = {"--layers",       "2",
                  "--heads",        "2",
                  "--width",        "16",
                  "--ffn",          "24",
                  "--seq",          "8",
                  "--vocab",        "21",
                  "--tied",         (char *)tied,
                  "--dropout",      (char *)dropout,
                  "--dtype",        (char *)dtype,
                  "--micro-batch",  "2",
                  "--global-batch", "4",
                  "--warmup",       "2",
                  "--dp",           "1"};
  open_rank(o, args, (int)(sizeof args / sizeof args[0]));
}

/* Weights large enough for their gradients to stand out of f32's rounding. */
static void large_weights(one_rank *o) {
  float *w = o->r->params.data;
  for (int i = 0; i < o->r->flat->nparams; i++) {
    const g3_param *p = &o->r->flat->param[i];
    const bool layernorm = strstr(p->name, "ln") != NULL && strstr(p->name, ".weight") != NULL;
    for (int64_t k = 0; k < g3_slice_count(&p->slice); k++) {
      const g3_philox_block b = g3_philox(7, (uint32_t)i, (uint32_t)k, 0, 0, 0);
      w[p->offset + k] = (g3_unit(b.w[0]) - 0.5f) * 0.8f + (layernorm ? 1.0f : 0.0f);
    }
  }
}

static void make_tokens(int32_t *tokens, int64_t samples) {
  for (int64_t i = 0; i < samples * (SEQ + 1); i++)
    tokens[i] = (int32_t)((i * i + 3 * i) % VOCAB);
}

static double sum_of_losses(one_rank *o) {
  double sum;
  memcpy(&sum, g3_optim_sums(o->r->optim).data, sizeof sum);
  return sum;
}

/* The sum of token losses, by the evaluation's list of work. */
static double forward(one_rank *o, const int32_t *tokens, bool train) {
  ok(o->dev->ops->fill(o->s, g3_optim_sums(o->r->optim), 0.0f));
  g3_gpt_batch(o->r->gpt, tokens, 40, train);
  ok(g3_runtime_run(o->r->eval, NULL, NULL, NULL));
  return sum_of_losses(o);
}

/* Fills the gradients; returns the sum of token losses. */
static double backward(one_rank *o, const int32_t *tokens) {
  ok(o->dev->ops->fill(o->s, g3_optim_sums(o->r->optim), 0.0f));
  ok(o->dev->ops->fill(o->s, o->r->grads, 0.0f));
  g3_gpt_batch(o->r->gpt, tokens, 40, true);
  ok(g3_runtime_run(o->r->train, NULL, NULL, NULL));
  return sum_of_losses(o);
}

/* The element of a parameter with the largest gradient, then some anywhere. */
static int64_t pick(const float *grad, int64_t n, int which) {
  int64_t at = 0;
  if (which > 0) return (int64_t)((uint64_t)which * 2654435761u % (uint64_t)n);
  for (int64_t k = 1; k < n; k++)
    if (fabsf(grad[k]) > fabsf(grad[at])) at = k;
  return at;
}

/* One element's slope by central differences, h and 2h together (fourth order in h). */
static double slope(one_rank *o, const int32_t *tokens, float *w) {
  const float w0 = *w, h = 1.0f / 128.0f;
  double f[2];
  for (int i = 0; i < 2; i++) {
    const float step = h * (float)(i + 1);
    *w = w0 + step;
    const double up = forward(o, tokens, true);
    *w = w0 - step;
    const double down = forward(o, tokens, true);
    f[i] = (up - down) / (2.0 * (double)step * BATCH * SEQ);
  }
  *w = w0;
  return (4.0 * f[0] - f[1]) / 3.0;
}

static void check_gradients(const char *tied, const char *dropout) {
  one_rank o;
  int32_t tokens[BATCH * (SEQ + 1)];
  open_tiny(&o, tied, dropout, "f32");
  large_weights(&o);
  make_tokens(tokens, BATCH);
  const double loss = backward(&o, tokens);
  assert_true(loss == forward(&o, tokens, true));
  float *w = o.r->params.data;
  const float *g = o.r->grads.data;
  double most = 0.0;
  for (int i = 0; i < o.r->flat->nparams; i++) {
    const g3_param *p = &o.r->flat->param[i];
    const int64_t n = g3_slice_count(&p->slice);
    double largest = fabs((double)g[p->offset + pick(g + p->offset, n, 0)]);
    assert_true(largest > 1e-3); /* far above the rounding that the bound allows for */
    for (int k = 0; k < PICKS; k++) {
      const int64_t at = p->offset + pick(g + p->offset, n, k);
      const double want = slope(&o, tokens, &w[at]), off = fabs(want - (double)g[at]);
      if (off > most) most = off;
      if (off > 2e-3 * largest + 1e-5)
        fail_msg("%s, element %lld: gradient %g, central difference %g (tied %s, dropout %s)",
                 p->name, (long long)(at - p->offset), (double)g[at], want, tied, dropout);
    }
    for (int64_t k = n; k < p->count; k++)
      assert_true(g[p->offset + k] == 0.0f); /* padding of the vocabulary */
  }
  print_message("tied %s, dropout %s: largest difference %.1e\n", tied, dropout, most);
  close_rank(&o);
}

static void gradients_tied(void **state) {
  (void)state;
  check_gradients("true", "0");
}

static void gradients_untied(void **state) {
  (void)state;
  check_gradients("false", "0");
}

static void gradients_with_dropout(void **state) {
  (void)state;
  check_gradients("true", "0.2");
  check_gradients("false", "0.2");
}

/* Masks are for training alone, and belong to samples: others give another loss. */
static void dropout_in_training_only(void **state) {
  (void)state;
  one_rank o;
  int32_t tokens[BATCH * (SEQ + 1)];
  open_tiny(&o, "true", "0.5", "f32");
  large_weights(&o);
  make_tokens(tokens, BATCH);
  const double off = forward(&o, tokens, false);
  assert_true(off != forward(&o, tokens, true));
  assert_true(off == forward(&o, tokens, false));
  const double here = forward(&o, tokens, true);
  assert_true(here == forward(&o, tokens, true));
  ok(o.dev->ops->fill(o.s, g3_optim_sums(o.r->optim), 0.0f));
  g3_gpt_batch(o.r->gpt, tokens, 44, true);
  ok(g3_runtime_run(o.r->eval, NULL, NULL, NULL));
  assert_true(here != sum_of_losses(&o));
  close_rank(&o);
}

/* What is no token (-1) adds no loss and no gradient; losses of samples add up to the batch's. */
static void no_tokens_no_loss(void **state) {
  (void)state;
  one_rank o;
  int32_t tokens[BATCH * (SEQ + 1)], some[BATCH * (SEQ + 1)];
  open_tiny(&o, "true", "0", "f32");
  large_weights(&o);
  make_tokens(tokens, BATCH);
  const double all = forward(&o, tokens, false);
  double sum = 0.0;
  for (int keep = 0; keep < BATCH; keep++) {
    for (int i = 0; i < BATCH * (SEQ + 1); i++)
      some[i] = i / (SEQ + 1) == keep ? tokens[i] : -1;
    sum += forward(&o, some, false);
  }
  assert_true(fabs(sum / all - 1.0) < 1e-6);
  memset(some, -1, sizeof some);
  assert_true(backward(&o, some) == 0.0);
  const float *g = o.r->grads.data;
  for (int64_t k = 0; k < o.r->flat->count; k++)
    assert_true(g[k] == 0.0f);
  close_rank(&o);
}

/* Mean, deviation, and where the row says so ones or zeros. */
static void check_initial(const one_rank *o, const g3_param *p, const g3_param_row *row,
                          const float *w) {
  const int64_t n = g3_slice_count(&p->slice);
  double sum = 0.0, squares = 0.0;
  for (int64_t k = 0; k < n; k++) {
    sum += (double)w[k];
    squares += (double)w[k] * (double)w[k];
  }
  const double mean = sum / (double)n, std = sqrt(squares / (double)n - mean * mean);
  double want = row->init_std;
  if (want <= 0.0) {
    for (int64_t k = 0; k < n; k++)
      assert_true(w[k] == (want < 0.0 ? 1.0f : 0.0f));
    return;
  }
  if (row->scaled) want /= sqrt(2.0 * (double)o->settings->value.model.layers);
  /* five standard errors of each */
  assert_true(fabs(mean) < 5.0 * want / sqrt((double)n));
  assert_true(fabs(std / want - 1.0) < 5.0 / sqrt(2.0 * (double)n));
}

static void initial_weights(void **state) {
  (void)state;
  one_rank o, again;
  open_tiny(&o, "false", "0", "f32");
  open_tiny(&again, "false", "0", "bf16");
  const g3_gpt *g = g3_gpt_stage(o.r->gpt)->impl;
  ok(g3_gpt_init(o.r->gpt, o.s, false));
  ok(g3_gpt_init(again.r->gpt, again.s, false));
  const float *w = o.r->params.data;
  const uint16_t *half = again.r->params.data;
  for (int i = 0; i < o.r->flat->nparams; i++) {
    const g3_param *p = &o.r->flat->param[i];
    check_initial(&o, p, &g3_gpt_rows[g->place[i].row], w + p->offset);
    for (int64_t k = 0; k < g3_slice_count(&p->slice); k++) {
      const uint32_t bits = (uint32_t)half[again.r->flat->param[i].offset + k] << 16;
      float rounded;
      memcpy(&rounded, &bits, sizeof rounded);
      assert_true(fabsf(rounded - w[p->offset + k]) <= fabsf(w[p->offset + k]) / 256.0f);
    }
    for (int j = 0; j < i && g3_gpt_rows[g->place[i].row].init_std > 0.0f; j++)
      assert_true(w[p->offset] != w[o.r->flat->param[j].offset]); /* no two draw the same numbers */
  }
  close_rank(&again);
  close_rank(&o);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gradients_tied),         cmocka_unit_test(gradients_untied),
      cmocka_unit_test(gradients_with_dropout), cmocka_unit_test(dropout_in_training_only),
      cmocka_unit_test(no_tokens_no_loss),      cmocka_unit_test(initial_weights)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
