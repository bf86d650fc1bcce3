#include "train/culprit.h"
#include "train/debug_nan.h"
#include "train/finite.h"
#include "train/step.h"
#include "util/log.h"
#include <stdlib.h>
#include <string.h>

/* What follows from what: a bad weight spoils the forward, that the backward, that the gradients.
 */
typedef enum { WEIGHTS, FORWARD, BACKWARD, GRADIENTS, NOTHING } phase;

/* The first tensor of a rank that was not finite. */
typedef struct {
  phase when;
  int64_t micro; /* of the global batch */
  int64_t turn; /* place in the order of a micro-batch's work */
  int64_t row; /* token of the micro-batch */
  int layer, rank;
  g3_seen_kind kind;
  g3_coord at;
  char param[sizeof((g3_param *)0)->name];
} sighting;

typedef struct {
  g3_job *job;
  sighting first;
} search;

static bool earlier(const sighting *a, const sighting *b) {
  if (a->when != b->when) return a->when < b->when;
  return a->micro != b->micro ? a->micro < b->micro : a->turn < b->turn;
}

/* A g3_see_fn: keeps the first bad tensor; those that come after it in the order are not read. */
static g3_status look(void *ctx, g3_stream *s, const g3_seen *seen) {
  search *f = ctx;
  g3_job *job = f->job;
  if (g3_debug_nan_due(job)) G3_TRY(g3_debug_nan_see(job, s, seen));
  const bool forward = seen->kind < G3_SEEN_D_FINAL;
  const int64_t layer = forward ? seen->layer : -seen->layer;
  sighting found = f->first;
  found.when = forward ? FORWARD : BACKWARD;
  found.micro = job->mesh->me.at[G3_DP] * job->rank->micros + seen->micro;
  found.turn = layer * G3_SEEN_KINDS + (int64_t)seen->kind;
  found.layer = seen->layer;
  found.kind = seen->kind;
  if (!earlier(&found, &f->first)) return G3_OK;
  G3_TRY(g3_finite_row(job, seen->t, &found.row));
  if (found.row < 0) return G3_OK;
  found.row += seen->row;
  f->first = found;
  return G3_OK;
}

/* Among this rank's parameters, or their gradients. */
static g3_status look_at_flat(search *f, g3_tensor flat, phase when) {
  const g3_flat *layout = f->job->rank->flat;
  for (int i = 0; i < layout->nparams && when < f->first.when; i++) {
    const g3_param *p = &layout->param[i];
    bool finite;
    G3_TRY(g3_finite(f->job, g3_tensor_part(flat, 0, p->offset, p->count), &finite));
    if (finite) continue;
    f->first.when = when;
    f->first.turn = p->number;
    memcpy(f->first.param, p->name, sizeof f->first.param);
  }
  return G3_OK;
}

/* The first of all ranks, on rank 0. */
static g3_status first_of_all(g3_job *job, sighting *first) {
  void *bytes;
  size_t *sizes;
  G3_TRY(job->world->ops->host_gather(job->world, first, sizeof *first, 0, &bytes, &sizes));
  if (job->world->rank != 0) return G3_OK;
  const sighting *of_rank = bytes;
  for (int r = 1; r < job->world->size; r++)
    if (earlier(&of_rank[r], first)) *first = of_rank[r];
  free(bytes);
  free(sizes);
  return G3_OK;
}

/* Where samples [first, first + count) lie in the data, as many as a line holds. */
static g3_status say_samples(const g3_job *job, int64_t first, int64_t count) {
  enum { MOST = 8 };
  char text[MOST * 160] = "";
  size_t used = 0;
  for (int64_t i = 0; i < count && i < MOST; i++) {
    const int64_t token = g3_sample_train_token(&job->split, first + i);
    g3_token_place p;
    G3_TRY(g3_tokens_place(job->tokens, token, &p));
    used += (size_t)snprintf(text + used, sizeof text - used, "%s%lld at token %lld", i ? ", " : "",
                             (long long)(first + i), (long long)token);
    if (p.byte >= 0)
      used += (size_t)snprintf(text + used, sizeof text - used,
                               " (byte %lld, token %lld of document %lld)", (long long)p.byte,
                               (long long)p.inside, (long long)p.document);
  }
  G3_WARN("step %lld: samples of %s, each of %lld tokens: %s%s", (long long)job->step,
          g3_tokens_file(job->tokens), (long long)job->split.seq + 1, text,
          count > MOST ? ", ..." : "");
  return G3_OK;
}

/* A tensor of a micro-batch's work. */
static g3_status say_tensor(const g3_job *job, const sighting *f, const char *place) {
  const g3_train_config *t = &job->config->train;
  const int64_t seq = job->config->model.seq;
  const int64_t first = job->consumed - t->global_batch + f->micro * t->micro_batch;
  G3_WARN("step %lld: first not finite: %s, layer %d, tensor %s, micro-batch %lld, sample %lld at "
          "position %lld",
          (long long)job->step, place, f->layer, g3_seen_names[f->kind], (long long)f->micro,
          (long long)(first + f->row / seq), (long long)(f->row % seq));
  return say_samples(job, first, t->micro_batch);
}

static g3_status say(const g3_job *job, const sighting *f) {
  char place[96];
  snprintf(place, sizeof place, "rank %d (tp %d, dp %d, pp %d), stage %d", f->rank, f->at.at[G3_TP],
           f->at.at[G3_DP], f->at.at[G3_PP], f->at.at[G3_PP]);
  if (f->when == FORWARD || f->when == BACKWARD) return say_tensor(job, f, place);
  if (f->when == WEIGHTS)
    G3_WARN("step %lld: not finite before the step: weight %s on %s; go on from an earlier "
            "checkpoint",
            (long long)job->step, f->param, place);
  else if (f->when == GRADIENTS)
    G3_WARN("step %lld: first not finite: %s, gradient of %s, though all that it is made of is "
            "finite: it overflows",
            (long long)job->step, place, f->param);
  else
    G3_WARN("step %lld: computed once more, every number is finite on every rank: a sum over ranks "
            "overflows, or memory or network change numbers",
            (long long)job->step);
  return G3_OK;
}

static g3_status search_all(search *f) {
  g3_job *job = f->job;
  G3_TRY(look_at_flat(f, job->rank->params, WEIGHTS));
  g3_gpt_watch(job->rank->gpt, look, f);
  const g3_status st = g3_step_again(job);
  g3_gpt_watch(job->rank->gpt, NULL, NULL);
  G3_TRY(st);
  return look_at_flat(f, job->rank->grads, GRADIENTS);
}

g3_status g3_culprit_report(g3_job *job) {
  search f = {.job = job,
              .first = {.when = NOTHING, .rank = job->world->rank, .at = job->mesh->me}};
  G3_TRY(g3_comm_agree(job->world, search_all(&f)));
  G3_TRY(first_of_all(job, &f.first));
  return g3_comm_agree(job->world, job->world->rank == 0 ? say(job, &f.first) : G3_OK);
}
