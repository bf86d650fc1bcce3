/* A number that is not finite is found where it arose, whatever it was; and none is saved or taken
 * from a checkpoint. */
#include "train/culprit.h"
#include "train/debug_nan.h"
#include "train/finite.h"
#include "train/state.h"
#include "train/step.h"
#include "unit/data/files.h"
#include "util/log.h"
#include <fcntl.h>
#include <math.h>

static void ok(g3_status st) {
  if (st != G3_OK) fail_msg("%s [%s]", g3_last_error(), g3_last_trace());
}

typedef struct {
  g3_settings *settings;
  g3_comm *self;
  g3_job job;
} run;

static int make_folder(void **state) {
  if (enter_folder(state) != 0) return -1;
  char text[1500];
  for (int i = 0; i < 1500; i++)
    text[i] = (char)('A' + (i * i + i / 7) % 26);
  write_file("letters", text, sizeof text);
  g3_log_setup(0, G3_LOG_ERROR);
  return 0;
}

static void open_run(run *r, const char *nan) {
  char *args[] = {"--layers",  "3",    "--width",        "16",    "--heads",       "2",
                  "--seq",     "8",    "--vocab",        "91",    "--data",        "letters",
                  "--lr",      "1e-2", "--val-split",    "0",     "--warmup",      "2",
                  "--steps",   "10",   "--dp",           "1",     "--micro-batch", "2",
                  "--threads", "1",    "--global-batch", "8",     "--debug-nan",   (char *)nan,
                  "--out",     "run",  "--tied",         "false", "--dropout",     "0.1"};
  memset(r, 0, sizeof *r);
  ok(g3_comm_self(&r->self));
  ok(g3_settings_load((int)(sizeof args / sizeof *args), args, &r->settings));
  ok(g3_config_world(r->settings, 1));
  ok(g3_config_check(r->settings));
  ok(g3_job_open(r->settings, r->self, &r->job));
  ok(g3_start_load(&r->job, &(g3_start){.kind = G3_START_FRESH}));
}

static void close_run(run *r) {
  g3_job_close(&r->job);
  g3_settings_free(r->settings);
  g3_comm_destroy(r->self);
}

/* What the report of the step just skipped says. */
static const char *report(g3_job *job) {
  static char said[4096];
  FILE *log = tmpfile();
  const int console = dup(STDERR_FILENO), quiet = open("/dev/null", O_WRONLY);
  assert_non_null(log);
  assert_true(console >= 0 && dup2(quiet, STDERR_FILENO) >= 0);
  g3_log_setup(0, G3_LOG_WARN);
  g3_log_file(log);
  ok(g3_culprit_report(job));
  g3_log_file(NULL);
  g3_log_setup(0, G3_LOG_ERROR);
  assert_true(dup2(console, STDERR_FILENO) >= 0);
  close(console);
  close(quiet);
  rewind(log);
  said[fread(said, 1, sizeof said - 1, log)] = '\0';
  fclose(log);
  return said;
}

static void says(const char *said, const char *wanted) {
  if (!strstr(said, wanted)) fail_msg("\"%s\" is not in \"%s\"", wanted, said);
}

/* Each tensor in turn, in the second step, the third micro-batch, the middle layer. */
static void every_tensor_is_found(void **state) {
  (void)state;
  for (int k = 0; k < G3_SEEN_KINDS; k++) {
    run r;
    g3_step_result out;
    char nan[64], wanted[256];
    const bool ends =
        k == G3_SEEN_EMBED || k == G3_SEEN_FINAL || k == G3_SEEN_LOSS || k == G3_SEEN_D_FINAL;
    const int layer = k == G3_SEEN_EMBED ? 0 : ends ? 2 : 1;
    snprintf(nan, sizeof nan, "2:0:2:1.%s", g3_seen_names[k]);
    open_run(&r, nan);
    ok(g3_debug_nan_read(&r.job));
    ok(g3_step(&r.job, &out));
    assert_false(out.skipped);
    ok(g3_step(&r.job, &out));
    assert_true(out.skipped);
    assert_true(isfinite(out.loss) == (k >= G3_SEEN_D_FINAL));
    snprintf(wanted, sizeof wanted,
             "step 2: first not finite: rank 0 (tp 0, dp 0, pp 0), stage 0, layer %d, tensor %s, "
             "micro-batch 2, sample 12 at position 0",
             layer, g3_seen_names[k]);
    const char *said = report(&r.job);
    says(said, wanted);
    const long long token = (long long)g3_sample_train_token(&r.job.split, 13);
    snprintf(wanted, sizeof wanted, "13 at token %lld (byte %lld, token %lld of document 0)", token,
             token, token);
    says(said, wanted);
    assert_int_equal(r.job.step, 2); /* the report moves nothing */
    assert_int_equal(r.job.consumed, 16);
    ok(g3_step(&r.job, &out));
    assert_false(out.skipped);
    close_run(&r);
  }
}

