#include "plan/report.h"
#include "plan/rank.h"
#include "plan/stages.h"
#include "util/array.h"
#include "util/log.h"
#include "util/text.h"
#include <stdlib.h>

static const char *const dtype_names[] = {
    [G3_TYPE_F32] = "f32", [G3_TYPE_BF16] = "bf16", [G3_TYPE_FP16] = "fp16"};

static void say_model(const g3_config *c) {
  const g3_model_config *m = &c->model;
  g3_number_text count, exact;
  const int64_t n = g3_gpt_count(m);
  G3_INFO(
      "model    %s: %lld layers, %lld heads, width %lld, ffn %lld, seq %lld, vocab %lld, %s, %s",
      c->run.name, (long long)m->layers, (long long)m->heads, (long long)m->width,
      (long long)m->ffn, (long long)m->seq, (long long)m->vocab, m->tied ? "tied" : "untied",
      dtype_names[c->train.dtype]);
  G3_INFO("         %s parameters (%s), %.4g MFLOP a token forward and backward",
          g3_text_count(n, count), g3_text_commas(n, exact), g3_gpt_flops_per_token(m) * 1e-6);
}

static void say_layout(const g3_config *c, const g3_grid *g) {
  const g3_parallel_config *p = &c->parallel;
  const g3_train_config *t = &c->train;
  g3_number_text tokens;
  const int dp = g->size[G3_DP];
  G3_INFO("layout   tp %d x pp %d x dp %d = %d ranks; schedule %s, zero %lld%s", g->size[G3_TP],
          g->size[G3_PP], dp, g3_grid_size(g), p->schedule, (long long)p->zero,
          p->sequence_parallel ? ", sequence parallel" : "");
  G3_INFO("batch    %lld samples = micro-batch %lld x %lld micro-batches x dp %d; x seq %lld = %s "
          "tokens a step",
          (long long)t->global_batch, (long long)t->micro_batch,
          (long long)(t->global_batch / dp / t->micro_batch), dp, (long long)c->model.seq,
          g3_text_commas(t->global_batch * c->model.seq, tokens));
  g3_number_text steps, samples;
  const int64_t all = t->steps * t->global_batch; /* checked to fit, as is that times seq */
  G3_INFO("run      %s steps = %s samples = %s tokens", g3_text_commas(t->steps, steps),
          g3_text_commas(all, samples), g3_text_commas(all * c->model.seq, tokens));
}

/* What it costs in memory: the same rank without --exact, with the same micro-batch of one. */
static g3_status say_exact(const g3_config *c, const g3_grid *grid) {
  size_t bytes[2][G3_MEM_CLASSES], total[2] = {0, 0};
  const g3_coord first = {{0}};
  g3_number_text exact, fast;
  if (!c->train.exact) return G3_OK;
  for (int on = 0; on < 2; on++) {
    g3_config either = *c;
    either.train.exact = on;
    G3_TRY(g3_rank_measure(&either, grid, first, bytes[on]));
    for (int k = 0; k < G3_MEM_CLASSES; k++)
      total[on] += bytes[on][k];
  }
  G3_INFO(
      "exact    one set of bits for all layouts: products in %lld blocks, one sample at a time; "
      "%s a rank instead of %s",
      (long long)c->parallel.exact_chunks, g3_text_bytes((int64_t)total[1], exact),
      g3_text_bytes((int64_t)total[0], fast));
  return G3_OK;
}

static void say_stage(const g3_model_config *m, int stage, int stages, int first, int layers) {
  const bool begins = stage == 0, ends = stage == stages - 1;
  G3_INFO("stage %-3d %slayers %d-%d%s, %.1f %% of the arithmetic", stage,
          begins ? "embedding, " : "", first, first + layers - 1, ends ? ", head" : "",
          100.0 * g3_stage_share(m, layers, begins, ends));
}

