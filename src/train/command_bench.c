/* gpt3d bench train */
#include "comm/timed.h"
#include "plan/report.h"
#include "train/args.h"
#include "train/bench.h"
#include "train/memory.h"
#include "train/session.h"
#include "train/state.h"
#include "train/step.h"
#include "util/array.h"
#include "util/clock.h"
#include "util/log.h"
#include <stdlib.h>
#include <string.h>

/* What a run differs in, put before the user's own flags, which win. */
static const char *const defaults[] = {"--steps",         "8", "--data",          "mock",
                                       "--val-split",     "0", "--save-interval", "0",
                                       "--eval-interval", "0"};
enum { DEFAULTS = sizeof defaults / sizeof defaults[0] };

/* The communicators that a step uses. */
static int comms_of(const g3_mesh *mesh, g3_comm *out[(1 << G3_AXES) + 1]) {
  int n = 0;
  for (int axes = 0; axes < 1 << G3_AXES; axes++)
    if (mesh->over[axes]) out[n++] = mesh->over[axes];
  if (mesh->ends) out[n++] = mesh->ends;
  return n;
}

/* What was counted in the last step. */
static void take(const g3_timed *timed, g3_bench_rank *me, g3_timed_product *shapes, int *n) {
  const g3_timed_row *row = g3_timed_rows(timed, &me->nrows);
  memcpy(me->row, row, (size_t)me->nrows * sizeof *row);
  const g3_timed_product *p = g3_timed_products(timed, n);
  memcpy(shapes, p, (size_t)*n * sizeof *p);
}

/* Rank 0 says whether the last step was its fastest, so that all take the same one. */
static g3_status is_fastest(g3_comm *world, double seconds, double fastest, bool *out) {
  *out = fastest == 0 || seconds < fastest;
  return world->ops->host_broadcast(world, out, sizeof *out, 0);
}

/* The first step compiles products and opens connections: it is not counted. *shapes gets the
 * products of the fastest step. */
static g3_status run_steps(g3_job *job, g3_timed *timed, g3_bench_rank *me,
                           g3_timed_product *shapes, int *n) {
  g3_step_result r;
  double sum = 0;
  G3_TRY(g3_step(job, &r));
  me->steps = job->config->train.steps;
  for (int64_t i = 0; i < me->steps; i++) {
    bool fastest;
    g3_timed_clear(timed);
    const double begin = g3_now();
    G3_TRY(g3_step(job, &r));
    const double seconds = g3_now() - begin;
    sum += seconds;
    G3_TRY(is_fastest(job->world, seconds, me->seconds, &fastest));
    if (!fastest) continue;
    me->seconds = seconds;
    take(timed, me, shapes, n);
  }
  me->mean = sum / (double)me->steps;
  me->loss = r.loss;
  return G3_OK;
}

/* Steps with the tables of device and communicators replaced. */
static g3_status run_timed(g3_job *job, g3_bench_rank *me, g3_timed_product *shapes, int *n) {
  g3_comm *comm[(1 << G3_AXES) + 1];
  const int ncomms = comms_of(job->mesh, comm);
  g3_timed *timed;
  G3_TRY(g3_timed_begin(job->dev, &timed));
  g3_status st = G3_OK;
  for (int i = 0; i < ncomms && st == G3_OK; i++)
    st = g3_comm_timed_begin(comm[i], timed);
  if (st == G3_OK) st = run_steps(job, timed, me, shapes, n);
  for (int i = 0; i < ncomms; i++)
    g3_comm_timed_end(comm[i]);
  g3_timed_end(timed);
  return st;
}

static void sum_products(const g3_bench_product *p, int n, g3_bench_rank *me) {
  for (int i = 0; i < n; i++) {
    const g3_timed_product *s = &p[i].in_step;
    me->products += s->seconds;
    me->products_alone += (double)s->calls * p[i].alone;
    me->products_flops += (double)s->calls * 2.0 * (double)s->m * (double)s->n * (double)s->k;
  }
}

static g3_status measure(g3_job *job, g3_bench_rank *me, g3_bench_product *product, int *n) {
  g3_timed_product shapes[G3_TIMED_PRODUCTS];
  for (int c = 0; c < G3_MEM_CLASSES; c++)
    me->planned += (int64_t)job->bytes[c];
  G3_TRY(g3_comm_agree(job->world, run_timed(job, me, shapes, n)));
  me->resident_peak = g3_memory_peak();
  me->resident_before = job->resident_before;
  G3_TRY(
      job->world->ops->barrier(job->world)); /* all ranks multiply at the same time, as in a step */
  G3_TRY(g3_comm_agree(job->world, g3_bench_products(job, shapes, *n, product)));
  sum_products(product, *n, me);
  return G3_OK;
}

/* What --exact is held against. */
typedef struct {
  double seconds;
  int64_t planned;
} fast_run;

static g3_status tell(const g3_job *job, const g3_bench_rank *all, const g3_bench_product *product,
                      int n, const fast_run *fast) {
  const g3_bench b = {.job = job,
                      .rank = all,
                      .product = product,
                      .nproducts = n,
                      .fast_seconds = fast->seconds,
                      .fast_planned = fast->planned};
  return job->config->command.json ? g3_bench_json(&b, stdout) : g3_bench_print(&b, stdout);
}

