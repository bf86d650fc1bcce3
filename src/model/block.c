/* One transformer block, forward and backward, as each tensor-parallel rank computes it. */
#include "model/internal.h"
#include "util/philox.h"
#include <math.h>

/* Residual dropouts of a block: 0 after attention, 1 after the feed-forward layer. */
static g3_dropout_spec residual_dropout(const g3_gpt *g, int micro, int layer, int which) {
  const uint64_t item = 2 * (uint64_t)(g->spec.part.first_layer + layer) + (uint64_t)which;
  return g3_gpt_dropout(g, micro, g3_rng_key(g->spec.seed, G3_RNG_DROP_RESIDUAL, item));
}

static g3_attention_spec attention_spec(const g3_gpt *g, int micro, int layer) {
  const g3_model_config *m = &g->spec.model;
  const uint64_t item = (uint64_t)(g->spec.part.first_layer + layer);
  g3_attention_spec a = {
      .scale = 1.0f / sqrtf((float)(m->width / m->heads)),
      .dropout = g->train ? (float)m->dropout : 0.0f,
      .key = g3_rng_key(g->spec.seed, G3_RNG_DROP_ATTENTION, item),
      .sample = g->first_sample + micro * g->spec.micro_batch,
      .head = m->heads / g->spec.part.tp * g->spec.part.tp_rank,
  };
  return a;
}

/* Columns [which * w / tp, ...) of rows of x as [batch, time, heads, head_dim]. */
static g3_tensor heads_view(const g3_gpt *g, g3_tensor x, int64_t which) {
  const g3_model_config *m = &g->spec.model;
  const int64_t heads = m->heads / g->spec.part.tp, dim = m->width / m->heads;
  g3_tensor t = g3_tensor_4d(g3_tensor_at(x, which * heads * dim), x.dtype, g->spec.micro_batch,
                             m->seq, heads, dim);
  t.stride[0] = m->seq * x.stride[0];
  t.stride[1] = x.stride[0];
  t.stride[2] = dim;
  return t;
}

g3_status g3_gpt_block(g3_gpt *g, g3_stream *s, int micro, int layer, g3_block_acts *a,
                       g3_tensor y) {
  const g3_device_ops *ops = g->dev->ops;
  const g3_weight *w = g3_gpt_weight(g, layer, (g3_row_id)0);
  const g3_attention_spec attention = attention_spec(g, micro, layer);
  const g3_dropout_spec drop_mid = residual_dropout(g, micro, layer, 0);
  const g3_dropout_spec drop_out = residual_dropout(g, micro, layer, 1);

  G3_TRY(ops->layernorm(s, a->ln1, a->mean1, a->rstd1, a->x, w[G3_ROW_LN1_W].value,
                        w[G3_ROW_LN1_B].value));
  G3_TRY(g3_gpt_see(g, s, G3_SEEN_LN1, micro, layer, a->ln1));
  G3_TRY(g->sums->column(g, s, a->qkv, a->ln1, &w[G3_ROW_QKV_W], &w[G3_ROW_QKV_B]));
  G3_TRY(g3_gpt_see(g, s, G3_SEEN_QKV, micro, layer, a->qkv));
  G3_TRY(ops->attention(s, heads_view(g, a->att, 0), a->lse, heads_view(g, a->qkv, 0),
                        heads_view(g, a->qkv, 1), heads_view(g, a->qkv, 2), &attention));
  G3_TRY(g3_gpt_see(g, s, G3_SEEN_ATT, micro, layer, a->att));
  G3_TRY(g->sums->row(g, s, a->mid, a->att, a->x, &w[G3_ROW_PROJ_W], &w[G3_ROW_PROJ_B], &drop_mid));
  G3_TRY(g3_gpt_see(g, s, G3_SEEN_MID, micro, layer, a->mid));

  G3_TRY(ops->layernorm(s, a->ln2, a->mean2, a->rstd2, a->mid, w[G3_ROW_LN2_W].value,
                        w[G3_ROW_LN2_B].value));
  G3_TRY(g3_gpt_see(g, s, G3_SEEN_LN2, micro, layer, a->ln2));
  G3_TRY(g->sums->column(g, s, a->up, a->ln2, &w[G3_ROW_UP_W], &w[G3_ROW_UP_B]));
  G3_TRY(g3_gpt_see(g, s, G3_SEEN_UP, micro, layer, a->up));
  G3_TRY(ops->gelu(s, a->act, a->up));
  G3_TRY(g3_gpt_see(g, s, G3_SEEN_ACT, micro, layer, a->act));
  return g->sums->row(g, s, y, a->act, a->mid, &w[G3_ROW_DOWN_W], &w[G3_ROW_DOWN_B], &drop_out);
}

g3_status g3_gpt_block_bwd(g3_gpt *g, g3_stream *s, int micro, int layer, const g3_block_acts *a,
                           g3_tensor dx, g3_tensor dy) {
  const g3_device_ops *ops = g->dev->ops;
  const g3_weight *w = g3_gpt_weight(g, layer, (g3_row_id)0);
  const g3_attention_spec attention = attention_spec(g, micro, layer);
  const g3_dropout_spec drop_mid = residual_dropout(g, micro, layer, 0);
  const g3_dropout_spec drop_out = residual_dropout(g, micro, layer, 1);
  g3_tensor dln;

  G3_TRY(
      g->sums->row_bwd(g, s, g->wide, dy, a->act, &w[G3_ROW_DOWN_W], &w[G3_ROW_DOWN_B], &drop_out));
  G3_TRY(g3_gpt_see(g, s, G3_SEEN_D_ACT, micro, layer, g->wide));
  G3_TRY(ops->gelu_bwd(s, g->wide, g->wide, a->up));
  G3_TRY(g3_gpt_see(g, s, G3_SEEN_D_UP, micro, layer, g->wide));
  G3_TRY(g->sums->column_bwd(g, s, &dln, g->wide, a->ln2, &w[G3_ROW_UP_W], &w[G3_ROW_UP_B]));
  G3_TRY(g->sums->layernorm_bwd(g, s, g->grad, dy, &w[G3_ROW_LN2_W], &w[G3_ROW_LN2_B], dln, a->mid,
                                a->mean2, a->rstd2));
  G3_TRY(g3_gpt_see(g, s, G3_SEEN_D_MID, micro, layer, g->grad));

  G3_TRY(g->sums->row_bwd(g, s, g->datt, g->grad, a->att, &w[G3_ROW_PROJ_W], &w[G3_ROW_PROJ_B],
                          &drop_mid));
  G3_TRY(g3_gpt_see(g, s, G3_SEEN_D_ATT, micro, layer, g->datt));
  G3_TRY(ops->attention_bwd(s, heads_view(g, g->dqkv, 0), heads_view(g, g->dqkv, 1),
                            heads_view(g, g->dqkv, 2), heads_view(g, g->datt, 0),
                            heads_view(g, a->att, 0), a->lse, heads_view(g, a->qkv, 0),
                            heads_view(g, a->qkv, 1), heads_view(g, a->qkv, 2), &attention));
  G3_TRY(g3_gpt_see(g, s, G3_SEEN_D_QKV, micro, layer, g->dqkv));
  G3_TRY(g->sums->column_bwd(g, s, &dln, g->dqkv, a->ln1, &w[G3_ROW_QKV_W], &w[G3_ROW_QKV_B]));
  return g->sums->layernorm_bwd(g, s, dx, g->grad, &w[G3_ROW_LN1_W], &w[G3_ROW_LN1_B], dln, a->x,
                                a->mean1, a->rstd1);
}
