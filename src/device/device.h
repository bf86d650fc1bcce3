/* What a backend must do. A backend is a folder with one `static const` table; every op stands
 * beside its backward, enqueues on a stream and may return before it is done. */
#ifndef G3_DEVICE_DEVICE_H
#define G3_DEVICE_DEVICE_H
#include "device/arena.h"
#include "tensor/tensor.h"
#include "util/status.h"

typedef struct g3_device g3_device; /* one per process: a CPU or one GPU */
typedef struct g3_stream g3_stream;
typedef struct g3_event g3_event;
typedef struct g3_device_ops g3_device_ops;

/* Which dimension of a product is cut into blocks. */
typedef enum { G3_CUT_NONE, G3_CUT_M, G3_CUT_N, G3_CUT_K } g3_gemm_cut;

/* C = op(A) op(B) [+ C] [+ bias]. Shapes are those of op(A) [m, k], op(B) [k, n], C [m, n]; the
 * last dimension of each stored matrix is dense, rows may be strided. A and B share a dtype (f32 or
 * bf16); C is f32 or that dtype. Sums are in f32.
 *
 * With `cut`, the product is one of products of `block` along that dimension, which it divides.
 * Each is computed by one thread, and a matrix that is cut along its stored rows is brought to
 * dense rows first: the bits of a block depend on its own shape and numbers alone, neither on how
 * many blocks there are nor on the number of threads (where a matrix is not cut along its rows, its
 * stride counts as shape). Such a matrix may also be given cut, as [blocks, rows, block] dense. Cut
 * along k, C is f32 [k / block, m, n]: the blocks' products, not summed; there is no bias. */
typedef struct {
  bool trans_a; /* A is stored [k, m] */
  bool trans_b; /* B is stored [n, k] */
  bool accumulate; /* adds into C; then C must be f32 */
  g3_tensor bias; /* [n], dtype of A, or none; not with accumulate */
  g3_gemm_cut cut;
  int64_t block;
} g3_gemm_spec;

/* Rows and columns of a matrix as it is stored, given whole or cut into blocks of columns. */
static inline int64_t g3_gemm_rows(g3_tensor t) {
  return t.ndim == 3 ? t.dim[1] : t.dim[0];
}
static inline int64_t g3_gemm_columns(g3_tensor t) {
  return t.ndim == 3 ? t.dim[0] * t.dim[2] : t.dim[1];
}

/* m, n and k of a product. */
typedef struct {
  int64_t m, n, k;
} g3_gemm_shape;
static inline g3_gemm_shape g3_gemm_shape_of(g3_tensor a, g3_tensor b, const g3_gemm_spec *spec) {
  const int64_t rows = g3_gemm_rows(a), columns = g3_gemm_columns(a);
  g3_gemm_shape s;
  s.m = spec->trans_a ? columns : rows;
  s.k = spec->trans_a ? rows : columns;
  s.n = spec->trans_b ? g3_gemm_rows(b) : g3_gemm_columns(b);
  return s;
}

typedef struct {
  float scale; /* of q.k before the softmax: 1/sqrt(head_dim) */
  float dropout; /* of the probabilities; 0 = none */
  uint64_t key; /* Philox key of the mask: g3_rng_key(seed, G3_RNG_DROP_ATTENTION, layer) */
  int64_t sample; /* global number of the first sample of the batch */
  int64_t head; /* global number of the first head */
} g3_attention_spec;

/* Which numbers a dropout mask over rows of hidden states uses. Row r is flat token row + r of a
 * batch whose first sample has global number `sample`; its sample is sample + flat / seq, its
 * position flat % seq. The element in column c is kept when word c % 4 of philox(key, counter = {c
 * / 4, position, low 32 bits of sample, high bits of sample << 16}) is >= p * 2^32; kept elements
 * are scaled by 1 / (1 - p). Attention masks use counter {k / 4, q, low 32 bits of sample, head |
 * high bits of sample << 16}, word k % 4, for query q and key k. */
typedef struct {
  float p; /* 0 = none */
  uint64_t key;
  int64_t sample, row, seq;
} g3_dropout_spec;

