/* The products of a stage and the sums over tensor-parallel ranks behind them, as fast as they can
 * be. */
#include "model/internal.h"
#include "util/fault.h"

static const g3_gemm_spec nn = {.trans_a = false};
static const g3_gemm_spec tn_add = {.trans_a = true, .accumulate = true};

g3_status g3_gpt_enter(g3_gpt *g, g3_stream *s, g3_tensor x, g3_tensor *whole) {
  *whole = g->region.sequence ? g->whole_a : x;
  return g3_region_enter(&g->region, s, *whole, x);
}

/* `whole_b` summed over tp; *out [p, w] is where that is. */
static g3_status leave(g3_gpt *g, g3_stream *s, g3_tensor *out) {
  *out = g->region.sequence ? g->part : g->whole_b;
  return g3_region_leave(&g->region, s, *out, g->whole_b);
}

/* out = x W^T + b, W [columns, rows of x]: column-parallel. */
static g3_status column(g3_gpt *g, g3_stream *s, g3_tensor out, g3_tensor x, const g3_weight *w,
                        const g3_weight *b) {
  g3_tensor whole;
  G3_TRY(g3_gpt_enter(g, s, x, &whole));
  const g3_gemm_spec spec = {.trans_b = true, .bias = b->value};
  return g->dev->ops->gemm(s, out, whole, w->value, &spec);
}

/* *dx [p, w] = dout W summed over tp; adds to the gradients of W and b. x is the layer's input. */
static g3_status column_bwd(g3_gpt *g, g3_stream *s, g3_tensor *dx, g3_tensor dout, g3_tensor x,
                            const g3_weight *w, const g3_weight *b) {
  const g3_device_ops *ops = g->dev->ops;
  g3_tensor whole;
  G3_TRY(g3_gpt_enter(g, s, x, &whole));
  G3_TRY(ops->column_sum(s, b->grad, dout));
  G3_TRY(ops->gemm(s, w->grad, dout, whole, &tn_add));
  G3_TRY(ops->gemm(s, g->whole_b, dout, w->value, &nn));
  return leave(g, s, dx);
}

/* y = residual + dropout(sum over tp of x W^T + b): row-parallel. */
static g3_status row(g3_gpt *g, g3_stream *s, g3_tensor y, g3_tensor x, g3_tensor residual,
                     const g3_weight *w, const g3_weight *b, const g3_dropout_spec *drop) {
  const g3_device_ops *ops = g->dev->ops;
  const bool early = g3_fault("bias-added-early") && x.dim[1] == g->datt.dim[1];
  const g3_gemm_spec nt = {.trans_b = true, .bias = early ? b->value : g3_tensor_none()};
  G3_TRY(ops->gemm(s, g->whole_b, x, w->value, &nt));
  g3_tensor part;
  G3_TRY(leave(g, s, &part));
  return ops->bias_dropout_add(s, y, part, early ? g3_tensor_none() : b->value, residual, drop);
}

/* dx [n, columns of x] from dy [p, w]; adds to the gradients of W and b. The residual's own
 * gradient is dy. */
static g3_status row_bwd(g3_gpt *g, g3_stream *s, g3_tensor dx, g3_tensor dy, g3_tensor x,
                         const g3_weight *w, const g3_weight *b, const g3_dropout_spec *drop) {
  const g3_device_ops *ops = g->dev->ops;
  g3_tensor dsum = dy;
  if (drop->p > 0.0f) {
    dsum = g->part;
    G3_TRY(ops->dropout_bwd(s, dsum, dy, drop));
  }
  G3_TRY(ops->column_sum(s, b->grad, dsum));
  g3_tensor whole;
  G3_TRY(g3_gpt_enter(g, s, dsum, &whole));
  G3_TRY(ops->gemm(s, w->grad, whole, x, &tn_add));
  return ops->gemm(s, dx, whole, w->value, &nn);
}

/* Loss, and with `backward` the gradients, of the rows: h [rows, w]; its gradient into `whole_b`.
 */
static g3_status head(g3_gpt *g, g3_stream *s, const g3_head_rows *part, g3_tensor h,
                      const g3_weight *w) {
  const g3_device_ops *ops = g->dev->ops;
  g3_comm *tp = g->region.tp;
  const int64_t rows = part->rows;
  const g3_tensor targets = g3_gpt_targets(g, part);
  const g3_tensor logits = g3_tensor_part(g->logits, 0, 0, rows);
  const g3_tensor peak = g3_tensor_part(g->peak, 0, 0, rows);
  const g3_tensor sums = g3_tensor_2d(g->exps.data, G3_F32, 2, rows);
  const g3_tensor loss = g3_tensor_part(g->loss, 0, 0, rows);
  const g3_tensor dlogits =
      part->backward ? g3_tensor_part(g->dlogits, 0, 0, rows) : g3_tensor_none();
  const g3_gemm_spec nt = {.trans_b = true};
  const g3_tensor dh = g3_tensor_part(g->whole_b, 0, part->row, rows);

  G3_TRY(ops->gemm(s, logits, h, w->value, &nt));
  G3_TRY(ops->xent_peak(s, peak, logits, g->vocab_valid));
  if (tp->size > 1) G3_TRY(tp->ops->all_reduce(tp, s, peak, G3_MAX));
  G3_TRY(ops->xent_sums(s, sums, logits, peak, targets, g->vocab_first, g->vocab_valid));
  if (tp->size > 1) G3_TRY(tp->ops->all_reduce(tp, s, sums, G3_SUM));
  G3_TRY(ops->xent_loss(s, loss, dlogits, logits, peak, sums, targets, g->vocab_first,
                        g->vocab_valid, part->scale));
  if (g->see)
    G3_TRY(g3_gpt_show(g, s, G3_SEEN_LOSS, part->micro, g->spec.part.nlayers - 1, part->row, loss));
  if (tp->rank == 0) G3_TRY(ops->sum(s, g->loss_sum, loss));
  if (!part->backward) return G3_OK;
  G3_TRY(ops->gemm(s, dh, dlogits, w->value, &nn));
  return ops->gemm(s, w->grad, dlogits, h, &tn_add);
}

static g3_status layernorm_bwd(g3_gpt *g, g3_stream *s, g3_tensor dx, g3_tensor dres,
                               const g3_weight *w, const g3_weight *b, g3_tensor dy, g3_tensor x,
                               g3_tensor mean, g3_tensor rstd) {
  return g->dev->ops->layernorm_bwd(s, dx, dres, w->grad, b->grad, dy, x, w->value, mean, rstd);
}

const g3_gpt_sums g3_gpt_fast_sums = {.column = column,
                                      .column_bwd = column_bwd,
                                      .row = row,
                                      .row_bwd = row_bwd,
                                      .layernorm_bwd = layernorm_bwd,
                                      .head = head,
                                      .leave = leave};
