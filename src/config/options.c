/* The option table: the only place where an option is spelled out. */
#include "config/internal.h"
#include "util/text.h"
#include <limits.h>
#include <string.h>

static const char *const dtype_names[] = {
    [G3_TYPE_F32] = "f32", [G3_TYPE_BF16] = "bf16", [G3_TYPE_FP16] = "fp16", NULL};
static const char *const lr_names[] = {[G3_LR_COSINE] = "cosine",
                                       [G3_LR_LINEAR] = "linear",
                                       [G3_LR_CONSTANT] = "constant",
                                       [G3_LR_WSD] = "wsd",
                                       NULL};
static const char *const device_names[] = {
    [G3_DEVICE_AUTO] = "auto", [G3_DEVICE_CPU] = "cpu", [G3_DEVICE_CUDA] = "cuda", NULL};

/* Limits with a reason: the counter of a dropout mask (device/device.h) holds the head in 16 bits
 * and the sample in 48; ranks, micro-batches and token ids are int. */
enum { MOST_RANKS = 65536, MOST_HEADS = 65535, MOST_SEQ = 1048576 };

const g3_option g3_options[] = {
    {"model.layers", "--layers", "--num-layers", G3_OPT_INT, G3_AT(model.layers), "4", 1, 65536,
     NULL, "transformer blocks"},
    {"model.heads", "--heads", "--num-attention-heads", G3_OPT_INT, G3_AT(model.heads), "4", 1,
     MOST_HEADS, NULL, "attention heads of a block; they share the width evenly"},
    {"model.width", "--width", "--hidden-size", G3_OPT_INT, G3_AT(model.width), "128", 1, 1048576,
     NULL, "width of the residual stream"},
    {"model.ffn", "--ffn", "--ffn-hidden-size", G3_OPT_INT, G3_AT(model.ffn), "0", 0, 16777216,
     NULL, "width of the feed-forward layer; 0 = 4 x width"},
    {"model.seq", "--seq", "--seq-length", G3_OPT_INT, G3_AT(model.seq), "128", 1, MOST_SEQ, NULL,
     "tokens of a sample"},
    {"model.vocab", "--vocab", "--vocab-size", G3_OPT_INT, G3_AT(model.vocab), "256", 2, INT_MAX,
     NULL, "token ids; 256 for text read as bytes"},
    {"model.tied", "--tied", NULL, G3_OPT_BOOL, G3_AT(model.tied), "true", 0, 0, NULL,
     "the head uses the embedding's weights"},
    {"model.dropout", "--dropout", NULL, G3_OPT_FLOAT, G3_AT(model.dropout), "0", 0, 1, NULL,
     "share dropped of embeddings, attention and residuals; below 1"},

    {"parallel.tp", "--tp", "--tensor-model-parallel-size", G3_OPT_INT, G3_AT(parallel.tp), "1", 1,
     MOST_RANKS, NULL, "tensor-parallel ranks: each layer is cut into so many"},
    {"parallel.pp", "--pp", "--pipeline-model-parallel-size", G3_OPT_INT, G3_AT(parallel.pp), "1",
     1, MOST_RANKS, NULL, "pipeline ranks: the layers are cut into so many stages"},
    {"parallel.dp", "--dp", NULL, G3_OPT_INT, G3_AT(parallel.dp), "0", 0, INT_MAX, NULL,
     "data-parallel ranks: each takes its share of a batch; 0 = all ranks / (tp x pp)"},
    {"parallel.schedule", "--schedule", NULL, G3_OPT_TEXT, G3_AT(parallel.schedule), "1f1b", 0, 0,
     NULL, "order of a pipeline's work: 1f1b or gpipe"},
    {"parallel.sequence_parallel", "--sequence-parallel", NULL, G3_OPT_BOOL,
     G3_AT(parallel.sequence_parallel), "false", 0, 0, NULL,
     "tp ranks share norms and residuals by tokens: less memory, the same bytes sent"},
    {"parallel.zero", "--zero", NULL, G3_OPT_INT, G3_AT(parallel.zero), "1", 0, 1, NULL,
     "1 = dp ranks share the optimizer's state (ZeRO-1), 0 = each holds all of it"},
    {"parallel.bucket_elements", "--bucket-elements", "--ddp-bucket-size", G3_OPT_INT,
     G3_AT(parallel.bucket_elements), "4194304", 1, 1099511627776, NULL,
     "gradients are reduced over dp in buckets of about so many elements"},
    {"parallel.exact_chunks", "--exact-chunks", NULL, G3_OPT_INT, G3_AT(parallel.exact_chunks), "8",
     1, 64, NULL, "with --exact: products are cut into so many blocks, which tp must divide"},

    {"train.micro_batch", "--micro-batch", "--micro-batch-size", G3_OPT_INT,
     G3_AT(train.micro_batch), "2", 1, INT_MAX, NULL, "samples that a rank works on at once"},
    {"train.global_batch", "--global-batch", "--global-batch-size", G3_OPT_INT,
     G3_AT(train.global_batch), "32", 1, INT_MAX, NULL, "samples of a step, over all ranks"},
    {"train.steps", "--steps", "--train-iters", G3_OPT_INT, G3_AT(train.steps), "400", 1, 1e15,
     NULL, "optimizer steps of the whole run"},
    {"train.seed", "--seed", NULL, G3_OPT_UINT, G3_AT(train.seed), "1234", 0,
     18446744073709551615.0, NULL, "of initial weights, sample order and dropout"},
    {"train.dtype", "--dtype", NULL, G3_OPT_ENUM, G3_AT(train.dtype), "f32", 0, 0, dtype_names,
     "of weights and activations; sums and master weights are f32"},
    {"train.exact", "--exact", NULL, G3_OPT_BOOL, G3_AT(train.exact), "false", 0, 0, NULL,
     "one set of bits for all layouts and threads (cpu); slower, see docs/numerics.md"},
    {"train.bad_steps", "--bad-steps", NULL, G3_OPT_INT, G3_AT(train.bad_steps), "10", 0, 1e15,
     NULL, "stop after so many steps in a row with a non-finite norm; 0 = never"},

    {"optim.lr", "--lr", NULL, G3_OPT_FLOAT, G3_AT(optim.lr), "3e-4", 0, 1000, NULL,
     "highest learning rate (AdamW)"},
    {"optim.min_lr", "--min-lr", NULL, G3_OPT_FLOAT, G3_AT(optim.min_lr), "0", 0, 1000, NULL,
     "learning rate at the end of the decay"},
    {"optim.warmup", "--warmup", "--lr-warmup-iters", G3_OPT_INT, G3_AT(optim.warmup), "20", 0,
     1e15, NULL, "steps in which the learning rate rises to its highest"},
    {"optim.lr_schedule", "--lr-schedule", "--lr-decay-style", G3_OPT_ENUM, G3_AT(optim.schedule),
     "cosine", 0, 0, lr_names, "curve of the learning rate after the warm-up"},
    {"optim.decay_steps", "--decay-steps", "--lr-decay-iters", G3_OPT_INT, G3_AT(optim.decay_steps),
     "0", 0, 1e15, NULL, "step at which the decay ends; 0 = train.steps"},
    {"optim.wsd_fraction", "--wsd-fraction", NULL, G3_OPT_FLOAT, G3_AT(optim.wsd_fraction), "0.2",
     0, 1, NULL, "share of the steps, at the end, in which wsd decays"},
    {"optim.beta1", "--beta1", "--adam-beta1", G3_OPT_FLOAT, G3_AT(optim.beta1), "0.9", 0, 1, NULL,
     "decay of the first moment; below 1"},
    {"optim.beta2", "--beta2", "--adam-beta2", G3_OPT_FLOAT, G3_AT(optim.beta2), "0.95", 0, 1, NULL,
     "decay of the second moment; below 1"},
    {"optim.eps", "--eps", "--adam-eps", G3_OPT_FLOAT, G3_AT(optim.eps), "1e-8", 1e-30, 1, NULL,
     "added to the root of the second moment"},
    {"optim.weight_decay", "--weight-decay", NULL, G3_OPT_FLOAT, G3_AT(optim.weight_decay), "0.1",
     0, 1000, NULL, "of weight matrices, times the learning rate"},
    {"optim.clip", "--clip", "--clip-grad", G3_OPT_FLOAT, G3_AT(optim.clip), "1", 0, 1e30, NULL,
     "largest global norm of the gradient; 0 = no clipping"},

    {"data.path", "--data", "--data-path", G3_OPT_TEXT, G3_AT(data.path), "data/kjv.txt", 0, 0,
     NULL, "a text (its bytes are the tokens), a Megatron PREFIX.bin, or mock"},
    {"data.val_split", "--val-split", NULL, G3_OPT_FLOAT, G3_AT(data.val_split), "0.01", 0, 1, NULL,
     "share of the tokens, at the end, kept for validation; below 1"},
    {"data.eval_interval", "--eval-interval", NULL, G3_OPT_INT, G3_AT(data.eval_interval), "100", 0,
     1e15, NULL, "steps between evaluations; 0 = never"},
    {"data.eval_samples", "--eval-samples", NULL, G3_OPT_INT, G3_AT(data.eval_samples), "0", 0,
     1e15, NULL, "samples of an evaluation; 0 = all of the validation part"},

    {"run.name", "--name", NULL, G3_OPT_TEXT, G3_AT(run.name), "", 0, 0, NULL,
     "of the run; empty = the configuration's file name"},
    {"run.out", "--out", "--save", G3_OPT_TEXT, G3_AT(run.out), "", 0, 0, NULL,
     "directory of the run; empty = runs/NAME"},
    {"run.overwrite", "--overwrite", NULL, G3_OPT_BOOL, G3_AT(run.overwrite), "false", 0, 0, NULL,
     "with --resume none: begin anew where checkpoints exist"},
    {"run.resume", "--resume", "--load", G3_OPT_TEXT, G3_AT(run.resume), "auto", 0, 0, NULL,
     "auto, none, or a run directory or checkpoint to go on from"},
    {"run.init", "--init", "--pretrained-checkpoint", G3_OPT_TEXT, G3_AT(run.init), "", 0, 0, NULL,
     "a checkpoint to begin from with its weights alone"},
    {"run.save_interval", "--save-interval", NULL, G3_OPT_INT, G3_AT(run.save_interval), "100", 0,
     1e15, NULL, "steps between checkpoints; 0 = never, also not at the end"},
    {"run.keep", "--keep", NULL, G3_OPT_INT, G3_AT(run.keep), "0", 0, 1e15, NULL,
     "checkpoints to keep; 0 = all"},
    {"run.log_interval", "--log-interval", NULL, G3_OPT_INT, G3_AT(run.log_interval), "10", 0, 1e15,
     NULL, "steps between printed lines; 0 = never"},
    {"run.device", "--device", NULL, G3_OPT_ENUM, G3_AT(run.device), "auto", 0, 0, device_names,
     "where the work is done"},
    {"run.threads", "--threads", NULL, G3_OPT_INT, G3_AT(run.threads), "0", 0, 4096, NULL,
     "threads of a rank; 0 = usable cores / ranks on the node"},
    {"run.peak_tflops", "--peak-tflops", NULL, G3_OPT_FLOAT, G3_AT(run.peak_tflops), "0", 0, 1e9,
     NULL, "of one rank's device, for MFU; 0 = unknown"},

    {"", "--config", NULL, G3_OPT_TEXT, G3_AT(command.config), "", 0, 0, NULL,
     "a YAML file of these keys; without it, the built-in configs/tiny.yaml"},
    {"", "--dry-run", NULL, G3_OPT_BOOL, G3_AT(command.dry_run), "false", 0, 0, NULL,
     "print what would run, with memory and batch arithmetic, and stop"},
    {"", "--print-config", NULL, G3_OPT_BOOL, G3_AT(command.print_config), "false", 0, 0, NULL,
     "print every key with its value and origin, and stop"},
    {"", "--shrink", NULL, G3_OPT_BOOL, G3_AT(command.shrink), "false", 0, 0, NULL,
     "verify a small model of the same family, when the real one is too big"},
    {"", "--json", NULL, G3_OPT_BOOL, G3_AT(command.json), "false", 0, 0, NULL,
     "answer in JSON where a command can"},
    {"", "--debug", NULL, G3_OPT_BOOL, G3_AT(command.debug), "false", 0, 0, NULL,
     "say more; errors come with the source lines they passed"},
    {"", "--debug-nan", NULL, G3_OPT_TEXT, G3_AT(command.debug_nan), "", 0, 0, NULL,
     "train: put a NaN at STEP:STAGE:MICRO:TENSOR, to see what the run does"},
    {"", "--version", NULL, G3_OPT_BOOL, G3_AT(command.version), "false", 0, 0, NULL,
     "print the version, and stop"},
    {"", "--help", "-h", G3_OPT_BOOL, G3_AT(command.help), "false", 0, 0, NULL,
     "print this, and stop"},
    {NULL, NULL, NULL, G3_OPT_INT, 0, NULL, 0, 0, NULL, NULL},
};

