#include "plan/rank.h"
#include "plan/pieces.h"
#include "plan/stages.h"
#include "util/array.h"
#include <stdlib.h>

const char *g3_config_backend(const g3_config *config) {
  return config->run.device == G3_DEVICE_CUDA ? "cuda" : "cpu";
}

static g3_dtype compute_dtype(const g3_config *c) {
  return c->train.dtype == G3_TYPE_BF16 ? G3_BF16 : G3_F32;
}

static g3_status place_on_grid(g3_rank *r) {
  const g3_config *c = r->config;
  const int pp = r->grid.size[G3_PP], stage = r->at.at[G3_PP];
  G3_TRY(G3_NEW_ARRAY(pp, &r->layers_of_stage));
  G3_TRY(g3_stage_layers(&c->model, pp, r->layers_of_stage));
  int first = 0;
  for (int s = 0; s < stage; s++)
    first += r->layers_of_stage[s];
  r->part = (g3_gpt_part){.first_layer = first,
                          .nlayers = r->layers_of_stage[stage],
                          .first = stage == 0,
                          .last = stage == pp - 1,
                          .tp = r->grid.size[G3_TP],
                          .tp_rank = r->at.at[G3_TP],
                          .sequence_parallel = c->parallel.sequence_parallel,
                          .chunks = c->train.exact ? c->parallel.exact_chunks : 0};
  r->micros = c->train.global_batch / r->grid.size[G3_DP] / c->train.micro_batch;
  return G3_OK;
}

static g3_status lay_out_params(g3_rank *r, g3_arenas *arenas) {
  g3_param *params;
  int n;
  G3_TRY(g3_gpt_params(&r->config->model, &r->part, &params, NULL, &n));
  const g3_status st =
      g3_flat_create(params, n, r->grid.size[G3_DP], r->config->parallel.bucket_elements, &r->flat);
  free(params);
  if (st != G3_OK) return st;
  const int64_t count = r->flat->count;
  r->params =
      g3_tensor_as_1d(g3_arena_tensor(arenas, G3_MEM_PARAMS, compute_dtype(r->config), count, 1));
  r->grads = g3_tensor_as_1d(g3_arena_tensor(arenas, G3_MEM_GRADS, G3_F32, count, 1));
  return G3_OK;
}

/* What sums along trees need: the samples' sums that wait, and room for what comes over dp. */
static void lay_out_trees(g3_rank *r, g3_arenas *arenas) {
  if (!r->config->train.exact) return;
  const int levels = g3_fold_levels(r->micros);
  r->fold = (g3_fold){.flat = r->flat, .grads = r->grads, .samples = r->micros};
  if (levels > 0)
    r->fold.levels = g3_arena_tensor(arenas, G3_MEM_GRADS, G3_F32, levels, r->flat->count);
  if (r->grid.size[G3_DP] == 1) return;
  int64_t most = 0;
  for (int b = 0; b < r->flat->nbuckets; b++)
    if (r->flat->bucket[b].count > most) most = r->flat->bucket[b].count;
  r->tree_scratch = g3_tensor_as_1d(g3_arena_tensor(arenas, G3_MEM_COMM, G3_F32, most / 2, 1));
}

static g3_status lay_out_pipeline(g3_rank *r, g3_arenas *arenas) {
  const g3_config *c = r->config;
  const g3_sched_shape shape = {
      .ranks = r->grid.size[G3_PP], .chunks = 1, .micros = (int)r->micros};
  const int tp = r->grid.size[G3_TP];
  int64_t rows = c->train.micro_batch * c->model.seq;
  if (c->parallel.sequence_parallel) rows /= tp;
  g3_runtime_spec spec = {
      .rank = r->at.at[G3_PP], .rows = rows, .width = c->model.width, .dtype = compute_dtype(c)};
  G3_TRY(g3_sched_make(c->parallel.schedule, &shape, &r->train_schedule));
  G3_TRY(g3_sched_make("forward", &shape, &r->eval_schedule));
  spec.schedule = r->train_schedule;
  G3_TRY(g3_runtime_create(&spec, arenas, &r->train));
  spec.schedule = r->eval_schedule;
  return g3_runtime_create(&spec, arenas, &r->eval);
}

static g3_status lay_out_model(g3_rank *r, g3_arenas *arenas) {
  const g3_config *c = r->config;
  const int slots = g3_runtime_slots(r->train), eval_slots = g3_runtime_slots(r->eval);
  const g3_gpt_spec spec = {.model = c->model,
                            .part = r->part,
                            .dtype = compute_dtype(c),
                            .micro_batch = c->train.micro_batch,
                            .micros = r->micros,
                            .loss_tokens = c->train.global_batch * c->model.seq,
                            .slots = slots > eval_slots ? slots : eval_slots,
                            .seed = c->train.seed,
                            .stage = r->at.at[G3_PP],
                            .flat = r->flat,
                            .params = r->params,
                            .grads = r->grads,
                            .fold = c->train.exact ? &r->fold : NULL};
  return g3_gpt_create(&spec, arenas, &r->gpt);
}

