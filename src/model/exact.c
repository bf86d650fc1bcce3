/* The same products and sums in one order whatever the layout. The whole model's products are cut
 * into `chunks` blocks, of which this rank has `blocks`; terms that different ranks may hold are
 * summed along the binary tree over all chunks, whose lower levels lie within a rank and whose
 * upper ones over tp (parallel/tree.h). docs/numerics.md draws it. A micro-batch is one sample. */
#include "model/internal.h"
#include "parallel/tree.h"

/* Columns of one block of a tensor whose columns are cut over tp, `matrices` beside each other. */
static int64_t block_of(const g3_gpt *g, int64_t columns, const g3_weight *w) {
  return columns / (g->blocks * w->matrices);
}

static g3_tensor as_1d(g3_tensor t, int64_t count) {
  return g3_tensor_1d(t.data, G3_F32, count);
}

/* The sum over tp of `slabs`, rounded once; *out [p, w]. */
static g3_status leave(g3_gpt *g, g3_stream *s, g3_tensor *out) {
  const g3_device_ops *ops = g->dev->ops;
  g3_comm *tp = g->region.tp;
  *out = g->part;
  if (tp->size == 1) return ops->tree_sum(s, *out, g->slabs);
  const int64_t all = g3_tensor_count(g->slabs) / g->blocks, mine = g3_tensor_count(*out);
  g3_tensor sum = as_1d(g->slabs, all);
  G3_TRY(ops->tree_sum(s, sum, g->slabs));
  if (g->region.sequence) {
    G3_TRY(g3_tree_reduce_scatter(tp, s, sum, g->halves));
    sum = g3_tensor_part(sum, 0, tp->rank * mine, mine);
  } else {
    G3_TRY(g3_tree_all_reduce(tp, s, sum, g->halves));
  }
  return out->dtype == G3_F32 ? ops->copy(s, *out, sum) : ops->cast(s, *out, sum);
}

static g3_status column(g3_gpt *g, g3_stream *s, g3_tensor out, g3_tensor x, const g3_weight *w,
                        const g3_weight *b) {
  g3_tensor whole;
  G3_TRY(g3_gpt_enter(g, s, x, &whole));
  const g3_gemm_spec spec = {
      .trans_b = true, .bias = b->value, .cut = G3_CUT_N, .block = block_of(g, out.dim[1], w)};
  return g->dev->ops->gemm(s, out, whole, w->value, &spec);
}

/* slabs[i] = block i of dout times its rows of W: of qkv the sum of three such products. */
static g3_status input_slabs(g3_gpt *g, g3_stream *s, g3_tensor dout, const g3_weight *w) {
  const int64_t each = dout.dim[1] / w->matrices;
  for (int64_t i = 0; i < w->matrices; i++) {
    const g3_gemm_spec spec = {
        .accumulate = i > 0, .cut = G3_CUT_K, .block = block_of(g, dout.dim[1], w)};
    G3_TRY(g->dev->ops->gemm(s, g->slabs, g3_tensor_part(dout, 1, i * each, each),
                             g3_tensor_part(w->value, 0, i * each, each), &spec));
  }
  return G3_OK;
}

static g3_status column_bwd(g3_gpt *g, g3_stream *s, g3_tensor *dx, g3_tensor dout, g3_tensor x,
                            const g3_weight *w, const g3_weight *b) {
  const g3_device_ops *ops = g->dev->ops;
  g3_tensor whole;
  G3_TRY(g3_gpt_enter(g, s, x, &whole));
  G3_TRY(ops->column_sum(s, b->grad, dout));
  const g3_gemm_spec spec = {
      .trans_a = true, .accumulate = true, .cut = G3_CUT_M, .block = block_of(g, dout.dim[1], w)};
  G3_TRY(ops->gemm(s, w->grad, dout, whole, &spec));
  G3_TRY(input_slabs(g, s, dout, w));
  return leave(g, s, dx);
}