int g3_option_count(void) {
  return (int)(sizeof g3_options / sizeof *g3_options) - 1;
}

const g3_option *g3_option_by_key(const char *key) {
  for (const g3_option *o = g3_options; o->flag && *key; o++)
    if (strcmp(o->key, key) == 0) return o;
  return NULL;
}

const g3_option *g3_option_at(size_t offset) {
  for (const g3_option *o = g3_options; o->flag; o++)
    if (o->offset == offset) return o;
  return NULL;
}

const g3_option *g3_option_by_flag(const char *flag) {
  for (const g3_option *o = g3_options; o->flag; o++)
    if (strcmp(o->flag, flag) == 0 || (o->alias && strcmp(o->alias, flag) == 0)) return o;
  return strncmp(flag, "--", 2) == 0 ? g3_option_by_key(flag + 2) : NULL;
}

bool g3_option_is_section(const char *name) {
  const size_t n = strlen(name);
  for (const g3_option *o = g3_options; o->flag && n; o++)
    if (strncmp(o->key, name, n) == 0 && o->key[n] == '.') return true;
  return false;
}

/* The best candidate so far of a search for what a word was meant to be. */
typedef struct {
  int distance;
  char *out;
  size_t size;
} nearest;

static void consider(nearest *n, const char *word, const char *name, int penalty,
                     const char *prefix, const char *shown) {
  const int d = g3_text_distance(word, name) + penalty;
  if (d >= n->distance) return;
  n->distance = d;
  snprintf(n->out, n->size, "%s%s", prefix, shown);
}

