#include "train/step.h"
#include "optim/lr.h"
#include "train/debug_nan.h"
#include "train/signals.h"
#include "util/fault.h"
#include <math.h>
#include <stdint.h>

/* Added to the sums' stop entry by a rank that failed; signals add 1 each. */
static const double failed_mark = 1e9;

/* This rank's first sample of a global batch: dp rank d has samples d * B / dp ... of it, in order.
 */
static int64_t my_first_sample(const g3_job *job) {
  const int64_t each = job->config->train.global_batch / job->mesh->grid.size[G3_DP];
  if (g3_fault("data-by-rank")) return each * job->mesh->me.at[G3_DP] + job->world->rank;
  return each * job->mesh->me.at[G3_DP];
}

/* Inside a step the other ranks wait for this one: a failure here ends the whole job at once. */
static void must(g3_status st) {
  if (st != G3_OK) g3_die(__FILE__, __LINE__, "%s [%s]", g3_last_error(), g3_last_trace());
}

typedef g3_status (*sample_fn)(const g3_tokens *, const g3_split *, int64_t, int32_t *);

/* Fills the batch with samples first, first + 1, ...; those from `end` on are no tokens. */
static g3_status read_batch(g3_job *job, sample_fn sample, int64_t first, int64_t end) {
  int32_t *tokens = job->rank->tokens.data;
  const int64_t samples = job->rank->tokens.dim[0], length = job->rank->tokens.dim[1];
  for (int64_t i = 0; i < samples; i++) {
    int32_t *row = tokens + i * length;
    if (first + i < end)
      G3_TRY(sample(job->tokens, &job->split, first + i, row));
    else
      for (int64_t t = 0; t < length; t++)
        row[t] = -1;
  }
  return G3_OK;
}

static g3_status flush(void *ctx, int stage, g3_stream *s) {
  (void)stage;
  return g3_reducer_flush(ctx, s);
}

static g3_status clear(g3_job *job, bool grads) {
  if (grads) G3_TRY(job->dev->ops->fill(job->compute, job->rank->grads, 0.0f));
  return g3_optim_clear(job->rank->optim, job->compute);
}

/* What the host knows: the tokens of the batch, signals, failures. */
static g3_status add_host_sums(g3_job *job, bool failed) {
  const g3_tensor sums = g3_optim_sums(job->rank->optim);
  double host[2] = {0.0, 0.0};
  if (job->world->rank == 0)
    host[0] = (double)(job->config->train.global_batch * job->config->model.seq);
  host[1] = (g3_signal_pending() ? 1.0 : 0.0) + (failed ? failed_mark : 0.0);
  G3_TRY(job->dev->ops->copy(job->compute, g3_tensor_part(sums, 0, G3_SUM_TOKENS, 2),
                             g3_tensor_1d(host, G3_F64, 2)));
  return job->dev->ops->sync(job->compute);
}

static g3_status sum_up(g3_job *job, bool loss_alone) {
  return g3_optim_sum_up(job->rank->optim, job->compute, job->world, loss_alone);
}

static g3_status read_control(g3_job *job, g3_control *out) {
  const g3_tensor host = g3_tensor_1d(out, G3_U8, (int64_t)sizeof *out);
  G3_TRY(job->dev->ops->copy(job->compute, host, g3_optim_control(job->rank->optim)));
  return job->dev->ops->sync(job->compute);
}

/* Sums over all ranks; with one that failed, every rank returns its failure. */
static g3_status agree_by_sums(g3_job *job, g3_status local) {
  const g3_tensor sums = g3_optim_sums(job->rank->optim);
  double stop;
  must(g3_optim_squares(job->rank->optim, job->compute));
  must(add_host_sums(job, local != G3_OK));
  must(sum_up(job, false));
  must(job->dev->ops->copy(job->compute, g3_tensor_1d(&stop, G3_F64, 1),
                           g3_tensor_part(sums, 0, G3_SUM_STOP, 1)));
  must(job->dev->ops->sync(job->compute));
  return stop >= failed_mark ? g3_comm_agree(job->world, local) : G3_OK;
}

