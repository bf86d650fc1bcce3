#include "train/job.h"
#include "train/memory.h"
#include "util/log.h"
#include <string.h>

static g3_status open_device(g3_job *job) {
  const g3_config *c = job->config;
  G3_TRY(g3_threads_plan(job->world, (int)c->run.threads, &job->threads));
  return g3_device_open(g3_config_backend(c), job->threads.threads, &job->dev);
}

/* The plan's sizes, allocated: the arenas that the rank is then laid out on. */
static g3_status allocate(g3_job *job, g3_arenas *arenas) {
  G3_TRY(g3_rank_measure(job->config, &job->mesh->grid, job->mesh->me, job->bytes));
  job->resident_before = g3_memory_resident();
  for (int c = 0; c < G3_MEM_CLASSES; c++) {
    G3_TRY(job->dev->ops->alloc(job->dev, job->bytes[c] ? job->bytes[c] : G3_ARENA_ALIGN,
                                &job->memory[c]));
    arenas->of[c] = (g3_arena){job->memory[c], 0, job->bytes[c]};
  }
  return G3_OK;
}

static void give_scratch(g3_job *job) {
  const g3_mesh *mesh = job->mesh;
  for (int axes = 0; axes < 1 << G3_AXES; axes++)
    if (mesh->over[axes]) mesh->over[axes]->scratch = job->rank->comm_scratch;
}

static void attach(g3_job *job) {
  g3_rank *r = job->rank;
  g3_stage *stage = g3_gpt_stage(r->gpt);
  g3_comm *pp = g3_mesh_over(job->mesh, 1u << G3_PP);
  g3_gpt_attach(r->gpt, job->dev, g3_mesh_over(job->mesh, 1u << G3_TP), g3_optim_loss(r->optim));
  g3_runtime_attach(r->train, &stage, 1, pp, job->compute);
  g3_runtime_attach(r->eval, &stage, 1, pp, job->compute);
}

static g3_status lay_out(g3_job *job) {
  g3_arenas arenas;
  G3_TRY(allocate(job, &arenas));
  G3_TRY(g3_rank_build(job->config, &job->mesh->grid, job->mesh->me, &arenas, &job->rank));
  for (int c = 0; c < G3_MEM_CLASSES; c++) {
    job->used[c] = arenas.of[c].used;
    G3_CHECK(job->used[c] == job->bytes[c], "planned %zu bytes of %s and took %zu", job->bytes[c],
             g3_mem_class_name((g3_mem_class)c), job->used[c]);
  }
  const g3_device_ops *ops = job->dev->ops;
  G3_TRY(ops->stream_create(job->dev, false, job->rank->workspace, &job->compute));
  G3_TRY(ops->stream_create(job->dev, true, g3_tensor_none(), &job->side));
  give_scratch(job);
  attach(job);
  const g3_reducer_spec spec = {.flat = job->rank->flat,
                                .grads = job->rank->grads,
                                .params = job->rank->params,
                                .mesh = job->mesh,
                                .dev = job->dev,
                                .side = job->side,
                                .zero = job->config->parallel.zero > 0,
                                .tree = job->config->train.exact,
                                .scratch = job->rank->tree_scratch};
  return g3_reducer_create(&spec, &job->reducer);
}

/* All of it, in windows of seq + 1. */
static g3_status take_file(g3_job *job) {
  const int64_t tokens = g3_tokens_count(job->tokens);
  job->split = (g3_split){.seq = job->config->model.seq};
  if (g3_file_windows(tokens, job->split.seq) > 0) return G3_OK;
  return G3_FAIL(G3_EINVAL,
                 "%s: too little data: %lld token, but a loss needs 2, one to predict the next",
                 job->config->data.path, (long long)tokens);
}

static g3_status open_data(g3_job *job, bool whole_file) {
  const g3_config *c = job->config;
  G3_TRY(g3_tokens_open(c->data.path, c->model.vocab, &job->tokens));
  if (whole_file) return take_file(job);
  return g3_split_make(g3_tokens_count(job->tokens), c->data.val_split, c->model.seq, c->train.seed,
                       &job->split);
}

static g3_status open_all(g3_job *job, bool whole_file) {
  const g3_parallel_config *p = &job->config->parallel;
  g3_grid grid;
  G3_TRY(g3_grid_make((int)p->tp, (int)p->pp, (int)p->dp, job->world->size, &grid));
  G3_TRY(g3_comm_agree(job->world, open_data(job, whole_file)));
  G3_TRY(g3_comm_agree(job->world, open_device(job)));
  G3_TRY(g3_mesh_create(job->world, grid, &job->mesh));
  const g3_coord me = job->mesh->me;
  char place[96];
  snprintf(place, sizeof place, "rank %d (tp %d, dp %d, pp %d)", job->world->rank, me.at[G3_TP],
           me.at[G3_DP], me.at[G3_PP]);
  g3_set_fatal_place(place);
  return g3_comm_agree(job->world, lay_out(job));
}

static g3_status open_job(g3_settings *settings, g3_comm *world, bool whole_file, g3_job *out) {
  g3_job job = {.settings = settings, .config = &settings->value, .world = world};
  const g3_status st = open_all(&job, whole_file);
  if (st != G3_OK) {
    g3_job_close(&job);
    return st;
  }
  *out = job;
  return G3_OK;
}

g3_status g3_job_open(g3_settings *settings, g3_comm *world, g3_job *out) {
  return open_job(settings, world, false, out);
}

g3_status g3_job_open_file(g3_settings *settings, g3_comm *world, g3_job *out) {
  return open_job(settings, world, true, out);
}

void g3_job_close(g3_job *job) {
  g3_rundir_close(&job->dir);
  g3_tokens_close(job->tokens);
  g3_reducer_destroy(job->reducer);
  if (job->dev) {
    if (job->side) job->dev->ops->stream_destroy(job->side);
    if (job->compute) job->dev->ops->stream_destroy(job->compute);
    for (int c = 0; c < G3_MEM_CLASSES; c++)
      if (job->memory[c]) job->dev->ops->release(job->dev, job->memory[c]);
  }
  g3_rank_destroy(job->rank);
  g3_mesh_destroy(job->mesh);
  g3_device_close(job->dev);
  memset(job, 0, sizeof *job);
}
