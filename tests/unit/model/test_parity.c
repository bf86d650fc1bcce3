/* A tiny random GPT-2 against what PyTorch computed (tests/golden/gpt2_tiny.h5, made by
 * tools/torch_fixture.py): logits, losses, norms, every gradient, and the weights after 20 steps of
 * AdamW with a warm-up, a cosine, clipping and weight decay for matrices alone. In f32 they are the
 * same but for rounding; in bf16 they come as near to f32 as twice the distance of PyTorch's own
 * bf16 run, which the fixture holds. */
#include "data/data.h"
#include "model/internal.h"
#include "optim/lr.h"
#include "unit/model/one_rank.h"
#include "util/array.h"
#include <hdf5.h>
#include <math.h>
#include <stdlib.h>

static const char fixture[] = G3_TEST_SOURCE "/tests/golden/gpt2_tiny.h5";

enum { STEPS = 20, BATCH = 4, LENGTH = 17, TOKENS = BATCH * LENGTH };

static void open_tiny(one_rank *o, bool tied, bool bf16) {
  char tied_text[8], dtype[8];
  snprintf(tied_text, sizeof tied_text, "%s", tied ? "true" : "false");
  snprintf(dtype, sizeof dtype, "%s", bf16 ? "bf16" : "f32");
  char *args[] = {"--layers", "2",       "--heads",        "4",      "--width",        "32",
                  "--ffn",    "128",     "--seq",          "16",     "--vocab",        "61",
                  "--tied",   tied_text, "--micro-batch",  "4",      "--global-batch", "4",
                  "--steps",  "20",      "--warmup",       "10",     "--lr",           "1e-3",
                  "--min-lr", "1e-4",    "--lr-schedule",  "cosine", "--clip",         "1",
                  "--eps",    "1e-6",    "--weight-decay", "0.1",    "--dp",           "1",
                  "--dtype",  dtype};
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

/* How far the bf16 run of PyTorch is from the f32 one that group/NAME holds. */
static double torch_distance(hid_t file, const char *group, const char *name) {
  char path[160];
  double d;
  snprintf(path, sizeof path, "%s/%s", group, name);
  const hid_t attr = H5Aopen_by_name(file, path, "bf16", H5P_DEFAULT, H5P_DEFAULT);
  assert_true(attr >= 0 && H5Aread(attr, H5T_NATIVE_DOUBLE, &d) >= 0);
  H5Aclose(attr);
  return d;
}

/* One quantity of a run against the fixture, and what is allowed. */
static void judge(hid_t file, const char *group, const char *name, bool bf16, double bound,
                  double d) {
  const double torch = bf16 ? torch_distance(file, group, name) : 0.0;
  if (bf16) bound = 2.0 * torch;
  if (!(d <= bound)) fail_msg("%s/%s: %.2e is more than %.2e", group, name, d, bound);
}

/* The largest distance of all, for the reader; in bf16, of all shares of what PyTorch's is. */
typedef struct {
  double most;
  char name[64];
} worst;

static void note(worst *w, const char *name, double d) {
  if (d <= w->most) return;
  w->most = d;
  snprintf(w->name, sizeof w->name, "%s", name);
}

/* A parameter's elements among `flat`; master weights lie in the shard's order. */
static const float *elements(const one_rank *o, g3_tensor flat, int param, bool by_shard) {
  int n;
  const g3_segment *seg = g3_optim_segments(o->r->optim, &n);
  if (!by_shard) return (float *)flat.data + o->r->flat->param[param].offset;
  for (int i = 0; i < n; i++)
    if (seg[i].param == param && seg[i].start == 0) return (float *)flat.data + seg[i].shard;
  fail_msg("parameter %d is in no segment", param);
  return NULL;
}

/* Every parameter's part of `flat`, f32, against group/NAME. */
static void check_all(hid_t file, const char *which, const char *part, const one_rank *o,
                      g3_tensor flat, bool bf16, double bound) {
  const bool by_shard = flat.data == g3_optim_master(o->r->optim).data;
  char group[32];
  worst w = {-1.0, ""};
  float *want;
  snprintf(group, sizeof group, "%s/%s", which, part);
  for (int i = 0; i < o->r->flat->nparams; i++) {
    const g3_param *p = &o->r->flat->param[i];
    const int64_t n = g3_slice_count(&p->slice);
    ok(G3_NEW_ARRAY(n, &want));
    read_set(file, group, p->name, H5T_NATIVE_FLOAT, want, n);
    const double d = distance(elements(o, flat, i, by_shard), want, n);
    judge(file, group, p->name, bf16, bound, d);
    note(&w, p->name, bf16 ? d / torch_distance(file, group, p->name) : d);
    free(want);
  }
  print_message("%s %s: at most %.2e%s (%s)\n", bf16 ? "bf16" : "f32", group, w.most,
                bf16 ? " of PyTorch's distance" : "", w.name);
}

/* Weights from the fixture's f32; in bf16 these are the masters, and the weights are rounded. */
static void load_weights(hid_t file, const char *which, const one_rank *o, bool bf16) {
  char group[32];
  const g3_tensor master = g3_optim_master(o->r->optim);
  snprintf(group, sizeof group, "%s/init", which);
  for (int i = 0; i < o->r->flat->nparams; i++) {
    const g3_param *p = &o->r->flat->param[i];
    const int64_t n = g3_slice_count(&p->slice);
    float *f32 = (float *)(uintptr_t)elements(o, bf16 ? master : o->r->params, i, bf16);
    read_set(file, group, p->name, H5T_NATIVE_FLOAT, f32, n);
    if (bf16)
      ok(o->dev->ops->cast(o->s, g3_tensor_part(o->r->params, 0, p->offset, n),
                           g3_tensor_1d(f32, G3_F32, n)));
  }
  ok(o->dev->ops->sync(o->s));
}

/* Real columns of the logits that evaluation left in the head's buffer. */
static void check_logits(hid_t file, const char *which, one_rank *o, const int32_t *tokens,
                         bool bf16) {
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
  print_message("%s %s logits: %.2e\n", bf16 ? "bf16" : "f32", which, d);
  judge(file, which, "logits", bf16, 1e-5, d);
  free(want);
  free(got);
}

/* Step 1, 2, ...: its loss, and its gradients' norm before clipping. */
static double one_step(one_rank *o, const int32_t *tokens, int step, double *norm) {
  const g3_config *c = &o->settings->value;
  const g3_tensor sums = g3_optim_sums(o->r->optim);
  g3_control control;
  ok(o->dev->ops->fill(o->s, o->r->grads, 0.0f));
  ok(o->dev->ops->fill(o->s, sums, 0.0f));
  g3_gpt_batch(o->r->gpt, tokens, BATCH * (step - 1), true);
  ok(g3_runtime_run(o->r->train, NULL, NULL, NULL));
  ok(g3_optim_squares(o->r->optim, o->s));
  ((double *)sums.data)[G3_SUM_TOKENS] = BATCH * (LENGTH - 1);
  ok(g3_optim_step(o->r->optim, o->s, &c->optim, g3_lr_at(&c->optim, c->train.steps, step)));
  ok(o->dev->ops->sync(o->s));
  memcpy(&control, g3_optim_control(o->r->optim).data, sizeof control);
  *norm = control.norm;
  assert_true(control.clip < 1.0f);
  return ((double *)sums.data)[G3_SUM_LOSS] / (BATCH * (LENGTH - 1));
}

/* A series over the steps: in f32 each step's own distance, in bf16 that of all as one vector. */
static void check_series(hid_t file, const char *which, const char *name, const double *got,
                         bool bf16) {
  double want[STEPS], d = 0.0, ref = 0.0, most = 0.0;
  read_set(file, which, name, H5T_NATIVE_DOUBLE, want, STEPS);
  for (int i = 0; i < STEPS; i++) {
    const double x = got[i] - want[i];
    d += x * x;
    ref += want[i] * want[i];
    if (!(fabs(x / want[i]) <= most)) most = fabs(x / want[i]);
  }
  print_message("%s %s %s: %.2e\n", bf16 ? "bf16" : "f32", which, name,
                bf16 ? sqrt(d / ref) : most);
  judge(file, which, name, bf16, 1e-5, bf16 ? sqrt(d / ref) : most);
}

static void check(bool tied, bool bf16) {
  const char *which = tied ? "tied" : "untied";
  one_rank o;
  int32_t tokens[STEPS * TOKENS];
  double losses[STEPS], norms[STEPS];
  open_tiny(&o, tied, bf16);
  const hid_t file = H5Fopen(fixture, H5F_ACC_RDONLY, H5P_DEFAULT);
  assert_true(file >= 0);
  load_weights(file, which, &o, bf16);
  read_set(file, which, "tokens", H5T_NATIVE_INT32, tokens, STEPS * TOKENS);
  check_logits(file, which, &o, tokens, bf16);
  for (int step = 1; step <= STEPS; step++) {
    losses[step - 1] = one_step(&o, tokens + (step - 1) * TOKENS, step, &norms[step - 1]);
    /* An update leaves the gradients as they were: clipping is a factor of its own. */
    if (step == 1) check_all(file, which, "grads", &o, o.r->grads, bf16, 1e-5);
  }
  check_series(file, which, "losses", losses, bf16);
  check_series(file, which, "norms", norms, bf16);
  check_all(file, which, "final", &o, bf16 ? g3_optim_master(o.r->optim) : o.r->params, bf16, 1e-4);
  H5Fclose(file);
  close_rank(&o);
}

static void tied_f32(void **state) {
  (void)state;
  check(true, false);
}

static void untied_f32(void **state) {
  (void)state;
  check(false, false);
}

static void tied_bf16(void **state) {
  (void)state;
  check(true, true);
}

static void untied_bf16(void **state) {
  (void)state;
  check(false, true);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(tied_f32), cmocka_unit_test(untied_f32),
                                     cmocka_unit_test(tied_bf16), cmocka_unit_test(untied_bf16)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