/* AdamW (Loshchilov and Hutter, "Decoupled weight decay regularization", ICLR'19, algorithm 2):
 * m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2; p = p - lr (m^ / (sqrt(v^) + eps) + decay p),
 * with m^, v^ corrected by 1 - b^t, t = control.applied_steps, and g scaled by control.clip. */
typedef struct {
  float lr, beta1, beta2, eps, decay;
} g3_adamw_spec;

/* What one step decides, held by the backend so that no host wait is needed inside a step. Updated
 * once, after the global sums, alike on all ranks. */
typedef struct {
  double loss_sum, tokens, stop; /* the sums' first entries */
  double norm; /* global gradient norm before clipping */
  int64_t applied_steps; /* AdamW's t: steps that were not skipped */
  float clip; /* factor on gradients */
  int32_t skip; /* the norm or the loss is not finite, or the clipped norm is G3_MOST_NORM or more:
                   AdamW does nothing */
} g3_control;

/* A gradient of this norm has squares that f32 moments cannot hold: 2^64. */
#define G3_MOST_NORM 0x1p64

/* Entries of the vector of float64 sums that is reduced once a step over all ranks. */
enum { G3_SUM_LOSS, G3_SUM_TOKENS, G3_SUM_STOP, G3_SUM_SQUARES /* first of one per parameter */ };

/* The largest shapes that a rank works on; what a backend's workspace depends on, and nothing else.
 */
typedef struct {
  int64_t tokens, width, ffn, vocab, head_dim;
  int64_t cut; /* the widest dimension that blocks of products cut; 0 = no product is cut */
  g3_dtype dtype;
} g3_workload;

struct g3_device_ops {
  const char *name; /* "cpu", "cuda" */

  /* Memory. alloc: zeroed, on 4096 bytes. copy: dense, same dtype and count, any pair of memories.
   */
  g3_status (*alloc)(g3_device *, size_t bytes, void **out);
  void (*release)(g3_device *, void *);
  g3_status (*copy)(g3_stream *, g3_tensor dst, g3_tensor src);
  g3_status (*fill)(g3_stream *, g3_tensor dst, float value); /* dense */
  g3_status (*cast)(g3_stream *, g3_tensor dst, g3_tensor src); /* dense; f32 <-> bf16 */

  /* Order. A side stream is for transfers that run beside compute. sync waits on the host. */
  g3_status (*stream_create)(g3_device *, bool side, g3_tensor workspace, g3_stream **out);
  void (*stream_destroy)(g3_stream *);
  g3_status (*sync)(g3_stream *);
  g3_status (*event_create)(g3_device *, g3_event **out);
  void (*event_destroy)(g3_event *);
  g3_status (*record)(g3_stream *, g3_event *);
  g3_status (*wait)(g3_stream *, g3_event *); /* the stream goes on only after the event */

  /* Bytes of workspace that a stream that multiplies needs. Pure: the same on every machine and for
   * any number of threads; never asks a library. */
  size_t (*workspace)(const g3_workload *);

  /* Products. */
  g3_status (*gemm)(g3_stream *, g3_tensor c, g3_tensor a, g3_tensor b, const g3_gemm_spec *);
  g3_status (*column_sum)(g3_stream *, g3_tensor sum,
                          g3_tensor x); /* sum f32 [n] += over rows of x [m,n] */

  /* y = (x - mean) * rstd * w + b over the last dimension, eps 1e-5 (Ba et al., 2016). x, y [m, n]
   * of one dtype, w, b [n] of that dtype; mean, rstd f32 [m]. Backward: dx = dres + its gradient
   * (dres may be none and may be dx itself); dw, db f32 [n] are added to. */
  g3_status (*layernorm)(g3_stream *, g3_tensor y, g3_tensor mean, g3_tensor rstd, g3_tensor x,
                         g3_tensor w, g3_tensor b);
  g3_status (*layernorm_bwd)(g3_stream *, g3_tensor dx, g3_tensor dres, g3_tensor dw, g3_tensor db,
                             g3_tensor dy, g3_tensor x, g3_tensor w, g3_tensor mean,
                             g3_tensor rstd);

