#include "train/state.h"
#include "train/finite.h"
#include "train/recipe.h"
#include "util/log.h"
#include <stdlib.h>
#include <string.h>

/* What of the configuration belongs to the weights; the seed belongs to the order of the data. */
static const char *const model_keys[] = {"model.layers", "model.heads", "model.width", "model.ffn",
                                         "model.seq",    "model.vocab", "model.tied"};
static const char seed_key[] = "train.seed";

enum { MODEL_KEYS = sizeof model_keys / sizeof model_keys[0], PATH_BYTES = 2 * G3_CONFIG_TEXT };

static g3_status take_key(g3_settings *s, const g3_ckpt_index *ix, const char *key) {
  const g3_option *o = g3_option_by_key(key);
  const char *saved = g3_ckpt_attr_get(&ix->meta, key);
  if (!saved) return G3_FAIL(G3_EFORMAT, "%s does not say its %s", ix->path, key);
  const g3_origin *origin = &s->origin[o - g3_options];
  g3_text mine;
  g3_settings_text(&s->value, o, mine, sizeof mine);
  if (origin->kind > G3_FROM_CHECKPOINT && strcmp(mine, saved) != 0)
    return G3_FAIL(G3_EINVAL,
                   "%s: %s = %s, but the checkpoint %s has %s; leave it out, or start another run "
                   "with --out",
                   origin->where, key, mine, ix->path, saved);
  g3_origin from = {.kind = G3_FROM_CHECKPOINT};
  snprintf(from.where, sizeof from.where, "%.150s", ix->path);
  return g3_settings_set(s, key, saved, from);
}

g3_status g3_state_take(g3_settings *s, const g3_ckpt_index *ix, bool with_seed) {
  for (int i = 0; i < MODEL_KEYS; i++)
    G3_TRY(take_key(s, ix, model_keys[i]));
  return with_seed ? take_key(s, ix, seed_key) : G3_OK;
}

/* Gives an empty path a failure. */
static g3_status must_be_there(const char *path, const char *flag, const char *dir) {
  if (path[0]) return G3_OK;
  return G3_FAIL(G3_EINVAL,
                 "%s %s: there is no checkpoint; give a run directory or one of its "
                 "checkpoints/step-...",
                 flag, dir);
}

static bool names_one(const char *resume) {
  return strcmp(resume, "auto") != 0 && strcmp(resume, "none") != 0;
}

/* Rank 0 looks at the disk; `path` gets the checkpoint, or "". */
static g3_status look(const g3_settings *s, char path[PATH_BYTES], g3_start *start) {
  const g3_run_config *run = &s->value.run;
  path[0] = '\0';
  start->kind = G3_START_RESUME;
  if (names_one(run->resume)) {
    G3_TRY(g3_ckpt_latest(run->resume, path, PATH_BYTES));
    return must_be_there(path, "--resume", run->resume);
  }
  start->clear = run->overwrite;
  if (!run->overwrite) G3_TRY(g3_ckpt_latest(run->out, path, PATH_BYTES));
  if (path[0] && strcmp(run->resume, "none") == 0)
    return G3_FAIL(G3_EINVAL,
                   "--resume none, but %s has checkpoints (%s); resume them, choose another --out, "
                   "or remove them with --overwrite",
                   run->out, path);
  if (path[0]) return G3_OK;
  start->kind = G3_START_FRESH;
  if (!run->init[0]) return G3_OK;
  start->kind = G3_START_INIT;
  G3_TRY(g3_ckpt_latest(run->init, path, PATH_BYTES));
  return must_be_there(path, "--init", run->init);
}

static g3_status look_for_weights(const g3_settings *s, char path[PATH_BYTES], g3_start *start) {
  const char *resume = s->value.run.resume;
  start->kind = G3_START_INIT;
  if (!names_one(resume))
    return G3_FAIL(G3_EINVAL,
                   "--resume %s names no checkpoint; give --resume DIR, a run directory or one of "
                   "its checkpoints/step-...",
                   resume);
  G3_TRY(g3_ckpt_latest(resume, path, PATH_BYTES));
  return must_be_there(path, "--resume", resume);
}