/* Elements that a rank holds, padding not counted. */
static int64_t rank_parameters(const g3_rank *r) {
  int64_t n = 0;
  for (int i = 0; i < r->flat->nparams; i++)
    n += g3_slice_count(&r->flat->param[i].slice);
  return n;
}

void g3_report_bytes(const char *what, const size_t bytes[G3_MEM_CLASSES]) {
  char text[512];
  size_t total = 0;
  int used = 0;
  for (int k = 0; k < G3_MEM_CLASSES; k++) {
    total += bytes[k];
    used += snprintf(text + used, sizeof text - (size_t)used, "%s %zu, ",
                     g3_mem_class_name((g3_mem_class)k), bytes[k]);
  }
  G3_DEBUG("%s: %stotal %zu", what, text, total);
}

static g3_status say_memory(const g3_config *c, const g3_grid *grid, int stage) {
  g3_arenas arenas = g3_arenas_measuring();
  g3_coord at = {{0}};
  g3_rank *r;
  char text[256];
  g3_number_text a, b;
  size_t total = 0, bytes[G3_MEM_CLASSES];
  int used = 0;
  at.at[G3_PP] = stage;
  G3_TRY(g3_rank_build(c, grid, at, &arenas, &r));
  for (int k = 0; k < G3_MEM_CLASSES; k++) {
    bytes[k] = arenas.of[k].used;
    total += bytes[k];
    used += snprintf(text + used, sizeof text - (size_t)used, "%s%s %s", k ? ", " : "",
                     g3_mem_class_name((g3_mem_class)k), g3_text_bytes((int64_t)bytes[k], a));
  }
  G3_INFO("memory   a rank of stage %d: %s parameters, %s (%zu bytes)", stage,
          g3_text_count(rank_parameters(r), a), g3_text_bytes((int64_t)total, b), total);
  G3_INFO("         %s", text);
  snprintf(text, sizeof text, "planned for a rank of stage %d", stage);
  g3_report_bytes(text, bytes);
  g3_rank_destroy(r);
  return G3_OK;
}

static g3_status say_stages(const g3_config *c, const g3_grid *grid) {
  const int stages = grid->size[G3_PP];
  int *layers;
  G3_TRY(G3_NEW_ARRAY(stages, &layers));
  g3_status st = g3_stage_layers(&c->model, stages, layers);
  int first = 0;
  for (int s = 0; s < stages && st == G3_OK; s++) {
    say_stage(&c->model, s, stages, first, layers[s]);
    first += layers[s];
    st = say_memory(c, grid, s);
  }
  G3_CHECK(st != G3_OK || first == c->model.layers, "the stages hold %d layers of %lld", first,
           (long long)c->model.layers);
  free(layers);
  return st;
}

g3_status g3_report_run(const g3_config *c, const g3_grid *grid, const char *device, int threads) {
  say_model(c);
  say_layout(c, grid);
  G3_TRY(say_exact(c, grid));
  G3_TRY(say_stages(c, grid));
  G3_INFO("device   %s, %d thread%s a rank", device, threads, threads == 1 ? "" : "s");
  return G3_OK;
}

g3_status g3_report_plan(g3_settings *settings, int64_t world) {
  g3_config *c = &settings->value;
  const int64_t model_ranks = c->parallel.tp * c->parallel.pp;
  const int64_t dp = c->parallel.dp > 0 ? c->parallel.dp : world / model_ranks;
  const int64_t ranks = model_ranks * (dp > 0 ? dp : 1);
  g3_grid grid;
  G3_TRY(g3_config_world(settings, ranks));
  G3_TRY(g3_config_check(settings));
  G3_TRY(g3_grid_make((int)c->parallel.tp, (int)c->parallel.pp, (int)c->parallel.dp, (int)ranks,
                      &grid));
  say_model(c);
  say_layout(c, &grid);
  G3_TRY(say_exact(c, &grid));
  G3_TRY(say_stages(c, &grid));
  G3_INFO("dry run: nothing was allocated and nothing was trained");
  return G3_OK;
}