  /* GELU, tanh form (Hendrycks and Gimpel, 2016, section 2). Dense; dx may be dy. */
  g3_status (*gelu)(g3_stream *, g3_tensor y, g3_tensor x);
  g3_status (*gelu_bwd)(g3_stream *, g3_tensor dx, g3_tensor dy, g3_tensor x);

  /* Causal attention in tiles; never stores time x time (Dao et al., FlashAttention, 2022,
   * algorithms 1, 4). q, k, v, o and gradients: views [batch, time, heads, head_dim], last
   * dimension dense; lse f32 [batch, heads, time], the log of the softmax's denominator. dq, dk, dv
   * are overwritten. */
  g3_status (*attention)(g3_stream *, g3_tensor o, g3_tensor lse, g3_tensor q, g3_tensor k,
                         g3_tensor v, const g3_attention_spec *);
  g3_status (*attention_bwd)(g3_stream *, g3_tensor dq, g3_tensor dk, g3_tensor dv, g3_tensor dout,
                             g3_tensor o, g3_tensor lse, g3_tensor q, g3_tensor k, g3_tensor v,
                             const g3_attention_spec *);

  /* y [m, n] = table[ids - first] where 0 <= ids - first < rows of table, else 0. ids i32 [m].
   * Backward adds into f32 dtable, rows in the order of m. */
  g3_status (*embedding)(g3_stream *, g3_tensor y, g3_tensor ids, g3_tensor table, int64_t first);
  g3_status (*embedding_bwd)(g3_stream *, g3_tensor dtable, g3_tensor ids, g3_tensor dy,
                             int64_t first);

  /* x [m, n] += table[(row + r) % seq] for its row r; backward adds into f32 dtable [>= seq, n]. */
  g3_status (*position)(g3_stream *, g3_tensor x, g3_tensor table, int64_t row, int64_t seq);
  g3_status (*position_bwd)(g3_stream *, g3_tensor dtable, g3_tensor dx, int64_t row, int64_t seq);

  /* y = residual + dropout(x + bias); x, y, residual [m, n]; bias [n] and residual may be none; y
   * may be x. Backward of the dropout alone: dx = dy * mask / (1 - p); dx may be dy. */
  g3_status (*bias_dropout_add)(g3_stream *, g3_tensor y, g3_tensor x, g3_tensor bias,
                                g3_tensor residual, const g3_dropout_spec *);
  g3_status (*dropout_bwd)(g3_stream *, g3_tensor dx, g3_tensor dy, const g3_dropout_spec *);

  /* Softmax cross-entropy over a vocabulary cut into ranges. logits f32 [m, n]: this range's
   * columns, the first `valid` of them real, the rest padding; targets i32 [m], < 0 = no loss. In
   * order, with a reduction over the ranges after each of the first two:
   *   1. peak f32 [m] = largest valid logit                                         (then MAX)
   *   2. sums f32 [2, m]: sum of exp(logit - peak); the target's logit or 0         (then SUM)
   *   3. loss f32 [m] = log(sums[0]) + peak - sums[1]; dlogits [m, n] of f32 (may be logits itself)
   * or bf16 = (softmax - onehot) * scale, 0 in padding. dlogits may be none (evaluation).
   * Logits, and with them dlogits, may be cut into blocks of columns, [blocks, m, n] dense; sums
   * are then [blocks, 2, m], one of each block, and step 3 takes their sum [2, m] as ever. */
  g3_status (*xent_peak)(g3_stream *, g3_tensor peak, g3_tensor logits, int64_t valid);
  g3_status (*xent_sums)(g3_stream *, g3_tensor sums, g3_tensor logits, g3_tensor peak,
                         g3_tensor targets, int64_t first, int64_t valid);
  g3_status (*xent_loss)(g3_stream *, g3_tensor loss, g3_tensor dlogits, g3_tensor logits,
                         g3_tensor peak, g3_tensor sums, g3_tensor targets, int64_t first,
                         int64_t valid, float scale);

  /* Sums in float64, in an order that depends on the count alone: out f64 [1] += sum of x, of x^2.
   */
  g3_status (*sum)(g3_stream *, g3_tensor out, g3_tensor x);
  g3_status (*sum_squares)(g3_stream *, g3_tensor out, g3_tensor x);