/* An imported model has weights, and nothing of a run to go on with. */
static g3_status check_moments(const g3_ckpt_index *ix) {
  static const char moments[] = "optim/exp_avg/";
  for (int i = 0; i < ix->nentries; i++)
    if (strncmp(ix->entry[i].name, moments, sizeof moments - 1) == 0) return G3_OK;
  return G3_FAIL(G3_EINVAL,
                 "%s has weights only, no optimizer state to resume: start from them with --init "
                 "%s and another --out",
                 ix->path, ix->path);
}

static g3_status open_index(g3_settings *s, const char *path, g3_start *start) {
  if (!path[0]) return G3_OK;
  const bool resumes = start->kind == G3_START_RESUME;
  G3_TRY(g3_ckpt_index_read(path, &start->index));
  if (resumes) G3_TRY(check_moments(start->index));
  return g3_state_take(s, start->index, resumes);
}

typedef g3_status (*look_fn)(const g3_settings *, char[PATH_BYTES], g3_start *);

static g3_status find(g3_settings *s, g3_comm *world, look_fn look_at, g3_start *out) {
  struct {
    char path[PATH_BYTES];
    g3_start start;
  } found;
  memset(&found, 0, sizeof found);
  const g3_status looked = world->rank == 0 ? look_at(s, found.path, &found.start) : G3_OK;
  G3_TRY(g3_comm_agree(world, looked));
  G3_TRY(world->ops->host_broadcast(world, &found, sizeof found, 0));
  g3_start start = found.start;
  const g3_status st = g3_comm_agree(world, open_index(s, found.path, &start));
  if (st != G3_OK) {
    g3_start_free(&start);
    return st;
  }
  *out = start;
  return G3_OK;
}

g3_status g3_start_find(g3_settings *s, g3_comm *world, g3_start *out) {
  return find(s, world, look, out);
}

g3_status g3_start_find_weights(g3_settings *s, g3_comm *world, g3_start *out) {
  return find(s, world, look_for_weights, out);
}

void g3_start_free(g3_start *start) {
  g3_ckpt_index_free(start->index);
  start->index = NULL;
}

static const char weights[] = "model/", masters[] = "optim/master/";

static bool has_prefix(const g3_ckpt_item *item, const char *prefix) {
  return strncmp(item->name, prefix, strlen(prefix)) == 0;
}

/* The item under another prefix, if the checkpoint has that. */
static void look_under(const g3_ckpt_index *ix, g3_ckpt_item *item, const char *from,
                       const char *to) {
  char name[sizeof item->name];
  const int length = snprintf(name, sizeof name, "%s%s", to, item->name + strlen(from));
  if (length < (int)sizeof name && g3_ckpt_find(ix, name)) memcpy(item->name, name, sizeof name);
}

void g3_state_prefer_master(const g3_ckpt_index *ix, g3_ckpt_item *item) {
  look_under(ix, item, weights, masters);
}

/* A checkpoint of a bf16 run has f32 master weights beside rounded ones, that of an f32 run has
 * none. An f32 run takes the masters where there are some; a bf16 run's masters are otherwise the
 * weights. */
static void match_dtypes(const g3_ckpt_index *ix, g3_ckpt_item *items, int n) {
  for (int i = 0; i < n; i++) {
    if (has_prefix(&items[i], weights) && items[i].local.dtype == G3_F32)
      g3_state_prefer_master(ix, &items[i]);
    else if (has_prefix(&items[i], masters) && !g3_ckpt_find(ix, items[i].name))
      look_under(ix, &items[i], masters, weights);
  }
}

/* Drops the moments. */
static int keep_weights(g3_ckpt_item *items, int n) {
  int kept = 0;
  for (int i = 0; i < n; i++)
    if (has_prefix(&items[i], weights) || has_prefix(&items[i], masters)) items[kept++] = items[i];
  return kept;
}

static g3_status set_position(g3_job *job, const g3_ckpt_meta *meta) {
  job->step = meta->step;
  job->consumed = meta->consumed_samples;
  g3_control control = {.applied_steps = meta->applied_steps, .clip = 1.0f};
  const g3_tensor host = g3_tensor_1d(&control, G3_U8, (int64_t)sizeof control);
  G3_TRY(job->dev->ops->copy(job->compute, g3_optim_control(job->rank->optim), host));
  return job->dev->ops->sync(job->compute);
}