/* Reads the batch and clears what it adds to. */
static g3_status begin_step(g3_job *job) {
  const int64_t first = job->consumed + my_first_sample(job);
  const g3_status local = read_batch(job, g3_sample_train, first, INT64_MAX);
  must(clear(job, true));
  g3_gpt_batch(job->rank->gpt, job->rank->tokens.data, first, true);
  return local;
}

g3_status g3_step_backward(g3_job *job) {
  const bool put_nan = g3_debug_nan_due(job);
  const g3_status local = begin_step(job);
  if (put_nan) g3_gpt_watch(job->rank->gpt, g3_debug_nan_see, job);
  must(g3_runtime_run(job->rank->train, g3_reducer_bucket, flush, job->reducer));
  if (put_nan) g3_gpt_watch(job->rank->gpt, NULL, NULL);
  return agree_by_sums(job, local);
}

g3_status g3_step_again(g3_job *job) {
  const int64_t batch = job->config->train.global_batch;
  job->step--;
  job->consumed -= batch;
  must(begin_step(job)); /* the step read the same samples */
  must(g3_runtime_run(job->rank->train, NULL, NULL, NULL));
  must(job->dev->ops->sync(job->compute));
  job->step++;
  job->consumed += batch;
  return G3_OK;
}

void g3_step_update(g3_job *job, g3_step_result *out) {
  const g3_config *c = job->config;
  const double lr = g3_lr_at(&c->optim, c->train.steps, job->step + 1);
  g3_control control;
  must(g3_optim_step(job->rank->optim, job->compute, &c->optim, lr));
  must(g3_reducer_gather(job->reducer, job->compute));
  must(read_control(job, &control));
  job->step++;
  job->consumed += c->train.global_batch;
  *out = (g3_step_result){.loss = control.loss_sum / control.tokens,
                          .grad_norm = control.norm,
                          .lr = lr,
                          .skipped = control.skip != 0,
                          .stop = control.stop > 0.0};
}

g3_status g3_step(g3_job *job, g3_step_result *out) {
  G3_TRY(g3_step_backward(job));
  g3_step_update(job, out);
  return G3_OK;
}

/* Mean loss over `tokens`, which samples [0, end) hold. */
static g3_status evaluate(g3_job *job, sample_fn sample, int64_t end, int64_t tokens,
                          double *loss) {
  const int64_t batch = job->config->train.global_batch;
  double sum;
  must(clear(job, false));
  for (int64_t pass = 0; pass < end; pass += batch) {
    const g3_status local = read_batch(job, sample, pass + my_first_sample(job), end);
    G3_TRY(g3_comm_agree(job->world, local));
    g3_gpt_batch(job->rank->gpt, job->rank->tokens.data, 0, false);
    must(g3_runtime_run(job->rank->eval, NULL, NULL, NULL));
  }
  must(sum_up(job, true));
  must(job->dev->ops->copy(job->compute, g3_tensor_1d(&sum, G3_F64, 1),
                           g3_tensor_part(g3_optim_sums(job->rank->optim), 0, G3_SUM_LOSS, 1)));
  must(job->dev->ops->sync(job->compute));
  *loss = sum / (double)tokens;
  return G3_OK;
}

g3_status g3_evaluate(g3_job *job, double *loss) {
  const int64_t asked = job->config->data.eval_samples, all = job->split.val_samples;
  const int64_t end = asked > 0 && asked < all ? asked : all;
  return evaluate(job, g3_sample_val, end, end * job->split.seq, loss);
}

g3_status g3_evaluate_file(g3_job *job, double *loss) {
  const int64_t tokens = g3_tokens_count(job->tokens);
  return evaluate(job, g3_sample_file, g3_file_windows(tokens, job->split.seq), tokens - 1, loss);
}