static g3_status lay_out_optimizer(g3_rank *r, g3_arenas *arenas) {
  const bool zero = r->config->parallel.zero > 0;
  const g3_optim_spec spec = {.flat = r->flat,
                              .params = r->params,
                              .grads = r->grads,
                              .parts = zero ? r->grid.size[G3_DP] : 1,
                              .index = zero ? r->at.at[G3_DP] : 0,
                              .nsquares = g3_gpt_tensors(&r->config->model),
                              .counts_tp = r->at.at[G3_TP] == 0,
                              .counts_all = zero || r->at.at[G3_DP] == 0,
                              .exact = r->config->train.exact};
  return g3_optim_create(&spec, arenas, &r->optim);
}

static void lay_out_scratch(g3_rank *r, g3_arenas *arenas) {
  const g3_config *c = r->config;
  const int tp = r->grid.size[G3_TP];
  const int64_t tokens = c->train.micro_batch * c->model.seq;
  const int64_t ffn = c->model.ffn / tp, qkv = 3 * c->model.width / tp;
  const g3_workload work = {.tokens = tokens,
                            .width = c->model.width,
                            .ffn = ffn,
                            .cut = !c->train.exact ? 0
                                   : ffn > qkv     ? ffn
                                                   : qkv,
                            .vocab = g3_vocab_part(c->model.vocab, tp, r->part.chunks),
                            .head_dim = c->model.width / c->model.heads,
                            .dtype = compute_dtype(c)};
  const g3_device_ops *ops = g3_device_ops_named(g3_config_backend(c));
  const int64_t bytes = (int64_t)ops->workspace(&work);
  r->workspace = g3_tensor_as_1d(g3_arena_tensor(arenas, G3_MEM_WORKSPACE, G3_U8, bytes, 1));
  const int64_t scratch =
      compute_dtype(c) == G3_BF16 ? (int64_t)g3_comm_scratch_bytes(tokens * c->model.width, tp) : 0;
  r->comm_scratch = g3_tensor_as_1d(g3_arena_tensor(arenas, G3_MEM_COMM, G3_U8, scratch, 1));
  r->tokens = g3_arena_tensor(arenas, G3_MEM_STAGING, G3_I32, r->micros * c->train.micro_batch,
                              c->model.seq + 1);
}

/* Staging serves saving and loading, in this layout. */
static g3_status lay_out_checkpoint(g3_rank *r, g3_arenas *arenas) {
  g3_ckpt_item *load;
  int nload;
  G3_TRY(g3_pieces_to_save(r, &r->save, &r->nsave));
  G3_TRY(g3_rank_load_items(r, &load, &nload));
  const size_t save_bytes = g3_ckpt_stage_bytes(r->save, r->nsave);
  const size_t load_bytes = g3_ckpt_stage_bytes(load, nload);
  free(load);
  const size_t bytes = save_bytes > load_bytes ? save_bytes : load_bytes;
  r->stage = g3_tensor_as_1d(g3_arena_tensor(arenas, G3_MEM_STAGING, G3_U8, (int64_t)bytes, 1));
  return G3_OK;
}

static g3_status build(g3_rank *r, g3_arenas *arenas) {
  G3_TRY(place_on_grid(r));
  G3_TRY(lay_out_params(r, arenas));
  lay_out_trees(r, arenas);
  G3_TRY(lay_out_pipeline(r, arenas));
  G3_TRY(lay_out_model(r, arenas));
  G3_TRY(lay_out_optimizer(r, arenas));
  lay_out_scratch(r, arenas);
  return lay_out_checkpoint(r, arenas);
}

g3_status g3_rank_build(const g3_config *config, const g3_grid *grid, g3_coord at,
                        g3_arenas *arenas, g3_rank **out) {
  g3_rank *r;
  G3_TRY(G3_NEW_ARRAY(1, &r));
  r->config = config;
  r->grid = *grid;
  r->at = at;
  const g3_status st = build(r, arenas);
  if (st != G3_OK) {
    g3_rank_destroy(r);
    return st;
  }
  *out = r;
  return G3_OK;
}

void g3_rank_destroy(g3_rank *r) {
  if (!r) return;
  free(r->save);
  g3_optim_destroy(r->optim);
  g3_gpt_destroy(r->gpt);
  g3_runtime_destroy(r->eval);
  g3_runtime_destroy(r->train);
  g3_sched_free(r->eval_schedule);
  g3_sched_free(r->train_schedule);
  g3_flat_destroy(r->flat);
  free(r->layers_of_stage);
  free(r);
}

g3_status g3_rank_measure(const g3_config *config, const g3_grid *grid, g3_coord at,
                          size_t bytes[G3_MEM_CLASSES]) {
  g3_arenas arenas = g3_arenas_measuring();
  g3_rank *r;
  G3_TRY(g3_rank_build(config, grid, at, &arenas, &r));
  g3_rank_destroy(r);
  for (int c = 0; c < G3_MEM_CLASSES; c++)
    bytes[c] = arenas.of[c].used;
  return G3_OK;
}
