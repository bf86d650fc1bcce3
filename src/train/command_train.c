/* gpt3d [train] */
#include "plan/report.h"
#include "train/debug_nan.h"
#include "train/loop.h"
#include "train/memory.h"
#include "train/recipe.h"
#include "train/session.h"
#include "train/signals.h"
#include "train/state.h"
#include "util/log.h"

/* Rank 0 prepares the run directory; the others learn whether it worked. */
static g3_status open_rundir(g3_job *job, const g3_start *start) {
  const char *out = job->config->run.out;
  g3_status st = G3_OK;
  if (job->world->rank == 0) {
    st = g3_rundir_make(out);
    if (st == G3_OK) st = g3_rundir_lock(out, &job->dir);
    if (st == G3_OK && start->clear) st = g3_rundir_clear(out);
    if (st == G3_OK) st = g3_rundir_make(out);
    if (st == G3_OK) st = g3_rundir_open(job->settings, job->step, &job->dir);
  }
  return g3_comm_agree(job->world, st);
}

static void say_start(const g3_job *job, const g3_start *start) {
  static const char *const texts[] = {[G3_START_FRESH] = "starting from new weights, seed",
                                      [G3_START_RESUME] = "resuming from",
                                      [G3_START_INIT] = "starting from the weights of"};
  if (start->index)
    G3_INFO("%s %s, step %lld", texts[start->kind], start->index->path, (long long)job->step);
  else
    G3_INFO("%s %llu", texts[start->kind], (unsigned long long)job->config->train.seed);
  if (start->kind == G3_START_RESUME) g3_recipe_say_changes(job->config, &start->index->meta);
}

/* A run that is over stays as it is. */
static bool already_done(const g3_job *job, const g3_start *start) {
  const int64_t at = start->index && start->kind == G3_START_RESUME ? start->index->meta.step : -1;
  const int64_t steps = job->config->train.steps;
  if (at < steps) return false;
  if (at == steps)
    G3_INFO("already at step %lld: nothing to do; go on with a larger --steps", (long long)at);
  else
    G3_INFO("the checkpoint %s is at step %lld > --steps %lld: nothing to do", start->index->path,
            (long long)at, (long long)steps);
  return true;
}

static g3_status run(g3_job *job, const g3_start *start, g3_exit *code) {
  G3_TRY(g3_comm_agree(job->world, g3_debug_nan_read(job)));
  G3_TRY(g3_start_load(job, start));
  G3_TRY(open_rundir(job, start));
  g3_status told = G3_OK;
  if (job->world->rank == 0)
    told = g3_report_run(job->config, &job->mesh->grid, job->dev->ops->name, job->threads.threads);
  G3_TRY(g3_comm_agree(job->world, told));
  G3_TRY(g3_memory_report(job));
  G3_INFO("data: %s, %lld tokens: %lld training and %lld validation samples of %lld",
          job->config->data.path, (long long)g3_tokens_count(job->tokens),
          (long long)job->split.train_samples, (long long)job->split.val_samples,
          (long long)job->config->model.seq);
  say_start(job, start);
  G3_TRY(g3_loop(job, code));
  return g3_memory_report_peak(job);
}

static g3_status train(g3_session *s, g3_start *start, g3_exit *code) {
  g3_job job;
  G3_TRY(g3_start_find(s->settings, s->world, start));
  G3_TRY(g3_comm_agree(s->world, g3_config_world(s->settings, s->world->size)));
  G3_TRY(g3_comm_agree(s->world, g3_config_check(s->settings)));
  job = (g3_job){.config = &s->settings->value};
  if (already_done(&job, start)) return G3_OK;
  G3_TRY(g3_job_open(s->settings, s->world, &job));
  const g3_status st = run(&job, start, code);
  g3_job_close(&job);
  return st;
}

static g3_exit dry_run(int argc, char **argv) {
  g3_session s;
  g3_exit code;
  if (g3_session_begin(argc, argv, false, &s, &code)) {
    const g3_status st = s.world->rank == 0 ? g3_report_plan(s.settings, s.world->size) : G3_OK;
    code = g3_session_verdict(&s, st, G3_EXIT_DONE);
  }
  g3_session_end(&s);
  return code;
}

static bool asks_for_dry_run(int argc, char **argv) {
  g3_settings *settings;
  if (g3_settings_load(argc, argv, &settings) != G3_OK) return false;
  const bool asks = settings->value.command.dry_run;
  g3_settings_free(settings);
  return asks;
}

g3_exit g3_command_train(int argc, char **argv) {
  if (asks_for_dry_run(argc, argv)) return dry_run(argc, argv);
  g3_session s;
  g3_start start = {.kind = G3_START_FRESH};
  g3_exit code;
  g3_signals_catch();
  if (g3_session_begin(argc, argv, true, &s, &code)) {
    const g3_status st = train(&s, &start, &code);
    code = g3_session_verdict(&s, st, code);
  }
  g3_start_free(&start);
  g3_session_end(&s);
  return code;
}