/* The last part of a dotted key or a flag, written as keys are: "--micro-batch" -> "micro_batch".
 */
static void bare(const char *name, char *out, size_t size) {
  const char *dot = strrchr(name, '.');
  name = dot ? dot + 1 : name + strspn(name, "-");
  snprintf(out, size, "%s", name);
  for (char *c = out; *c; c++)
    if (*c == '-') *c = '_';
}

const char *g3_option_nearest(const char *word, g3_spelling spelling, char *out, size_t size) {
  char last[64], name[64];
  bare(word, last, sizeof last);
  /* a third of the word may differ, two letters of a short one, but never all of it */
  const int length = (int)strlen(last), third = (int)strnlen(word, 63) / 3 + 1;
  const int most = third < 3 ? 3 : third, limit = most < length ? most : length;
  const char *prefix = spelling == G3_SPELLED_FLAG ? "--" : "";
  nearest n = {limit, out, size};
  for (const g3_option *o = g3_options; o->flag; o++) {
    if (spelling == G3_SPELLED_FLAG) {
      consider(&n, word, o->flag, 0, "", o->flag);
      if (o->alias) consider(&n, word, o->alias, 0, "", o->alias);
    }
    if (!*o->key) continue;
    consider(&n, word + strspn(word, "-"), o->key, 0, prefix, o->key);
    if (spelling == G3_SPELLED_FLAG) continue;
    /* the right name in the wrong section, or a flag's name as a key */
    const char *const others[] = {o->key, o->flag, o->alias};
    for (size_t i = 0; i < sizeof others / sizeof *others && others[i]; i++) {
      bare(others[i], name, sizeof name);
      consider(&n, last, name, 1, "", o->key);
    }
  }
  return n.distance < limit ? out : NULL;
}