static void a_weight_is_found(void **state) {
  (void)state;
  run r;
  g3_step_result out;
  open_run(&r, "");
  const g3_param *p = &r.job.rank->flat->param[5];
  ((float *)r.job.rank->params.data)[p->offset + 2] = INFINITY;
  ok(g3_step(&r.job, &out));
  assert_true(out.skipped);
  const char *said = report(&r.job);
  says(said, "not finite before the step: weight ");
  says(said, p->name);
  close_run(&r);
}

/* Multiplies a parameter's numbers. */
static void scale(run *r, const char *name, float k) {
  const g3_flat *flat = r->job.rank->flat;
  for (int i = 0; i < flat->nparams; i++) {
    const g3_param *p = &flat->param[i];
    float *w = (float *)r->job.rank->params.data + p->offset;
    for (int64_t j = 0; j < p->count && strcmp(p->name, name) == 0; j++)
      w[j] *= k;
  }
}

/* Every tensor of forward and backward is finite, a product of two of them is not. */
static void a_gradient_that_overflows_is_found(void **state) {
  (void)state;
  run r;
  g3_step_result out;
  open_run(&r, "");
  scale(&r, "head.weight", 1e20f);
  scale(&r, "blocks.2.mlp.up.weight", 1e22f);
  scale(&r, "blocks.2.mlp.down.weight", 1e-22f);
  ok(g3_step(&r.job, &out));
  assert_true(out.skipped);
  assert_true(isfinite(out.loss));
  const char *said = report(&r.job);
  says(said, "gradient of blocks.2.mlp.down.weight");
  says(said, "it overflows");
  close_run(&r);
}

/* A gradient that moments could not hold is not taken, though it is finite; clipped it is. */
static void a_gradient_beyond_moments_is_skipped(void **state) {
  (void)state;
  run r;
  g3_step_result out;
  open_run(&r, "");
  ok(g3_settings_set(r.settings, "optim.clip", "0",
                     (g3_origin){.kind = G3_FROM_COMMAND, .where = "--clip"}));
  scale(&r, "head.weight", 1e24f);
  ok(g3_step(&r.job, &out));
  assert_true(isfinite(out.loss) && isfinite(out.grad_norm) && out.grad_norm >= G3_MOST_NORM);
  assert_true(out.skipped);
  r.settings->value.optim.clip = 1.0;
  ok(g3_step(&r.job, &out));
  assert_true(out.grad_norm >= G3_MOST_NORM);
  assert_false(out.skipped);
  ok(g3_state_save(&r.job)); /* all moments are finite */
  close_run(&r);
}

/* When nothing is bad the second time, that is said, too. */
static void a_passing_fault_is_said(void **state) {
  (void)state;
  run r;
  g3_step_result out;
  open_run(&r, "");
  ok(g3_step(&r.job, &out));
  says(report(&r.job), "every number is finite on every rank");
  close_run(&r);
}

