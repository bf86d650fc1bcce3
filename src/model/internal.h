/* What the files of this folder share. Names of dimensions: n tokens of a micro-batch, p tokens of
 * this rank's part of them (n / tp under sequence parallelism, else n), w width, f ffn / tp, v
 * vocabulary part. */
#ifndef G3_MODEL_INTERNAL_H
#define G3_MODEL_INTERNAL_H
#include "model/gpt.h"

typedef struct {
  g3_tensor value, grad; /* none where this part does not hold the row */
  int64_t matrices; /* that lie one below the other: 3 of qkv, else 1 */
} g3_weight;

/* What forward keeps of one block for its backward. */
typedef struct {
  g3_tensor x; /* [p, w] its input; a view of the border's buffer in a later stage's first block */
  g3_tensor mean1, rstd1, ln1; /* [p], [p], [p, w] */
  g3_tensor qkv, att, lse; /* [n, 3 w / tp], [n, w / tp], [batch, heads / tp, seq] */
  g3_tensor mid; /* [p, w] after the attention's residual */
  g3_tensor mean2, rstd2, ln2;
  g3_tensor up, act; /* [n, f] before and after GELU */
} g3_block_acts;

/* Tokens [row, row + rows) of a micro-batch in the head. */
typedef struct {
  int micro;
  int64_t row, rows;
  bool backward;
  float scale; /* of the loss's gradient */
} g3_head_rows;

/* What sums over something that a layout cuts; all enqueue on s, collective over tp. */
typedef struct {
  /* out = x W^T + b, W [columns, rows of x]: column-parallel. Backward: *dx [p, w] = dout W summed
   * over tp; adds to the gradients of W and b; x is the layer's input. */
  g3_status (*column)(g3_gpt *, g3_stream *s, g3_tensor out, g3_tensor x, const g3_weight *w,
                      const g3_weight *b);
  g3_status (*column_bwd)(g3_gpt *, g3_stream *s, g3_tensor *dx, g3_tensor dout, g3_tensor x,
                          const g3_weight *w, const g3_weight *b);
  /* y = residual + dropout(sum over tp of x W^T + b): row-parallel. Backward: dx [n, columns of x]
   * from dy [p, w]; adds to the gradients of W and b; the residual's own gradient is dy. */
  g3_status (*row)(g3_gpt *, g3_stream *s, g3_tensor y, g3_tensor x, g3_tensor residual,
                   const g3_weight *w, const g3_weight *b, const g3_dropout_spec *drop);
  g3_status (*row_bwd)(g3_gpt *, g3_stream *s, g3_tensor dx, g3_tensor dy, g3_tensor x,
                       const g3_weight *w, const g3_weight *b, const g3_dropout_spec *drop);
  /* As the device's op, over the rows of all ranks where those are the whole gradient's owner. */
  g3_status (*layernorm_bwd)(g3_gpt *, g3_stream *s, g3_tensor dx, g3_tensor dres,
                             const g3_weight *w, const g3_weight *b, g3_tensor dy, g3_tensor x,
                             g3_tensor mean, g3_tensor rstd);
  /* The loss of rows h [rows, w], added to the loss's sum; with backward, adds to the gradient of
   * W, and `leave` then gives the gradient of h. */
  g3_status (*head)(g3_gpt *, g3_stream *s, const g3_head_rows *part, g3_tensor h,
                    const g3_weight *w);
  /* What the product before left, summed over tp; *out [p, w] is where that is. */
  g3_status (*leave)(g3_gpt *, g3_stream *s, g3_tensor *out);
} g3_gpt_sums;

/* As fast as can be; and in one order whatever the layout (part.chunks > 0). */
extern const g3_gpt_sums g3_gpt_fast_sums, g3_gpt_exact_sums;

struct g3_gpt {
  g3_gpt_spec spec;
  const g3_gpt_sums *sums;
  g3_stage stage;
  g3_device *dev; /* borrowed, as the following */
  g3_region region;
  g3_tensor loss_sum;
  g3_param_place *place; /* [flat->nparams] row and layer of each parameter */
  g3_weight *weight; /* [max(nlayers, 1)][G3_ROWS]; rows outside blocks in layer 0 */
  g3_block_acts *acts; /* [slots][nlayers] */
  g3_tensor *last_x; /* [slots] the last stage's final hidden state, [p, w] */
  int64_t n, p, v; /* tokens, tokens of my part, vocabulary rows of my part */
  int64_t vocab_first, vocab_valid; /* my range of the vocabulary: first id, real ids */
  int64_t chunk; /* rows of logits at once */

