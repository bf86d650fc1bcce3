/* Steps, evaluation and the loop on one rank: what they return, what a bad step leaves untouched.
 */
#include "optim/lr.h"
#include "train/loop.h"
#include "train/signals.h"
#include "train/state.h"
#include "train/step.h"
#include "unit/data/files.h"
#include "util/log.h"
#include <math.h>
#include <signal.h>

static void ok(g3_status st) {
  if (st != G3_OK) fail_msg("%s [%s]", g3_last_error(), g3_last_trace());
}

typedef struct {
  g3_settings *settings;
  g3_comm *self;
  g3_job job;
} run;

/* A text of 1,500 letters with one that is no token of the vocabulary, for who comes to it. */
static int make_folder(void **state) {
  if (enter_folder(state) != 0) return -1;
  char text[1500];
  for (int i = 0; i < 1500; i++)
    text[i] = (char)('A' + (i * i + i / 7) % 26);
  write_file("good", text, sizeof text);
  text[700] = 'z';
  write_file("bad", text, sizeof text);
  g3_log_setup(0, G3_LOG_ERROR);
  return 0;
}

/* A run with what all tests share, and more flags. Ends with NULL. */
static void open_run(run *r, char *const *more) {
  char *args[64] = {
      "--layers", "2",  "--width",   "16",   "--heads",       "2",    "--seq",           "8",
      "--vocab",  "91", "--data",    "good", "--lr",          "1e-2", "--val-split",     "0.2",
      "--warmup", "2",  "--steps",   "10",   "--micro-batch", "2",    "--global-batch",  "8",
      "--dp",     "1",  "--threads", "1",    "--out",         "run",  "--save-interval", "0"};
  int n = 0;
  while (args[n])
    n++;
  for (int i = 0; more[i]; i++)
    args[n++] = more[i];
  memset(r, 0, sizeof *r);
  ok(g3_comm_self(&r->self));
  ok(g3_settings_load(n, args, &r->settings));
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

#define OPEN(r, ...) open_run((r), (char *[]){__VA_ARGS__ __VA_OPT__(, ) NULL})

static int64_t applied(const run *r) {
  g3_control c;
  memcpy(&c, g3_optim_control(r->job.rank->optim).data, sizeof c);
  return c.applied_steps;
}

static void results(void **state) {
  (void)state;
  run r;
  g3_step_result out;
  double last = 0.0;
  OPEN(&r);
  for (int64_t step = 1; step <= 10; step++) {
    ok(g3_step(&r.job, &out));
    assert_int_equal(r.job.step, step);
    assert_int_equal(r.job.consumed, 8 * step);
    assert_true(out.lr == g3_lr_at(&r.settings->value.optim, 10, step));
    assert_true(out.grad_norm > 0.0 && isfinite(out.grad_norm));
    assert_false(out.skipped || out.stop);
    if (step == 1) assert_true(fabs(out.loss - log(91.0)) < 0.05); /* it knows nothing yet */
    last = out.loss;
  }
  assert_true(last < 4.2); /* log 91 is 4.51 */
  assert_int_equal(applied(&r), 10);
  close_run(&r);
}

/* The same numbers from any way to cut the batch. */
static void micro_batches(void **state) {
  (void)state;
  run one, many;
  g3_step_result a, b;
  OPEN(&one, "--micro-batch", "8", "--dropout", "0.2");
  OPEN(&many, "--micro-batch", "1", "--dropout", "0.2");
  for (int step = 0; step < 3; step++) {
    ok(g3_step(&one.job, &a));
    ok(g3_step(&many.job, &b));
    assert_true(fabs(a.loss / b.loss - 1.0) < 1e-5);
    assert_true(fabs(a.grad_norm / b.grad_norm - 1.0) < 1e-5);
  }
  close_run(&many);
  close_run(&one);
}

/* A weight that is no number: the step is skipped, and changes no weight and no moment. */
static void not_finite(void **state) {
  (void)state;
  run r;
  g3_step_result out;
  OPEN(&r);
  ok(g3_step(&r.job, &out));
  const g3_rank *rank = r.job.rank;
  const size_t bytes = g3_tensor_bytes(rank->params);
  float *w = rank->params.data, *before = malloc(bytes), *moment = malloc(bytes);
  assert_non_null(before);
  assert_non_null(moment);
  const float was = w[3];
  w[3] = NAN;
  memcpy(before, w, bytes);
  memcpy(moment, g3_optim_exp_avg(rank->optim).data, bytes);
  ok(g3_step(&r.job, &out));
  assert_true(out.skipped);
  assert_false(isfinite(out.loss) && isfinite(out.grad_norm));
  assert_memory_equal(w, before, bytes);
  assert_memory_equal(g3_optim_exp_avg(rank->optim).data, moment, bytes);
  assert_int_equal(applied(&r), 1);
  assert_int_equal(r.job.step, 2); /* its samples are spent all the same */
  w[3] = was;
  ok(g3_step(&r.job, &out));
  assert_false(out.skipped);
  assert_int_equal(applied(&r), 2);
  free(moment);
  free(before);
  close_run(&r);
}

/* The loop gives up after so many in a row, of which one came before it, and saves none of them. */
static void too_many_not_finite(void **state) {
  (void)state;
  run r;
  g3_exit code = G3_EXIT_DONE;
  OPEN(&r, "--bad-steps", "3", "--save-interval", "1", "--eval-interval", "0");
  ((float *)r.job.rank->params.data)[3] = INFINITY;
  r.job.bad_steps = 1;
  assert_int_equal(g3_loop(&r.job, &code), G3_ENUMERIC);
  assert_message("3 steps in a row were not finite");
  assert_int_equal(r.job.step, 2);
  assert_int_not_equal(access("run/checkpoints/step-00000001", F_OK), 0); /* nothing bad is saved */
  close_run(&r);
}

/* A token outside the vocabulary fails the step before it changes anything. */
static void bad_sample(void **state) {
  (void)state;
  run r;
  g3_step_result out = {.loss = -1.0};
  char *const flags[] = {"--data", "bad", "--steps", "100", NULL};
  open_run(&r, flags);
  const size_t bytes = g3_tensor_bytes(r.job.rank->params);
  void *before = malloc(bytes);
  g3_status st = G3_OK;
  int64_t step = 0;
  assert_non_null(before);
  while (st == G3_OK && step++ < 100) {
    memcpy(before, r.job.rank->params.data, bytes);
    st = g3_step(&r.job, &out);
  }
  assert_int_equal(st, G3_EFORMAT);
  assert_message("bad: token 700 is id 122, outside a vocabulary of 91");
  assert_memory_equal(r.job.rank->params.data, before, bytes);
  assert_int_equal(r.job.step, step - 1);
  assert_int_equal(applied(&r), step - 1);
  free(before);
  close_run(&r);
}

/* The mean over the validation part, whatever the batch: the last pass is filled with nothing. */
static void evaluation(void **state) {
  (void)state;
  run r, other;
  double all, again, some, elsewhere;
  g3_step_result a, b;
  OPEN(&r);
  OPEN(&other, "--micro-batch", "1", "--global-batch", "5");
  assert_int_equal(r.job.split.val_samples, 37);
  ok(g3_evaluate(&r.job, &all));
  ok(g3_evaluate(&r.job, &again));
  ok(g3_evaluate(&other.job, &elsewhere));
  assert_true(all == again);
  assert_true(fabs(all / elsewhere - 1.0) < 1e-6);
  assert_true(fabs(all - log(91.0)) < 0.1);
  close_run(&other);
  OPEN(&other, "--eval-samples", "3");
  ok(g3_evaluate(&other.job, &some));
  assert_true(some != all && fabs(some - all) < 0.2);
  /* it leaves no trace in training */
  ok(g3_step(&r.job, &a));
  close_run(&other);
  OPEN(&other);
  ok(g3_step(&other.job, &b));
  assert_true(a.loss == b.loss && a.grad_norm == b.grad_norm);
  close_run(&other);
  close_run(&r);
}

/* A signal stops the loop after the step in which it came, which is saved; the last test, since a
 * process remembers it. */
static void stopped(void **state) {
  (void)state;
  run r;
  g3_step_result out;
  g3_exit code = G3_EXIT_DONE;
  OPEN(&r, "--save-interval", "5", "--eval-interval", "0", "--out", "stopped");
  ok(g3_rundir_make("stopped"));
  g3_signals_catch();
  ok(g3_step(&r.job, &out));
  assert_false(out.stop);
  assert_int_equal(raise(SIGUSR1), 0);
  ok(g3_loop(&r.job, &code));
  assert_int_equal(code, G3_EXIT_STOPPED);
  assert_int_equal(r.job.step, 2);
  assert_int_equal(access("stopped/checkpoints/step-00000002/index.h5", F_OK), 0);
  close_run(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(results),    cmocka_unit_test(micro_batches),
      cmocka_unit_test(not_finite), cmocka_unit_test(too_many_not_finite),
      cmocka_unit_test(bad_sample), cmocka_unit_test(evaluation),
      cmocka_unit_test(stopped)};
  return cmocka_run_group_tests(tests, make_folder, leave_folder);
}