static void what_cannot_be_meant(void **state) {
  (void)state;
  static const struct {
    const char *text, *message;
  } cases[] = {
      {"3", "wanted STEP[-LAST]:STAGE:MICRO:[LAYER.]TENSOR"},
      {"0:0:0:qkv", "wanted STEP"},
      {"3-2:0:0:qkv", "wanted STEP"},
      {"3-:0:0:qkv", "wanted STEP"},
      {"1:0:-1:qkv", "wanted STEP"},
      {"1:0:0x1:qkv", "wanted STEP"},
      {"99999999999999999999:0:1:qkv", "wanted STEP"},
      {"1:1:0:qkv", "stage 1 of 1"},
      {"1:0:4:qkv", "micro-batch 4 does not exist: the global batch has 4"},
      {"1:0:3:3.qkv", "stage 0 has the layers 0 to 2, not 3"},
      {"1:0:3:qvk", "there is no tensor qvk; there are embed ln1 qkv"},
      {"1:0:3:1.", "there is no tensor "},
      {"1:0:3:", "there is no tensor "},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    run r;
    open_run(&r, cases[i].text);
    assert_int_equal(g3_debug_nan_read(&r.job), G3_EINVAL);
    assert_message(cases[i].text);
    assert_message(cases[i].message);
    assert_int_equal(r.job.nan.step, 0);
    close_run(&r);
  }
}

static void rows(void **state) {
  (void)state;
  run r;
  float x[7 * 3] = {0};
  int64_t row;
  bool yes;
  open_run(&r, "");
  const g3_tensor t = g3_tensor_2d(x, G3_F32, 7, 3);
  x[0] = 3e38f; /* its square is beyond f32 */
  ok(g3_finite(&r.job, t, &yes));
  assert_true(yes);
  ok(g3_finite_row(&r.job, t, &row));
  assert_int_equal(row, -1);
  for (int64_t i = 0; i < 7; i++) {
    x[i * 3 + i % 3] = i % 2 ? NAN : -INFINITY;
    x[20] = NAN; /* the last row is bad as well */
    ok(g3_finite_row(&r.job, t, &row));
    assert_int_equal(row, i);
    memset(x, 0, sizeof x);
  }
  close_run(&r);
}

/* Whatever of the state is bad: it is named, and the last checkpoint stays the latest. */
static void nothing_bad_is_saved(void **state) {
  (void)state;
  run r;
  g3_step_result out;
  char latest[1024];
  open_run(&r, "");
  ok(g3_step(&r.job, &out));
  ok(g3_state_save(&r.job));
  ok(g3_step(&r.job, &out));
  const g3_tensor moment = g3_optim_exp_avg_sq(r.job.rank->optim);
  ((float *)moment.data)[0] = INFINITY;
  assert_int_equal(g3_state_save(&r.job), G3_ENUMERIC);
  assert_message("after step 2 optim/exp_avg_sq/");
  assert_message("is not finite");
  ok(g3_ckpt_latest("run", latest, sizeof latest));
  assert_string_equal(latest, "run/checkpoints/step-00000001");
  close_run(&r);
}

/* A checkpoint that something else made. */
static void nothing_bad_is_taken(void **state) {
  (void)state;
  run r;
  g3_start start;
  open_run(&r, "");
  g3_ckpt_item *item = &r.job.rank->save[4];
  ((float *)item->local.data)[1] = NAN;
  g3_ckpt_attr attr[G3_STATE_ATTRS];
  g3_state_describe(r.job.config, attr);
  const g3_ckpt_meta meta = {
      .step = 3, .consumed_samples = 24, .attr = attr, .nattrs = G3_STATE_ATTRS};
  ok(g3_ckpt_save(r.self, r.job.compute, "bad/checkpoints", &meta, r.job.rank->save,
                  r.job.rank->nsave, 0, r.job.rank->stage));
  ok(g3_settings_set(r.settings, "run.resume", "bad",
                     (g3_origin){.kind = G3_FROM_COMMAND, .where = "--resume"}));
  ok(g3_start_find(r.settings, r.self, &start));
  assert_int_equal(g3_start_load(&r.job, &start), G3_ENUMERIC);
  assert_message("bad/checkpoints/step-00000003");
  assert_message(item->name);
  g3_start_free(&start);
  close_run(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_tensor_is_found),
                                     cmocka_unit_test(a_weight_is_found),
                                     cmocka_unit_test(a_gradient_that_overflows_is_found),
                                     cmocka_unit_test(a_gradient_beyond_moments_is_skipped),
                                     cmocka_unit_test(a_passing_fault_is_said),
                                     cmocka_unit_test(what_cannot_be_meant),
                                     cmocka_unit_test(rows),
                                     cmocka_unit_test(nothing_bad_is_saved),
                                     cmocka_unit_test(nothing_bad_is_taken)};
  return cmocka_run_group_tests(tests, make_folder, leave_folder);
}
