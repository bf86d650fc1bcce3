/* The first and last things of the model: embeddings, head and loss. */
#include "model/internal.h"
#include "util/fault.h"
#include "util/philox.h"

static g3_tensor micro_ids(g3_tensor all, const g3_gpt *g, int micro) {
  return g3_tensor_part(all, 0, micro * g->n, g->n);
}

g3_tensor g3_gpt_targets(const g3_gpt *g, const g3_head_rows *part) {
  return g3_tensor_part(micro_ids(g->targets, g, part->micro), 0, part->row, part->rows);
}

/* Row 0 of my part of the tokens. */
static int64_t first_row(const g3_gpt *g) {
  return g->region.sequence ? g->spec.part.tp_rank * g->p : 0;
}

g3_dropout_spec g3_gpt_dropout(const g3_gpt *g, int micro, uint64_t key) {
  g3_dropout_spec d = {.p = g->train ? (float)g->spec.model.dropout : 0.0f,
                       .key = key,
                       .sample = g->first_sample + micro * g->spec.micro_batch,
                       .row = first_row(g),
                       .seq = g->spec.model.seq};
  return d;
}

static g3_dropout_spec embed_dropout(const g3_gpt *g, int micro) {
  return g3_gpt_dropout(g, micro, g3_rng_key(g->spec.seed, G3_RNG_DROP_EMBED, 0));
}

g3_status g3_gpt_embed(g3_gpt *g, g3_stream *s, int micro, g3_tensor x) {
  const g3_device_ops *ops = g->dev->ops;
  const g3_tensor tokens = g3_gpt_weight(g, 0, G3_ROW_WTE)->value;
  const g3_tensor positions = g3_gpt_weight(g, 0, G3_ROW_WPE)->value;
  const g3_tensor whole = g->region.sequence ? g->whole_b : x;
  const g3_dropout_spec drop = embed_dropout(g, micro);
  G3_TRY(ops->embedding(s, whole, micro_ids(g->ids, g, micro), tokens, g->vocab_first));
  G3_TRY(g3_region_leave(&g->region, s, x, whole));
  G3_TRY(ops->position(s, x, positions, first_row(g), g->spec.model.seq));
  if (drop.p > 0.0f)
    G3_TRY(ops->bias_dropout_add(s, x, x, g3_tensor_none(), g3_tensor_none(), &drop));
  return G3_OK;
}

g3_status g3_gpt_embed_bwd(g3_gpt *g, g3_stream *s, int micro, g3_tensor dx) {
  const g3_device_ops *ops = g->dev->ops;
  const g3_tensor dtokens = g3_gpt_weight(g, 0, G3_ROW_WTE)->grad;
  const g3_tensor dpositions = g3_gpt_weight(g, 0, G3_ROW_WPE)->grad;
  const g3_dropout_spec drop = embed_dropout(g, micro);
  if (drop.p > 0.0f) G3_TRY(ops->dropout_bwd(s, dx, dx, &drop));
  G3_TRY(ops->position_bwd(s, dpositions, dx, first_row(g), g->spec.model.seq));
  const g3_tensor whole = g->region.sequence ? g->whole_b : dx;
  G3_TRY(g3_region_enter(&g->region, s, whole, dx));
  return ops->embedding_bwd(s, dtokens, micro_ids(g->ids, g, micro), whole, g->vocab_first);
}

g3_status g3_gpt_head(g3_gpt *g, g3_stream *s, int micro, g3_tensor x, g3_tensor dx) {
  const g3_device_ops *ops = g->dev->ops;
  const g3_weight *ln_w = g3_gpt_weight(g, 0, G3_ROW_LNF_W);
  const g3_weight *ln_b = g3_gpt_weight(g, 0, G3_ROW_LNF_B);
  const g3_weight *own = g3_gpt_weight(g, 0, G3_ROW_HEAD); /* untied, or the copy of a tied one */
  const g3_weight *w = own->value.data ? own : g3_gpt_weight(g, 0, G3_ROW_WTE);

  G3_TRY(ops->layernorm(s, g->part, g->head_mean, g->head_rstd, x, ln_w->value, ln_b->value));
  G3_TRY(g3_gpt_see(g, s, G3_SEEN_FINAL, micro, g->spec.part.nlayers - 1, g->part));
  const bool unscaled = g3_fault("micro-batch-unscaled") && micro == 0;
  const float scale = unscaled ? 1.0f : 1.0f / (float)g->spec.loss_tokens;
  const g3_tensor h = g->region.sequence ? g->whole_a : g->part;
  G3_TRY(g3_region_enter(&g->region, s, h, g->part));
  for (int64_t row = 0; row < g->n; row += g->chunk) {
    const int64_t rows = g->n - row < g->chunk ? g->n - row : g->chunk;
    const g3_head_rows part = {micro, row, rows, dx.data != NULL, scale};
    G3_TRY(g->sums->head(g, s, &part, g3_tensor_part(h, 0, row, rows), w));
  }
  if (!dx.data) return G3_OK;
  g3_tensor dln;
  G3_TRY(g->sums->leave(g, s, &dln));
  return g->sums->layernorm_bwd(g, s, dx, g3_tensor_none(), ln_w, ln_b, dln, x, g->head_mean,
                                g->head_rstd);
}