static g3_status row(g3_gpt *g, g3_stream *s, g3_tensor y, g3_tensor x, g3_tensor residual,
                     const g3_weight *w, const g3_weight *b, const g3_dropout_spec *drop) {
  const g3_gemm_spec spec = {.trans_b = true, .cut = G3_CUT_K, .block = block_of(g, x.dim[1], w)};
  g3_tensor part;
  G3_TRY(g->dev->ops->gemm(s, g->slabs, x, w->value, &spec));
  G3_TRY(leave(g, s, &part));
  return g->dev->ops->bias_dropout_add(s, y, part, b->value, residual, drop);
}

/* Rows of one of the blocks that sums over rows are cut into, and how many of them are here. */
static int64_t rows_of(const g3_gpt *g) {
  return g->spec.model.seq / g->spec.part.chunks;
}
static int64_t row_blocks(const g3_gpt *g) {
  return g->p / rows_of(g);
}

/* Memory for one vector [n] of each block of rows, zeroed. */
static g3_status take_vectors(g3_gpt *g, g3_stream *s, int64_t n, g3_tensor *out) {
  *out = g3_tensor_2d(g->vectors.data, G3_F32, row_blocks(g), n);
  return g->dev->ops->fill(s, *out, 0.0f);
}

/* The sum of the blocks' vectors over all rows of the sample, wherever they are; *out [n]. */
static g3_status sum_vectors(g3_gpt *g, g3_stream *s, g3_tensor vectors, g3_tensor *out) {
  *out = as_1d(vectors, vectors.dim[1]);
  G3_TRY(g->dev->ops->tree_sum(s, *out, vectors));
  return g->region.sequence ? g3_tree_all_reduce(g->region.tp, s, *out, g->halves) : G3_OK;
}

static g3_status bias_bwd(g3_gpt *g, g3_stream *s, g3_tensor grad, g3_tensor x) {
  const g3_device_ops *ops = g->dev->ops;
  const int64_t rows = rows_of(g);
  g3_tensor vectors, sum;
  G3_TRY(take_vectors(g, s, x.dim[1], &vectors));
  for (int64_t i = 0; i < row_blocks(g); i++)
    G3_TRY(ops->column_sum(s, g3_tensor_as_1d(g3_tensor_part(vectors, 0, i, 1)),
                           g3_tensor_part(x, 0, i * rows, rows)));
  G3_TRY(sum_vectors(g, s, vectors, &sum));
  return ops->add(s, grad, sum);
}

static g3_status row_bwd(g3_gpt *g, g3_stream *s, g3_tensor dx, g3_tensor dy, g3_tensor x,
                         const g3_weight *w, const g3_weight *b, const g3_dropout_spec *drop) {
  const g3_device_ops *ops = g->dev->ops;
  const int64_t block = block_of(g, x.dim[1], w);
  g3_tensor whole, dsum = dy;
  if (drop->p > 0.0f) {
    dsum = g->part;
    G3_TRY(ops->dropout_bwd(s, dsum, dy, drop));
  }
  G3_TRY(bias_bwd(g, s, b->grad, dsum));
  G3_TRY(g3_gpt_enter(g, s, dsum, &whole));
  const g3_gemm_spec weight = {
      .trans_a = true, .accumulate = true, .cut = G3_CUT_N, .block = block};
  G3_TRY(ops->gemm(s, w->grad, whole, x, &weight));
  const g3_gemm_spec input = {.cut = G3_CUT_N, .block = block};
  return ops->gemm(s, dx, whole, w->value, &input);
}

static g3_tensor rows_at(g3_tensor t, int64_t row, int64_t rows) {
  return t.data ? g3_tensor_part(t, 0, row, rows) : t;
}