static g3_status load(g3_job *job, const g3_start *start) {
  g3_ckpt_item *items;
  int n;
  G3_TRY(g3_rank_load_items(job->rank, &items, &n));
  if (start->kind == G3_START_INIT) n = keep_weights(items, n);
  match_dtypes(start->index, items, n);
  const g3_ckpt_item *bad = NULL;
  g3_status st = g3_ckpt_load(start->index, job->compute, items, n, NULL, job->rank->stage, NULL);
  if (st == G3_OK) st = g3_finite_items(job, items, n, &bad);
  if (bad)
    st = G3_FAIL(G3_ENUMERIC, "%s: %s is not finite (NaN or infinity); use another checkpoint",
                 start->index->path, bad->name);
  free(items);
  return st;
}

static g3_status initial(g3_job *job) {
  G3_TRY(g3_gpt_init(job->rank->gpt, job->compute, false));
  return g3_optim_adopt(job->rank->optim, job->compute);
}

static g3_status from_checkpoint(g3_job *job, const g3_start *start) {
  G3_TRY(load(job, start));
  return start->kind == G3_START_RESUME ? set_position(job, &start->index->meta) : G3_OK;
}

g3_status g3_start_load(g3_job *job, const g3_start *start) {
  const g3_status st = start->kind == G3_START_FRESH ? initial(job) : from_checkpoint(job, start);
  G3_TRY(g3_comm_agree(job->world, st));
  job->start_step = job->step;
  return G3_OK;
}

static g3_status read_applied(g3_job *job, int64_t *out) {
  g3_control control;
  const g3_tensor host = g3_tensor_1d(&control, G3_U8, (int64_t)sizeof control);
  G3_TRY(job->dev->ops->copy(job->compute, host, g3_optim_control(job->rank->optim)));
  G3_TRY(job->dev->ops->sync(job->compute));
  *out = control.applied_steps;
  return G3_OK;
}

void g3_state_describe(const g3_config *config, g3_ckpt_attr out[G3_STATE_ATTRS]) {
  _Static_assert(G3_STATE_ATTRS == MODEL_KEYS + 1, "the model's keys and the seed");
  for (int i = 0; i < G3_STATE_ATTRS; i++) {
    const char *key = i < MODEL_KEYS ? model_keys[i] : seed_key;
    snprintf(out[i].key, sizeof out[i].key, "%s", key);
    g3_settings_text(config, g3_option_by_key(key), out[i].value, sizeof out[i].value);
  }
}

/* What is not finite never becomes the checkpoint that a run goes on from. */
static g3_status check_numbers(g3_job *job) {
  const g3_ckpt_item *bad;
  G3_TRY(g3_finite_items(job, job->rank->save, job->rank->nsave, &bad));
  if (!bad) return G3_OK;
  return G3_FAIL(G3_ENUMERIC,
                 "after step %lld %s is not finite (NaN or infinity), so it is not saved; what was "
                 "saved before is untouched; lower --lr, or use --clip",
                 (long long)job->step, bad->name);
}

g3_status g3_state_save(g3_job *job) {
  g3_ckpt_attr attrs[G3_STATE_ATTRS + G3_RECIPE_ATTRS];
  char dir[PATH_BYTES];
  g3_ckpt_meta meta = {.step = job->step,
                       .consumed_samples = job->consumed,
                       .attr = attrs,
                       .nattrs = G3_STATE_ATTRS + G3_RECIPE_ATTRS};
  g3_state_describe(job->config, attrs);
  g3_recipe_describe(job->config, attrs + G3_STATE_ATTRS);
  G3_TRY(g3_comm_agree(job->world, check_numbers(job)));
  G3_TRY(g3_comm_agree(job->world, read_applied(job, &meta.applied_steps)));
  snprintf(dir, sizeof dir, "%s/checkpoints", job->config->run.out);
  return g3_ckpt_save(job->world, job->compute, dir, &meta, job->rank->save, job->rank->nsave,
                      job->config->run.keep, job->rank->stage);
}