  /* Temporaries. */
  g3_tensor whole_a; /* [n, w]: gathered hidden states; none without sequence parallelism */
  g3_tensor whole_b; /* [n, w]: partial results before they are summed over tp */
  g3_tensor part; /* [p, w]: what `whole_b` became; or a dropout's gradient */
  g3_tensor grad; /* [p, w]: the gradient that runs down the blocks */
  g3_tensor wide; /* [n, f]: gradient of the feed-forward's inside */
  g3_tensor dqkv, datt; /* [n, 3 w / tp], [n, w / tp] */
  g3_tensor head_mean, head_rstd; /* [p] */
  g3_tensor logits, dlogits; /* [chunk, v]: f32; of dtype (f32: the same memory) */
  g3_tensor peak, exps, loss; /* f32 [chunk], [2, chunk], [chunk] */

  /* Exact alone: my blocks of products before they are summed, f32 [blocks, n, w]; of vectors f32
   * [blocks of rows, 2, w]; what comes from other ranks, f32 [n w / 2]. logits and dlogits are
   * [blocks, n, v / blocks], exps [blocks, 2, n]. */
  int64_t blocks; /* of the chunks that products are cut into: chunks / tp */
  g3_tensor slabs, vectors, halves;

  /* The step's batch. */
  g3_tensor ids, targets; /* i32 [micros * n] */
  int64_t first_sample;
  bool train;

  g3_see_fn see; /* NULL but while somebody looks */
  void *see_ctx;
};

/* The weight of a row, of a block by its number within the part. */
static inline const g3_weight *g3_gpt_weight(const g3_gpt *g, int layer, g3_row_id row) {
  return &g->weight[layer * G3_ROWS + (int)row];
}

/* Shows a tensor to who watches. `layer` is the block's number within the part; `row` is the token
 * of row 0, for tensors of all tokens (what holds my part of them is known by its rows). */
G3_MUST_USE g3_status g3_gpt_show(g3_gpt *g, g3_stream *s, g3_seen_kind kind, int micro, int layer,
                                  int64_t row, g3_tensor t);

/* The same, at no cost while nobody watches. */
static inline g3_status g3_gpt_see(g3_gpt *g, g3_stream *s, g3_seen_kind kind, int micro, int layer,
                                   g3_tensor t) {
  return g->see ? g3_gpt_show(g, s, kind, micro, layer, 0, t) : G3_OK;
}

/* The input of a column-parallel product: x itself, or gathered over tp. */
G3_MUST_USE g3_status g3_gpt_enter(g3_gpt *g, g3_stream *s, g3_tensor x, g3_tensor *whole);

/* The targets of some rows, i32 [rows]. */
g3_tensor g3_gpt_targets(const g3_gpt *g, const g3_head_rows *part);

/* All: enqueue on s; collective over tp. `micro` is the micro-batch's number in the step. */

/* x [p, w] = token and position embeddings with dropout. Backward adds to their gradients from dx.
 */
G3_MUST_USE g3_status g3_gpt_embed(g3_gpt *g, g3_stream *s, int micro, g3_tensor x);
G3_MUST_USE g3_status g3_gpt_embed_bwd(g3_gpt *g, g3_stream *s, int micro, g3_tensor dx);

/* One block: y [p, w] from a->x. Backward: dx [p, w] from dy; may not be the same memory as dy
 * unless that is g->grad. */
G3_MUST_USE g3_status g3_gpt_block(g3_gpt *g, g3_stream *s, int micro, int layer, g3_block_acts *a,
                                   g3_tensor y);
G3_MUST_USE g3_status g3_gpt_block_bwd(g3_gpt *g, g3_stream *s, int micro, int layer,
                                       const g3_block_acts *a, g3_tensor dx, g3_tensor dy);

/* Final layernorm, head and loss of x [p, w], in chunks of tokens; adds to the loss's sum. dx: none
 * in evaluation; else the gradient of x, and the weights' gradients are added to. */
G3_MUST_USE g3_status g3_gpt_head(g3_gpt *g, g3_stream *s, int micro, g3_tensor x, g3_tensor dx);

/* The mask of a dropout on hidden states; p = 0 outside training. */
g3_dropout_spec g3_gpt_dropout(const g3_gpt *g, int micro, uint64_t key);

#endif
