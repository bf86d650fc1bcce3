/* A tiny random GPT-2 against what PyTorch computed (tests/golden/gpt2_tiny.h5, made by
 * tools/torch_fixture.py): logits, loss, every gradient, and the weights after ten clipped AdamW
 * steps. */
#include "data/data.h"
#include "model/internal.h"
#include "optim/lr.h"
#include "unit/model/one_rank.h"
#include "util/array.h"
#include <hdf5.h>
#include <math.h>
#include <stdlib.h>

static const char fixture[] = G3_TEST_SOURCE "/tests/golden/gpt2_tiny.h5";

static void open_tiny(one_rank *o, bool tied) {
  char tied_text[8];
  snprintf(tied_text, sizeof tied_text, "%s", tied ? "true" : "false");
  char *args[] = {"--layers", "2",       "--heads",       "4",  "--width",        "32",
                  "--ffn",    "128",     "--seq",         "16", "--vocab",        "61",
                  "--tied",   tied_text, "--micro-batch", "4",  "--global-batch", "4",
                  "--steps",  "10",      "--warmup",      "10", "--lr",           "1e-3",
                  "--min-lr", "0",       "--clip",        "1",  "--weight-decay", "0.1",
                  "--eps",    "1e-6",    "--dp",          "1"};
  open_rank(o, args, (int)(sizeof args / sizeof args[0]));
}

static void read_set(hid_t file, const char *group, const char *name, hid_t type, void *out,
                     int64_t count) {
  char path[160];
  snprintf(path, sizeof path, "%s/%s", group, name);
  const hid_t set = H5Dopen2(file, path, H5P_DEFAULT);
  assert_true(set >= 0);
  const hid_t space = H5Dget_space(set);
  assert_int_equal(H5Sget_simple_extent_npoints(space), count);
  assert_true(H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, out) >= 0);
  H5Sclose(space);
  H5Dclose(set);
}

static double distance(const float *got, const float *want, int64_t n) {
  double d = 0.0, ref = 0.0;
  for (int64_t i = 0; i < n; i++) {
    d += ((double)got[i] - want[i]) * ((double)got[i] - want[i]);
    ref += (double)want[i] * want[i];
  }
  return sqrt(d) / sqrt(ref);
}

/* Every parameter's part of `flat` against group/NAME: the largest relative distance. */
static double worst(hid_t file, const char *group, const one_rank *o, g3_tensor flat) {
  double most = 0.0;
  float *want;
  for (int i = 0; i < o->r->flat->nparams; i++) {
    const g3_param *p = &o->r->flat->param[i];
    const int64_t n = g3_slice_count(&p->slice);
    ok(G3_NEW_ARRAY(n, &want));
    read_set(file, group, p->name, H5T_NATIVE_FLOAT, want, n);
    const double d = distance((float *)flat.data + p->offset, want, n);
    if (!(d <= most)) {
      most = d;
      print_message("%s %s: %.2e\n", group, p->name, d);
    }
    free(want);
  }
  return most;
}

static void load_weights(hid_t file, const char *group, const one_rank *o) {
  for (int i = 0; i < o->r->flat->nparams; i++) {
    const g3_param *p = &o->r->flat->param[i];
    read_set(file, group, p->name, H5T_NATIVE_FLOAT, (float *)o->r->params.data + p->offset,
             g3_slice_count(&p->slice));
  }
}

/* Real columns of the logits that evaluation left in the head's buffer. */
static void check_logits(hid_t file, const char *which, one_rank *o, const int32_t *tokens) {
  const g3_gpt *g = g3_gpt_stage(o->r->gpt)->impl;
  const int64_t n = g->n, vocab = g->spec.model.vocab;
  float *want, *got;
  ok(G3_NEW_ARRAY(n * vocab, &want));
  ok(G3_NEW_ARRAY(n * vocab, &got));
  read_set(file, which, "logits", H5T_NATIVE_FLOAT, want, n * vocab);
  g3_gpt_batch(o->r->gpt, tokens, 0, false);
  ok(g3_runtime_run(o->r->eval, NULL, NULL, NULL));
  assert_int_equal(g->chunk, n);
  for (int64_t i = 0; i < n; i++)
    memcpy(got + i * vocab, (float *)g->logits.data + i * g->v, (size_t)vocab * sizeof *got);
  const double d = distance(got, want, n * vocab);
  print_message("%s logits: %.2e\n", which, d);
  assert_true(d <= 1e-5);
  free(want);
  free(got);
}

static double one_step(one_rank *o, const int32_t *tokens, int step, double *norm, g3_tensor sums) {
  const g3_config *c = &o->settings->value;
  g3_control control;
  ok(o->dev->ops->fill(o->s, o->r->grads, 0.0f));
  ok(o->dev->ops->fill(o->s, sums, 0.0f));
  g3_gpt_batch(o->r->gpt, tokens, 4 * step, true);
  ok(g3_runtime_run(o->r->train, NULL, NULL, NULL));
  ok(g3_optim_squares(o->r->optim, o->s));
  ((double *)sums.data)[G3_SUM_TOKENS] = 64.0;
  if (step > 0) ok(g3_optim_step(o->r->optim, o->s, &c->optim, g3_lr_at(&c->optim, 10, step)));
  memcpy(&control, g3_optim_control(o->r->optim).data, sizeof control);
  *norm = control.norm;
  return ((double *)sums.data)[G3_SUM_LOSS] / 64.0;
}

static void check(bool tied) {
  const char *which = tied ? "tied" : "untied";
  char group[32];
  one_rank o;
  int32_t tokens[10 * 4 * 17];
  double losses[10], norms[10], norm;
  open_tiny(&o, tied);
  const g3_tensor sums = g3_optim_sums(o.r->optim);
  const hid_t file = H5Fopen(fixture, H5F_ACC_RDONLY, H5P_DEFAULT);
  assert_true(file >= 0);
  snprintf(group, sizeof group, "%s/init", which);
  load_weights(file, group, &o);
  ok(g3_optim_adopt(o.r->optim, o.s));
  read_set(file, which, "tokens", H5T_NATIVE_INT32, tokens, 10 * 4 * 17);
  read_set(file, which, "losses", H5T_NATIVE_DOUBLE, losses, 10);
  read_set(file, which, "norms", H5T_NATIVE_DOUBLE, norms, 10);
  check_logits(file, which, &o, tokens);

  const double loss = one_step(&o, tokens, 0, &norm, sums);
  assert_true(fabs(loss / losses[0] - 1.0) <= 1e-5);
  snprintf(group, sizeof group, "%s/grads", which);
  assert_true(worst(file, group, &o, o.r->grads) <= 1e-5);

  for (int step = 1; step <= 10; step++) {
    const double l = one_step(&o, tokens + (step - 1) * 4 * 17, step, &norm, sums);
    assert_true(fabs(l / losses[step - 1] - 1.0) <= 1e-5);
    assert_true(fabs(norm / norms[step - 1] - 1.0) <= 1e-5);
  }
  snprintf(group, sizeof group, "%s/final", which);
  assert_true(worst(file, group, &o, o.r->params) <= 1e-4);
  H5Fclose(file);
  close_rank(&o);
}

static void tied(void **state) {
  (void)state;
  check(true);
}

static void untied(void **state) {
  (void)state;
  check(false);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(tied), cmocka_unit_test(untied)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
