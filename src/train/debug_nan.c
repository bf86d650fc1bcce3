#include "train/debug_nan.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char form[] = "STEP[-LAST]:STAGE:MICRO:[LAYER.]TENSOR, such as 3:0:1:qkv";

/* A count >= least that ends with `end`; *text goes on behind that. */
static bool take_count(const char **text, char end, int64_t least, int64_t *out) {
  char *stop;
  if (**text < '0' || **text > '9') return false;
  errno = 0;
  const long long n = strtoll(*text, &stop, 10);
  if (errno != 0 || *stop != end || n < least) return false;
  *out = n;
  *text = stop + 1;
  return true;
}

static g3_status take_tensor(const char *name, const char *text, g3_seen_kind *out) {
  char all[256] = "";
  for (int k = 0; k < G3_SEEN_KINDS; k++) {
    if (strcmp(name, g3_seen_names[k]) == 0) {
      *out = (g3_seen_kind)k;
      return G3_OK;
    }
    const size_t used = strlen(all);
    snprintf(all + used, sizeof all - used, " %s", g3_seen_names[k]);
  }
  return G3_FAIL(G3_EINVAL, "--debug-nan %s: there is no tensor %s; there are%s", text, name, all);
}

/* Which layers the stage has: [*first, *first + *count). */
static void layers_of(const g3_job *job, int64_t stage, int64_t *first, int64_t *count) {
  *first = 0;
  for (int64_t s = 0; s < stage; s++)
    *first += job->rank->layers_of_stage[s];
  *count = job->rank->layers_of_stage[stage];
}

static bool on_first_stage(g3_seen_kind k) {
  return k == G3_SEEN_EMBED;
}

static bool on_last_stage(g3_seen_kind k) {
  return k == G3_SEEN_FINAL || k == G3_SEEN_LOSS || k == G3_SEEN_D_FINAL;
}

static g3_status check(const g3_job *job, const g3_debug_nan *n, bool layered, const char *text) {
  const int64_t pp = job->config->parallel.pp;
  const int64_t micros = job->config->train.global_batch / job->config->train.micro_batch;
  int64_t first, count;
  if (n->stage >= pp)
    return G3_FAIL(G3_EINVAL, "--debug-nan %s: stage %lld of %lld, counted from 0, does not exist",
                   text, (long long)n->stage, (long long)pp);
  if (n->micro >= micros)
    return G3_FAIL(G3_EINVAL,
                   "--debug-nan %s: micro-batch %lld does not exist: the global batch has %lld, "
                   "counted from 0",
                   text, (long long)n->micro, (long long)micros);
  layers_of(job, n->stage, &first, &count);
  if (layered && (n->layer < first || n->layer >= first + count))
    return G3_FAIL(G3_EINVAL, "--debug-nan %s: stage %lld has the layers %lld to %lld, not %lld",
                   text, (long long)n->stage, (long long)first, (long long)(first + count - 1),
                   (long long)n->layer);
  if ((on_first_stage(n->kind) && n->stage != 0) || (on_last_stage(n->kind) && n->stage != pp - 1))
    return G3_FAIL(G3_EINVAL, "--debug-nan %s: only stage %lld has the tensor %s", text,
                   on_first_stage(n->kind) ? 0LL : (long long)pp - 1, g3_seen_names[n->kind]);
  return G3_OK;
}

g3_status g3_debug_nan_read(g3_job *job) {
  const char *text = job->config->command.debug_nan, *at = text;
  if (!*text) return G3_OK;
  g3_debug_nan n = {.layer = -1};
  const bool many = take_count(&at, '-', 1, &n.step);
  if (!take_count(&at, ':', many ? n.step : 1, &n.last) || !take_count(&at, ':', 0, &n.stage) ||
      !take_count(&at, ':', 0, &n.micro))
    return G3_FAIL(G3_EINVAL, "--debug-nan %s: wanted %s", text, form);
  if (!many) n.step = n.last;
  const bool layered = take_count(&at, '.', 0, &n.layer);
  G3_TRY(take_tensor(at, text, &n.kind));
  G3_TRY(check(job, &n, layered, text));
  if (!layered || on_first_stage(n.kind) || on_last_stage(n.kind)) {
    int64_t first, count;
    layers_of(job, n.stage, &first, &count);
    n.layer = on_last_stage(n.kind) ? first + count - 1 : first;
  }
  job->nan = n;
  return G3_OK;
}

g3_status g3_debug_nan_see(void *ctx, g3_stream *s, const g3_seen *seen) {
  const g3_job *job = ctx;
  const g3_debug_nan *n = &job->nan;
  const g3_coord me = job->mesh->me;
  const int64_t micro = me.at[G3_DP] * job->rank->micros + seen->micro;
  if (me.at[G3_TP] != 0 || me.at[G3_PP] != n->stage || micro != n->micro) return G3_OK;
  if (seen->kind != n->kind || seen->layer != n->layer) return G3_OK;
  return s->dev->ops->fill(s, g3_tensor_1d(seen->t.data, seen->t.dtype, 1), NAN);
}
