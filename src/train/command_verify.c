/* gpt3d verify: does this layout compute what one rank computes? */
#include "train/session.h"
#include "train/verify.h"
#include "util/array.h"
#include "util/fault.h"
#include "util/log.h"
#include <stddef.h>

static int64_t at_most(int64_t x, int64_t most) {
  return x < most ? x : most;
}

/* The same family in a size that one rank holds: as many heads and stages as the layout needs, head
 * size, ratio of widths and what does not divide kept as far as a small model can. */
static void shrink(g3_config *c) {
  g3_model_config *m = &c->model;
  const int64_t tp = c->parallel.tp, micros = 2 * c->parallel.pp;
  const int64_t ratio_up = m->ffn, ratio_down = m->width;
  const int64_t head = at_most(m->width / m->heads, 16);
  m->heads = tp * at_most(m->heads / tp, 2);
  m->width = m->heads * head;
  m->ffn = g3_round_up(m->width * ratio_up / ratio_down, tp);
  m->layers = at_most(m->layers, c->parallel.pp + 1);
  m->vocab = at_most(m->vocab, 256 + m->vocab % 256);
  m->seq = at_most(m->seq, 16 * tp);
  const int64_t step = c->train.micro_batch * c->parallel.dp;
  c->train.global_batch = at_most(c->train.global_batch, step * micros);
}

/* What has no meaning for two steps that are thrown away. */
static void no_files(g3_config *c) {
  c->data.eval_interval = 0;
  c->data.val_split = 0.0;
  c->run.save_interval = 0;
}

static void one_rank(g3_config *c) {
  c->parallel.tp = c->parallel.pp = c->parallel.dp = 1;
  c->parallel.sequence_parallel = false;
  c->parallel.zero = 0;
  c->run.threads = 1;
}

/* Weights in which nothing is hidden behind a zero or a one. */
static g3_status random_weights(g3_job *job) {
  G3_TRY(g3_gpt_init(job->rank->gpt, job->compute, true));
  return g3_optim_adopt(job->rank->optim, job->compute);
}

/* A job of one rank with fresh weights, on rank 0 alone. */
typedef struct {
  g3_settings *settings;
  g3_comm *self;
  g3_job job;
  bool open;
} reference;

static g3_status open_reference(const g3_settings *layout, int argc, char **argv, bool f32,
                                reference *r) {
  G3_TRY(g3_settings_load(argc, argv, &r->settings));
  r->settings->value = layout->value;
  one_rank(&r->settings->value);
  if (f32) r->settings->value.train.dtype = G3_TYPE_F32;
  G3_TRY(g3_config_check(r->settings));
  G3_TRY(g3_comm_self(&r->self));
  G3_TRY(g3_job_open(r->settings, r->self, &r->job));
  r->open = true;
  return random_weights(&r->job);
}

static void close_reference(reference *r) {
  if (r->open) g3_job_close(&r->job);
  g3_comm_destroy(r->self);
  g3_settings_free(r->settings);
}

static g3_status run_steps(const g3_verify_jobs *jobs, int64_t steps, bool *good) {
  *good = true;
  for (int64_t s = 0; s < steps; s++) {
    bool one;
    G3_TRY(g3_verify_step(jobs, &one));
    *good = *good && one;
  }
  return G3_OK;
}

static g3_status compare(g3_session *s, int argc, char **argv, int64_t steps, bool *good) {
  const bool bf16 = s->settings->value.train.dtype == G3_TYPE_BF16;
  reference one = {NULL}, exact = {NULL};
  g3_job layout;
  G3_TRY(g3_job_open(s->settings, s->world, &layout));
  g3_verify_jobs jobs = {.layout = &layout};
  g3_status st = random_weights(&layout);
  if (st == G3_OK && s->world->rank == 0) {
    g3_fault_suspend(true);
    st = open_reference(s->settings, argc, argv, false, &one);
    if (st == G3_OK && bf16) st = open_reference(s->settings, argc, argv, true, &exact);
    g3_fault_suspend(false);
    jobs.one = &one.job;
    jobs.exact = bf16 ? &exact.job : NULL;
  }
  st = g3_comm_agree(s->world, st);
  if (st == G3_OK) st = run_steps(&jobs, steps, good);
  close_reference(&exact);
  close_reference(&one);
  g3_job_close(&layout);
  return st;
}

static g3_status verify(g3_session *s, int argc, char **argv, bool *good) {
  g3_settings *settings = s->settings;
  const g3_option *o = g3_option_at(offsetof(g3_config, train.steps));
  const bool asked = settings->origin[o - g3_options].kind == G3_FROM_COMMAND;
  const int64_t steps = asked ? settings->value.train.steps : 1;
  G3_TRY(g3_comm_agree(s->world, g3_config_world(settings, s->world->size)));
  if (settings->value.command.shrink) shrink(&settings->value);
  no_files(&settings->value);
  G3_TRY(g3_comm_agree(s->world, g3_config_check(settings)));
  const g3_model_config *m = &settings->value.model;
  G3_INFO("verify   tp %lld x pp %lld x dp %lld, %lld step%s, against one rank: %lld layers, %lld "
          "heads, width %lld, ffn %lld, seq %lld, vocab %lld",
          (long long)settings->value.parallel.tp, (long long)settings->value.parallel.pp,
          (long long)settings->value.parallel.dp, (long long)steps, steps == 1 ? "" : "s",
          (long long)m->layers, (long long)m->heads, (long long)m->width, (long long)m->ffn,
          (long long)m->seq, (long long)m->vocab);
  return compare(s, argc, argv, steps, good);
}

g3_exit g3_command_verify(int argc, char **argv) {
  g3_session s;
  g3_exit code;
  if (g3_session_begin(argc, argv, true, &s, &code)) {
    bool good = false;
    const g3_status st = verify(&s, argc, argv, &good);
    code = g3_session_verdict(&s, st, good ? G3_EXIT_DONE : G3_EXIT_FAILED);
    if (st == G3_OK)
      G3_INFO("%s", good ? "verified: this layout computes what one rank computes"
                         : "NOT VERIFIED: this layout computes something else");
  }
  g3_session_end(&s);
  return code;
}