static g3_status bench_job(g3_job *job, g3_bench_rank *me, const fast_run *fast) {
  const g3_start fresh = {.kind = G3_START_FRESH};
  g3_bench_product product[G3_TIMED_PRODUCTS];
  const bool json = job->config->command.json, speaks = job->world->rank == 0;
  g3_comm *world = job->world;
  void *all;
  size_t *sizes;
  int n = 0;
  g3_status st = G3_OK;
  if (speaks && !json)
    st = g3_report_run(job->config, &job->mesh->grid, job->dev->ops->name, job->threads.threads);
  G3_TRY(g3_comm_agree(world, st));
  G3_TRY(g3_start_load(job, &fresh));
  G3_TRY(measure(job, me, product, &n));
  G3_TRY(world->ops->host_gather(world, me, sizeof *me, 0, &all, &sizes));
  if (speaks) st = tell(job, all, product, n, fast);
  free(all);
  free(sizes);
  return g3_comm_agree(world, st);
}

/* The fastest step, untimed inside, after one that is not counted. */
static g3_status run_fast(g3_job *job, fast_run *out) {
  const g3_start fresh = {.kind = G3_START_FRESH};
  g3_step_result r;
  G3_TRY(g3_start_load(job, &fresh));
  G3_TRY(g3_step(job, &r));
  for (int64_t i = 0; i < job->config->train.steps; i++) {
    const double begin = g3_now();
    G3_TRY(g3_step(job, &r));
    const double seconds = g3_now() - begin;
    if (i == 0 || seconds < out->seconds) out->seconds = seconds;
  }
  for (int c = 0; c < G3_MEM_CLASSES; c++)
    out->planned += (int64_t)job->bytes[c];
  return job->world->ops->host_all_reduce(job->world, &out->planned, 1, G3_MAX);
}

/* The same flags with --exact taken back at their end: also the micro-batch that they ask for. */
static g3_status measure_fast(g3_comm *world, int argc, char **argv, fast_run *out) {
  g3_settings *settings = NULL;
  char off[] = "--exact=false", **all;
  g3_job job;
  G3_TRY(G3_NEW_ARRAY((int64_t)argc + 1, &all));
  memcpy(all, argv, (size_t)argc * sizeof *argv);
  all[argc] = off;
  g3_status st = g3_settings_load(argc + 1, all, &settings);
  if (st == G3_OK) st = g3_config_world(settings, world->size);
  if (st == G3_OK) st = g3_config_check(settings);
  st = g3_comm_agree(world, st);
  if (st == G3_OK && (st = g3_job_open(settings, world, &job)) == G3_OK) {
    st = g3_comm_agree(world, run_fast(&job, out));
    g3_job_close(&job);
  }
  g3_settings_free(settings);
  free(all);
  return st;
}

static g3_status bench_train(g3_session *s, int argc, char **argv) {
  g3_bench_rank me;
  g3_job job;
  fast_run fast = {0, 0};
  memset(&me, 0, sizeof me);
  if (s->settings->value.command.dry_run)
    return G3_FAIL(G3_EINVAL, "--dry-run measures nothing: use it with gpt3d train");
  if (s->settings->value.command.json) g3_log_setup(s->world->rank, G3_LOG_WARN);
  G3_TRY(g3_config_world(s->settings, s->world->size));
  G3_TRY(g3_config_check(s->settings));
  if (s->settings->value.train.exact) G3_TRY(measure_fast(s->world, argc, argv, &fast));
  G3_TRY(g3_job_open(s->settings, s->world, &job));
  const g3_status st = bench_job(&job, &me, &fast);
  g3_job_close(&job);
  return st;
}

/* The session of a run with our defaults before the user's flags. */
static g3_exit run(int argc, char **argv) {
  g3_session s;
  g3_exit code;
  char **all;
  const g3_status st = G3_NEW_ARRAY((int64_t)argc + DEFAULTS, &all);
  if (st != G3_OK) return g3_args_verdict(st, G3_EXIT_DONE);
  memcpy(all, defaults, sizeof defaults);
  memcpy(all + DEFAULTS, argv, (size_t)argc * sizeof *argv);
  if (g3_session_begin(argc + DEFAULTS, all, false, &s, &code))
    code = g3_session_verdict(&s, bench_train(&s, argc + DEFAULTS, all), G3_EXIT_DONE);
  g3_session_end(&s);
  free(all);
  return code;
}

g3_exit g3_command_bench(int argc, char **argv) {
  const g3_args usage = {
      .command = "gpt3d bench train",
      .words = "[FLAGS OF TRAIN] [--json]",
      .about = "Trains --steps 8 on generated data without evaluation or checkpoints, and prints "
               "where the time\nof the fastest step goes, the products' own rate, and memory; with "
               "--exact, also "
               "what that costs.\ngpt3d train --help lists the flags."};
  bool help = false;
  if (argc > 0 && strcmp(argv[0], "train") == 0) return run(argc - 1, argv + 1);
  if (argc > 0 && argv[0][0] == '-') {
    const g3_status st = g3_args_parse(&usage, argc, argv, &help);
    if (help || st != G3_OK) return g3_args_verdict(st, G3_EXIT_DONE);
  }
  return g3_args_verdict(G3_FAIL(G3_EINVAL, "gpt3d bench wants train; found %s%.40s%s",
                                 argc > 0 ? "\"" : "nothing", argc > 0 ? argv[0] : "",
                                 argc > 0 ? "\"" : ""),
                         G3_EXIT_DONE);
}