  /* Sums in one order whatever the layout. add: y += x, dense f32 of one count. tree_sum: out,
   * dense f32 or bf16 (rounded once) of count n, = the sum of the parts f32 [k, n], k a power of
   * two, along a binary tree of neighbours, ((0 + 1) + (2 + 3)) + ...; uses the parts up, and out
   * may be the first of them. exact_sum: adds x, dense f32, or its squares, to a sum f64
   * [G3_FIXED_SIZE] (util/fixed.h) without rounding. exact_value: out f64 [n] = sums [n,
   * G3_FIXED_SIZE], each rounded once. */
  g3_status (*add)(g3_stream *, g3_tensor y, g3_tensor x);
  g3_status (*tree_sum)(g3_stream *, g3_tensor out, g3_tensor parts);
  g3_status (*exact_sum)(g3_stream *, g3_tensor sum, g3_tensor x, bool squares);
  g3_status (*exact_value)(g3_stream *, g3_tensor out, g3_tensor sums);

  /* The optimizer. control: u8 [sizeof(g3_control)]; sums: f64, entries as G3_SUM_*, squares added
   * in order. The gradient is clipped as PyTorch does it: factor min(1, max_norm / (norm + 1e-6));
   * max_norm 0 = never. adamw: dense f32 of one count; p is updated, and rounded into `low` (bf16)
   * when that is given. */
  g3_status (*control)(g3_stream *, g3_tensor control, g3_tensor sums, float max_norm);
  g3_status (*adamw)(g3_stream *, g3_tensor p, g3_tensor low, g3_tensor m, g3_tensor v, g3_tensor g,
                     const g3_adamw_spec *, g3_tensor control);
};

struct g3_device {
  const g3_device_ops *ops; /* static const, one per backend */
  int index; /* local GPU number; 0 on a CPU */
  int threads; /* of the CPU backend */
  void *impl; /* the backend's own state */
};

/* Work that completes later, such as an MPI request, handed to a stream by a layer above. */
typedef struct {
  g3_status (*wait)(void *ctx); /* blocks until done */
  bool (*test)(
      void *ctx); /* progresses; true when done (wait is then called once more and is quick) */
  void *ctx;
} g3_deferred;

enum { G3_STREAM_PENDING = 64 };

/* An in-order queue. On the CPU compute is done when a call returns, transfers when they are waited
 * for. */
struct g3_stream {
  g3_device *dev; /* borrowed */
  bool side; /* for transfers beside compute: collectives on it need not block */
  g3_tensor workspace; /* borrowed; none on a side stream */
  g3_deferred pending[G3_STREAM_PENDING];
  int npending;
  int64_t completed; /* how many deferred works are done since the stream began */
  void *impl;
};

/* Local. Hands work to a stream: the next op or sync on it completes all pending work first, and
 * waiting for an event of it what was deferred before the event. When the queue is full, the oldest
 * is waited for. */
G3_MUST_USE g3_status g3_stream_defer(g3_stream *s, g3_deferred d);

/* Local. Completes all pending work. Backends call it at the start of each op. After a failure the
 * works that were not waited for are still pending. */
G3_MUST_USE g3_status g3_stream_drain(g3_stream *s);

/* Local. Completes the oldest pending works until `completed` of them are done: what an event waits
 * for, so that what was deferred after it may still be under way. */
G3_MUST_USE g3_status g3_stream_drain_to(g3_stream *s, int64_t completed);

/* Local. Opens "cpu" (threads >= 1) or "cuda"; fails by name when an op is missing from the table
 * or the backend is not in this build. The caller closes it. */
G3_MUST_USE g3_status g3_device_open(const char *where, int threads, g3_device **out);
void g3_device_close(g3_device *dev);

/* The backend's table by name without opening a device, for plans; NULL when unknown. */
const g3_device_ops *g3_device_ops_named(const char *name);

extern const g3_device_ops g3_cpu_ops; /* always there */
extern const g3_device_ops g3_cuda_ops; /* without CUDA: fails by name at open */

#endif
