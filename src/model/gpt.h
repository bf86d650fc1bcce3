/* A GPT-2/3 stage: pre-layernorm blocks, learned positions, GELU (Radford et al., 2019; Brown et
 * al., 2020), tensor-parallel as in Megatron-LM, with the embedding on the first stage and the head
 * on the last. */
#ifndef G3_MODEL_GPT_H
#define G3_MODEL_GPT_H
#include "model/spec.h"
#include "parallel/fold.h"
#include "parallel/region.h"
#include "pipeline/stage.h"

typedef struct g3_gpt g3_gpt;

typedef struct {
  g3_model_config model;
  g3_gpt_part part;
  g3_dtype dtype; /* of weights and activations */
  int64_t micro_batch; /* samples */
  int64_t micros; /* micro-batches that a step may hold at most */
  int64_t
      loss_tokens; /* tokens in the whole global batch: gradients are of the loss divided by it */
  int slots; /* of saved activations */
  uint64_t seed;
  int stage; /* global stage number */
  const g3_flat *flat; /* borrowed; of g3_gpt_params for this part */
  g3_tensor params; /* [flat->count] of dtype */
  g3_tensor grads; /* f32 [flat->count] */
  const g3_fold *fold; /* borrowed; exact (part.chunks > 0, micro_batch 1) alone, else NULL: sums
                          up the samples' gradients */
} g3_gpt_spec;

/* Local. Lays out activations and temporaries (the arenas may be measuring). */
G3_MUST_USE g3_status g3_gpt_create(const g3_gpt_spec *spec, g3_arenas *arenas, g3_gpt **out);
void g3_gpt_destroy(g3_gpt *g); /* NULL is fine */

/* Local. Gives it the device, the tensor-parallel ranks and where tp rank 0 of the last stage adds
 * the sum of token losses: f64 [1], or exact a sum of util/fixed.h. Borrowed. */
void g3_gpt_attach(g3_gpt *g, g3_device *dev, g3_comm *tp, g3_tensor loss_sum);

/* The tensors that can be looked at while a stage works, in the order in which a block makes them;
 * d_: gradients of the loss. */
typedef enum {
  G3_SEEN_EMBED, /* what the first block gets */
  G3_SEEN_LN1,
  G3_SEEN_QKV,
  G3_SEEN_ATT,
  G3_SEEN_MID, /* after the attention's residual */
  G3_SEEN_LN2,
  G3_SEEN_UP,
  G3_SEEN_ACT,
  G3_SEEN_OUT, /* what the next block gets */
  G3_SEEN_FINAL, /* after the final layernorm */
  G3_SEEN_LOSS, /* of each token */
  G3_SEEN_D_FINAL, /* of the last block's output */
  G3_SEEN_D_ACT,
  G3_SEEN_D_UP,
  G3_SEEN_D_MID,
  G3_SEEN_D_ATT,
  G3_SEEN_D_QKV,
  G3_SEEN_D_IN, /* of what the block got */
  G3_SEEN_KINDS
} g3_seen_kind;
extern const char *const g3_seen_names[G3_SEEN_KINDS]; /* "embed", "ln1", ... */

/* A tensor that was just made. */
typedef struct {
  g3_seen_kind kind;
  int micro; /* micro-batch of the step, on this data rank */
  int layer; /* number in the whole model; that of the nearest block for what is outside blocks */
  int64_t row; /* its row 0 is this token of the micro-batch, sample by sample */
  g3_tensor t; /* dense, [rows, columns] or [rows] */
} g3_seen;

/* Looks at a tensor, or changes it; what it enqueues on s runs before anything reads the tensor. A
 * failure is the stage's. */
typedef g3_status (*g3_see_fn)(void *ctx, g3_stream *s, const g3_seen *seen);

/* Local. From now on `see` is called for every tensor above; NULL ends that. ctx is borrowed. */
void g3_gpt_watch(g3_gpt *g, g3_see_fn see, void *ctx);

/* As the pipeline sees it. Owned by g. */
g3_stage *g3_gpt_stage(g3_gpt *g);

/* Local. The batch of the coming step, copied: token ids i32 [micros * micro_batch, seq + 1] on the
 * host (-1: no token, no loss), and the global number of its first sample. Without `train` there is
 * no dropout. */
void g3_gpt_batch(g3_gpt *g, const int32_t *tokens, int64_t first_sample, bool train);

/* Local. Initial weights: a function of (seed, parameter, global element) alone; the same in any
 * layout. With `all_random` biases and norms are random too, so that nothing hides behind a zero or
 * a one: for gpt3d verify. */
G3_MUST_USE g3_status g3_gpt_init(g3_gpt *g, g3_stream *s, bool all_random);

#endif
