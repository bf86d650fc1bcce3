#include "train/loop.h"
#include "train/culprit.h"
#include "train/state.h"
#include "train/step.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/text.h"
#include <math.h>

static bool every(int64_t interval, int64_t step) {
  return interval > 0 && step % interval == 0;
}

/* What a step's line says beside the step's own results. */
typedef struct {
  double timed; /* seconds of steps since the second of this process */
  int64_t timed_steps; /* the first one warms up */
} pace;

static double mean_step(const pace *p, double last) {
  return p->timed_steps > 0 ? p->timed / (double)p->timed_steps : last;
}

/* Model arithmetic a second, of each rank, in units of 1e12: tokens of the step times the
 * operations of a token (g3_gpt_flops_per_token) over seconds and ranks. MFU is that over
 * run.peak_tflops. */
static g3_metrics measure(const g3_job *job, const g3_step_result *r, double seconds) {
  const g3_config *c = job->config;
  const double tokens = (double)(c->train.global_batch * c->model.seq);
  const double flops = tokens * g3_gpt_flops_per_token(&c->model);
  g3_metrics m = {.step = job->step,
                  .tokens = job->consumed * c->model.seq,
                  .loss = r->loss,
                  .lr = r->lr,
                  .grad_norm = r->grad_norm,
                  .step_s = seconds,
                  .tok_s = tokens / seconds,
                  .tflops = flops / seconds / 1e12 / job->world->size,
                  .skipped = r->skipped};
  m.has_mfu = c->run.peak_tflops > 0.0;
  if (m.has_mfu) m.mfu = m.tflops / c->run.peak_tflops;
  return m;
}

static void say(const g3_job *job, const g3_metrics *m, const pace *p, bool line) {
  g3_number_text eta, rate;
  char val[48] = "", mfu[32] = "", text[320];
  const int64_t steps = job->config->train.steps;
  if (m->has_val) snprintf(val, sizeof val, "  val_loss %.4f", m->val_loss);
  if (m->has_mfu) snprintf(mfu, sizeof mfu, "  MFU %.1f %%", 100.0 * m->mfu);
  snprintf(text, sizeof text,
           "step %lld/%lld  loss %.4f%s  lr %.3g  grad_norm %.3f  %s tok/s  %.4f TFLOP/s%s  ETA %s",
           (long long)m->step, (long long)steps, m->loss, val, m->lr, m->grad_norm,
           g3_text_count((int64_t)m->tok_s, rate), m->tflops, mfu,
           g3_text_duration((double)(steps - m->step) * mean_step(p, m->step_s), eta));
  if (line)
    G3_INFO("%s", text);
  else
    g3_log_progress("%s", text);
}

/* Why a step was skipped, and where that arose. Collective. */
static g3_status say_skipped(g3_job *job, const g3_step_result *r) {
  const bool finite = isfinite(r->loss) && isfinite(r->grad_norm);
  const char *why = finite ? "its square does not fit f32 moments" : "not finite";
  g3_number_text loss, norm;
  if (job->world->rank == 0)
    G3_WARN("step %lld: loss %s, gradient norm %s: %s, so the update was skipped (%lld in a row)%s",
            (long long)job->step, g3_text_double(r->loss, loss), g3_text_double(r->grad_norm, norm),
            why, (long long)job->bad_steps, finite ? "; use --clip" : "");
  return finite ? G3_OK : g3_culprit_report(job);
}

/* A NaN or Inf is never silent. Fails, alike on all ranks, after too many skipped steps in a row.
 */
static g3_status watch_numbers(g3_job *job, const g3_step_result *r) {
  const int64_t most = job->config->train.bad_steps;
  if (!r->skipped) {
    job->bad_steps = 0;
    return G3_OK;
  }
  job->bad_steps++;
  G3_TRY(say_skipped(job, r));
  if (most == 0 || job->bad_steps < most) return G3_OK;
  return G3_FAIL(
      G3_ENUMERIC,
      "%lld %s not finite; the last good checkpoint is untouched; lower --lr, raise --warmup, or "
      "look at the data near sample %lld",
      (long long)job->bad_steps, job->bad_steps == 1 ? "step was" : "steps in a row were",
      (long long)job->consumed);
}

static g3_status save(g3_job *job) {
  const double start = g3_now();
  g3_number_text took;
  G3_TRY(g3_state_save(job));
  G3_INFO("saved %s/checkpoints/step-%08lld in %s", job->config->run.out, (long long)job->step,
          g3_text_duration(g3_now() - start, took));
  return G3_OK;
}

/* One step with all that follows it. *saved: this step is on disk. */
static g3_status one_step(g3_job *job, pace *p, bool *stop, bool *saved) {
  const g3_config *c = job->config;
  g3_step_result r;
  const double begin = g3_now();
  G3_TRY(g3_step(job, &r));
  const double seconds = g3_now() - begin;
  if (job->step > job->start_step + 1) {
    p->timed += seconds;
    p->timed_steps++;
  }
  g3_metrics m = measure(job, &r, seconds);
  if (every(c->data.eval_interval, job->step) && job->split.val_samples > 0) {
    G3_TRY(g3_evaluate(job, &m.val_loss));
    m.has_val = true;
  }
  const bool last = job->step == c->train.steps || r.stop;
  const bool first = job->step == job->start_step + 1;
  say(job, &m, p, first || last || m.has_val || every(c->run.log_interval, job->step));
  G3_TRY(g3_comm_agree(job->world, g3_rundir_metrics(&job->dir, &m)));
  G3_TRY(watch_numbers(job, &r));
  *stop = r.stop;
  *saved = job->bad_steps == 0 && every(c->run.save_interval, job->step);
  return *saved ? save(job) : G3_OK;
}

/* Where the curve begins. Not a step: it is in the log, not in metrics.jsonl. */
static g3_status evaluate_start(g3_job *job) {
  double loss;
  if (job->step > 0 || job->config->data.eval_interval == 0 || job->split.val_samples == 0)
    return G3_OK;
  G3_TRY(g3_evaluate(job, &loss));
  G3_INFO("step 0/%lld  val_loss %.4f", (long long)job->config->train.steps, loss);
  return G3_OK;
}

g3_status g3_loop(g3_job *job, g3_exit *code) {
  const g3_config *c = job->config;
  pace p = {0};
  bool stop = false, saved = true;
  G3_TRY(evaluate_start(job));
  while (job->step < c->train.steps && !stop)
    G3_TRY(one_step(job, &p, &stop, &saved));
  const bool wanted = c->run.save_interval > 0 || stop;
  if (!saved && wanted && job->bad_steps == 0) G3_TRY(save(job));
  *code = stop ? G3_EXIT_STOPPED : G3_EXIT_DONE;
  return G3_OK;
}