static g3_status layernorm_bwd(g3_gpt *g, g3_stream *s, g3_tensor dx, g3_tensor dres,
                               const g3_weight *w, const g3_weight *b, g3_tensor dy, g3_tensor x,
                               g3_tensor mean, g3_tensor rstd) {
  const g3_device_ops *ops = g->dev->ops;
  const int64_t rows = rows_of(g), width = x.dim[1];
  g3_tensor vectors, sum;
  G3_TRY(take_vectors(g, s, 2 * width, &vectors));
  for (int64_t i = 0; i < row_blocks(g); i++) {
    const int64_t at = i * rows;
    const g3_tensor both = g3_tensor_as_1d(g3_tensor_part(vectors, 0, i, 1));
    G3_TRY(ops->layernorm_bwd(
        s, rows_at(dx, at, rows), rows_at(dres, at, rows), g3_tensor_part(both, 0, 0, width),
        g3_tensor_part(both, 0, width, width), rows_at(dy, at, rows), rows_at(x, at, rows),
        w->value, rows_at(mean, at, rows), rows_at(rstd, at, rows)));
  }
  G3_TRY(sum_vectors(g, s, vectors, &sum));
  G3_TRY(ops->add(s, w->grad, g3_tensor_part(sum, 0, 0, width)));
  return ops->add(s, b->grad, g3_tensor_part(sum, 0, width, width));
}

/* exps [blocks, 2, n], summed over the whole vocabulary; *out [2, n]. */
static g3_status sum_exps(g3_gpt *g, g3_stream *s, g3_tensor *out) {
  const g3_tensor sum = as_1d(g->exps, 2 * g->n);
  G3_TRY(g->dev->ops->tree_sum(s, sum, g->exps));
  *out = g3_tensor_as_2d(sum, 2, g->n);
  return g3_tree_all_reduce(g->region.tp, s, sum, g->halves);
}

static g3_status head(g3_gpt *g, g3_stream *s, const g3_head_rows *part, g3_tensor h,
                      const g3_weight *w) {
  const g3_device_ops *ops = g->dev->ops;
  g3_comm *tp = g->region.tp;
  const g3_tensor targets = g3_gpt_targets(g, part);
  const g3_tensor dlogits = part->backward ? g->dlogits : g3_tensor_none();
  const int64_t block = g->v / g->blocks;
  const g3_gemm_spec forward = {.trans_b = true, .cut = G3_CUT_N, .block = block};
  const g3_gemm_spec input = {.cut = G3_CUT_K, .block = block};
  const g3_gemm_spec weight = {
      .trans_a = true, .accumulate = true, .cut = G3_CUT_M, .block = block};
  g3_tensor exps;

  G3_TRY(ops->gemm(s, g->logits, h, w->value, &forward));
  G3_TRY(ops->xent_peak(s, g->peak, g->logits, g->vocab_valid));
  if (tp->size > 1) G3_TRY(tp->ops->all_reduce(tp, s, g->peak, G3_MAX));
  G3_TRY(ops->xent_sums(s, g->exps, g->logits, g->peak, targets, g->vocab_first, g->vocab_valid));
  G3_TRY(sum_exps(g, s, &exps));
  G3_TRY(ops->xent_loss(s, g->loss, dlogits, g->logits, g->peak, exps, targets, g->vocab_first,
                        g->vocab_valid, part->scale));
  if (g->see)
    G3_TRY(g3_gpt_show(g, s, G3_SEEN_LOSS, part->micro, g->spec.part.nlayers - 1, 0, g->loss));
  if (tp->rank == 0) G3_TRY(ops->exact_sum(s, g->loss_sum, g->loss, false));
  if (!part->backward) return G3_OK;
  G3_TRY(ops->gemm(s, g->slabs, g->dlogits, w->value, &input));
  return ops->gemm(s, w->grad, g->dlogits, h, &weight);
}

const g3_gpt_sums g3_gpt_exact_sums = {.column = column,
                                       .column_bwd = column_bwd,
                                       .row = row,
                                       .row_bwd = row_bwd,
                                       .layernorm_bwd = layernorm_bwd,
                                       .head = head,
                                       .leave = leave};
