/* Relations between values. Each message opens with the origin of the value most likely meant: the
 * one from the strongest source. */
#include "config/internal.h"
#include "util/array.h"
#include "util/text.h"
#include <inttypes.h>
#include <limits.h>
#include <string.h>

static const g3_origin *origin_at(const g3_settings *s, size_t offset) {
  const g3_option *o = g3_option_at(offset);
  G3_CHECK(o, "no option lies at offset %zu of g3_config", offset);
  return &s->origin[o - g3_options];
}

/* Where the first of the strongest of n values came from. */
static const char *blame(const g3_settings *s, const size_t *offsets, size_t n) {
  const g3_origin *worst = origin_at(s, offsets[0]);
  for (size_t i = 1; i < n; i++) {
    const g3_origin *o = origin_at(s, offsets[i]);
    if (o->kind > worst->kind) worst = o;
  }
  return worst->where;
}

#define BLAME(s, ...)                                                                              \
  blame((s), (const size_t[]){__VA_ARGS__}, sizeof((const size_t[]){__VA_ARGS__}) / sizeof(size_t))

static int64_t gcd(int64_t a, int64_t b) {
  while (b) {
    const int64_t r = a % b;
    a = b;
    b = r;
  }
  return a;
}

/* The divisors of n up to `limit` that lie around `near`, as "1, 2, 4, 8 or 16". */
static const char *divisors_text(int64_t n, int64_t limit, int64_t near, char *out, size_t size) {
  enum { EACH = 6 };
  int64_t low[EACH], high[EACH];
  int lows = 0, highs = 0;
  for (int64_t d = 1; d <= n && d <= limit && highs < EACH; d++) {
    if (n % d != 0) continue;
    if (d > near)
      high[highs++] = d;
    else {
      if (lows == EACH) memmove(low, low + 1, (EACH - 1) * sizeof *low);
      low[lows < EACH ? lows++ : EACH - 1] = d;
    }
  }
  out[0] = '\0';
  for (int i = 0; i < lows + highs; i++) {
    char word[G3_NUMBER_TEXT];
    snprintf(word, sizeof word, "%" PRId64, i < lows ? low[i] : high[i - lows]);
    g3_list_append(out, size, i, lows + highs, word);
  }
  return out;
}

/* The multiples of `unit` next to x, as "24 or 32"; only the upper one when the lower is 0. */
static const char *multiples_text(int64_t unit, int64_t x, char *out, size_t size) {
  const int64_t below = x / unit * unit;
  if (below)
    snprintf(out, size, "%" PRId64 " or %" PRId64, below, below + unit);
  else
    snprintf(out, size, "%" PRId64, unit);
  return out;
}

/* Shares must leave something: the table's limits include 1, these do not. */
static g3_status check_shares(const g3_settings *s) {
  static const size_t below_one[] = {G3_AT(model.dropout), G3_AT(optim.beta1), G3_AT(optim.beta2),
                                     G3_AT(data.val_split)};
  for (size_t i = 0; i < sizeof below_one / sizeof *below_one; i++) {
    double x;
    memcpy(&x, (const char *)&s->value + below_one[i], sizeof x);
    if (x >= 1)
      return G3_FAIL(G3_EINVAL, "%s: %s = 1 must be below 1", origin_at(s, below_one[i])->where,
                     g3_option_at(below_one[i])->key);
  }
  return G3_OK;
}

static g3_status check_heads(const g3_settings *s) {
  const g3_model_config *m = &s->value.model;
  char use[256];
  if (m->width % m->heads == 0) return G3_OK;
  return G3_FAIL(G3_EINVAL,
                 "%s: model.heads = %" PRId64 " does not divide model.width = %" PRId64 "; use %s",
                 BLAME(s, G3_AT(model.heads), G3_AT(model.width)), m->heads, m->width,
                 divisors_text(m->width, 65535, m->heads, use, sizeof use));
}

static g3_status check_tp(const g3_settings *s) {
  const g3_model_config *m = &s->value.model;
  const int64_t tp = s->value.parallel.tp;
  const struct {
    const char *key;
    int64_t value;
    size_t offset;
  } cut[] = {{"model.heads", m->heads, G3_AT(model.heads)},
             {"model.ffn", m->ffn, G3_AT(model.ffn)}};
  char use[256];
  for (size_t i = 0; i < sizeof cut / sizeof *cut; i++) {
    if (cut[i].value % tp == 0) continue;
    return G3_FAIL(G3_EINVAL,
                   "%s: parallel.tp = %" PRId64 " does not divide %s = %" PRId64 "; use %s",
                   BLAME(s, G3_AT(parallel.tp), cut[i].offset), tp, cut[i].key, cut[i].value,
                   divisors_text(gcd(m->heads, m->ffn), INT64_MAX, tp, use, sizeof use));
  }
  return G3_OK;
}

static g3_status check_stages(const g3_settings *s) {
  const int64_t pp = s->value.parallel.pp, layers = s->value.model.layers;
  if (pp <= layers) return G3_OK;
  return G3_FAIL(G3_EINVAL,
                 "%s: parallel.pp = %" PRId64 " stages are more than model.layers = %" PRId64
                 ", and each needs a layer; use at most %" PRId64,
                 BLAME(s, G3_AT(parallel.pp), G3_AT(model.layers)), pp, layers, layers);
}

static g3_status check_ranks(const g3_settings *s) {
  const g3_parallel_config *p = &s->value.parallel;
  const int64_t dp = p->dp ? p->dp : 1, ranks = p->tp * p->pp * dp; /* <= 2^16 2^16 2^31 */
  if (ranks <= INT_MAX) return G3_OK;
  return G3_FAIL(G3_EINVAL,
                 "%s: parallel.tp %" PRId64 " x parallel.pp %" PRId64 " x parallel.dp %" PRId64
                 " = %" PRId64 " ranks; MPI numbers at most %d",
                 BLAME(s, G3_AT(parallel.tp), G3_AT(parallel.pp), G3_AT(parallel.dp)), p->tp, p->pp,
                 dp, ranks, INT_MAX);
}

static g3_status check_batch(const g3_settings *s) {
  const g3_train_config *t = &s->value.train;
  const int64_t dp = s->value.parallel.dp ? s->value.parallel.dp : 1, unit = t->micro_batch * dp;
  if (t->global_batch % unit == 0) return G3_OK;
  char factors[128] = "", use[64];
  g3_number_text quotient;
  if (s->value.parallel.dp) snprintf(factors, sizeof factors, " x parallel.dp %" PRId64, dp);
  snprintf(quotient, sizeof quotient, "%.6g", (double)t->global_batch / (double)unit);
  return G3_FAIL(G3_EINVAL,
                 "%s: train.global_batch = %" PRId64 " is not train.micro_batch %" PRId64
                 "%s x a whole number of micro-batches: %" PRId64 " / %" PRId64
                 " = %s; use a global batch of %s",
                 BLAME(s, G3_AT(train.global_batch), G3_AT(train.micro_batch), G3_AT(parallel.dp)),
                 t->global_batch, t->micro_batch, factors, t->global_batch, unit, quotient,
                 multiples_text(unit, t->global_batch, use, sizeof use));
}

static g3_status check_sequence(const g3_settings *s) {
  const int64_t tp = s->value.parallel.tp, micro = s->value.train.micro_batch,
                seq = s->value.model.seq, tokens = micro * seq; /* <= 2^31 2^20 */
  if (!s->value.parallel.sequence_parallel || tokens % tp == 0) return G3_OK;
  return G3_FAIL(G3_EINVAL,
                 "%s: parallel.sequence_parallel cuts train.micro_batch %" PRId64
                 " x model.seq %" PRId64 " = %" PRId64 " tokens into parallel.tp = %" PRId64
                 " equal parts, which is not whole; make their product a multiple of %" PRId64,
                 BLAME(s, G3_AT(parallel.sequence_parallel), G3_AT(parallel.tp),
                       G3_AT(train.micro_batch), G3_AT(model.seq)),
                 micro, seq, tokens, tp, tp);
}

/* A run that was shortened from a stronger source than its recipe, such as --steps 5 with a file's
 * warm-up of 20, simply ends within the warm-up. */
static g3_status check_warmup(const g3_settings *s) {
  const int64_t warmup = s->value.optim.warmup, decay = s->value.optim.decay_steps,
                last = decay ? decay : s->value.train.steps;
  if (warmup <= last) return G3_OK;
  if (!decay && origin_at(s, G3_AT(train.steps))->kind > origin_at(s, G3_AT(optim.warmup))->kind)
    return G3_OK;
  return G3_FAIL(
      G3_EINVAL,
      "%s: optim.warmup = %" PRId64 " is more than %s = %" PRId64
      ", so that optim.lr would never be reached; use at most %" PRId64,
      BLAME(s, G3_AT(optim.warmup), decay ? G3_AT(optim.decay_steps) : G3_AT(train.steps)), warmup,
      decay ? "optim.decay_steps" : "train.steps", last, last);
}

static g3_status check_rates(const g3_settings *s) {
  const double lr = s->value.optim.lr, min = s->value.optim.min_lr;
  g3_number_text a, b;
  if (min <= lr) return G3_OK;
  return G3_FAIL(G3_EINVAL,
                 "%s: optim.min_lr = %s is more than optim.lr = %s; give a lower --min-lr",
                 BLAME(s, G3_AT(optim.min_lr), G3_AT(optim.lr)), g3_text_double(min, a),
                 g3_text_double(lr, b));
}

static g3_status check_samples(const g3_settings *s) {
  const int64_t most = ((int64_t)1 << 48) - 1, steps = s->value.train.steps,
                batch = s->value.train.global_batch, seq = s->value.model.seq;
  int64_t samples, tokens;
  if (!g3_mul_ok(steps, batch, &samples) || samples > most)
    return G3_FAIL(G3_EINVAL,
                   "%s: train.steps %" PRId64 " x train.global_batch %" PRId64
                   " are more samples than can be numbered, %" PRId64 " (2^48 - 1); use at most "
                   "%" PRId64 " steps",
                   BLAME(s, G3_AT(train.steps), G3_AT(train.global_batch)), steps, batch, most,
                   most / batch);
  if (!g3_mul_ok(samples, seq, &tokens))
    return G3_FAIL(G3_EINVAL,
                   "%s: train.steps %" PRId64 " x train.global_batch %" PRId64
                   " x model.seq %" PRId64 " tokens do not fit in 64 bits; use at most %" PRId64
                   " steps",
                   BLAME(s, G3_AT(train.steps), G3_AT(train.global_batch), G3_AT(model.seq)), steps,
                   batch, seq, INT64_MAX / (batch * seq));
  return G3_OK;
}

/* Bounds on what all ranks together could hold, so that no plan overflows: parameters at 32 bytes
 * with their state, and twice the activations of a layer for every micro-batch in flight. */
static g3_status check_sizes(const g3_settings *s) {
  const g3_model_config *m = &s->value.model;
  int64_t x;
  if (!g3_mul_ok(m->width, 4 * m->width + 2 * m->ffn + 16, &x) || !g3_mul_ok(x, m->layers, &x) ||
      !g3_add_ok(x, m->width * (2 * m->vocab + m->seq), &x) || !g3_mul_ok(x, 32, &x))
    return G3_FAIL(G3_EINVAL,
                   "%s: the bytes of a model with model.layers %" PRId64 ", model.width %" PRId64
                   " and model.ffn %" PRId64 " do not fit in 64 bits; make one smaller",
                   BLAME(s, G3_AT(model.layers), G3_AT(model.width), G3_AT(model.ffn)), m->layers,
                   m->width, m->ffn);
  const int64_t micro = s->value.train.micro_batch;
  const int64_t layer = 40 * m->width + 8 * m->ffn; /* elements of one token */
  if (!g3_mul_ok(layer, m->layers, &x) || !g3_add_ok(x, 2 * m->vocab, &x) ||
      !g3_mul_ok(x, micro * m->seq, &x) || !g3_mul_ok(x, 4 * s->value.parallel.pp, &x))
    return G3_FAIL(G3_EINVAL,
                   "%s: the bytes of activations with train.micro_batch %" PRId64
                   " x model.seq %" PRId64 " tokens do not fit in 64 bits; make one smaller",
                   BLAME(s, G3_AT(train.micro_batch), G3_AT(model.seq)), micro, m->seq);
  return G3_OK;
}

static g3_status check_dtype(const g3_settings *s) {
  if (s->value.train.dtype != G3_TYPE_FP16 || s->value.run.device == G3_DEVICE_CUDA) return G3_OK;
  return G3_FAIL(
      G3_EINVAL,
      "%s: train.dtype = fp16 needs run.device = cuda, found %s; use --dtype bf16 or f32",
      BLAME(s, G3_AT(train.dtype), G3_AT(run.device)),
      s->value.run.device == G3_DEVICE_CPU ? "cpu" : "auto, which may be the cpu");
}

static bool power_of_two(int64_t x) {
  return x > 0 && (x & (x - 1)) == 0;
}

/* What is summed along a binary tree comes in powers of two. */
static g3_status check_exact_trees(const g3_settings *s) {
  const struct {
    const char *key;
    int64_t value;
    size_t offset;
  } trees[] = {
      {"parallel.exact_chunks", s->value.parallel.exact_chunks, G3_AT(parallel.exact_chunks)},
      {"train.global_batch", s->value.train.global_batch, G3_AT(train.global_batch)},
      {"parallel.dp", s->value.parallel.dp ? s->value.parallel.dp : 1, G3_AT(parallel.dp)}};
  for (size_t i = 0; i < sizeof trees / sizeof *trees; i++) {
    if (power_of_two(trees[i].value)) continue;
    int64_t below = 1;
    while (2 * below < trees[i].value)
      below *= 2;
    return G3_FAIL(G3_EINVAL,
                   "%s: with train.exact %s = %" PRId64
                   " must be a power of two, since sums run along a binary tree; use %" PRId64
                   " or %" PRId64,
                   BLAME(s, G3_AT(train.exact), trees[i].offset), trees[i].key, trees[i].value,
                   below, 2 * below);
  }
  return G3_OK;
}

static g3_status check_exact_cuts(const g3_settings *s) {
  const g3_model_config *m = &s->value.model;
  const int64_t chunks = s->value.parallel.exact_chunks, tp = s->value.parallel.tp;
  const struct {
    const char *key;
    int64_t value;
    size_t offset;
  } cut[] = {{"model.width", m->width, G3_AT(model.width)},
             {"model.ffn", m->ffn, G3_AT(model.ffn)},
             {"model.seq", m->seq, G3_AT(model.seq)}};
  char use[256];
  for (size_t i = 0; i < sizeof cut / sizeof *cut; i++) {
    if (cut[i].value % chunks == 0) continue;
    return G3_FAIL(G3_EINVAL,
                   "%s: with train.exact parallel.exact_chunks = %" PRId64
                   " must divide %s = %" PRId64 "; use a power of two that divides %" PRId64,
                   BLAME(s, G3_AT(train.exact), G3_AT(parallel.exact_chunks), cut[i].offset),
                   chunks, cut[i].key, cut[i].value, gcd(gcd(m->width, m->ffn), m->seq));
  }
  if (chunks % tp == 0) return G3_OK;
  return G3_FAIL(G3_EINVAL,
                 "%s: with train.exact parallel.tp = %" PRId64
                 " must divide parallel.exact_chunks = %" PRId64 "; use %s",
                 BLAME(s, G3_AT(train.exact), G3_AT(parallel.tp), G3_AT(parallel.exact_chunks)), tp,
                 chunks, divisors_text(chunks, INT64_MAX, tp, use, sizeof use));
}

static g3_status check_exact(const g3_settings *s) {
  if (!s->value.train.exact) return G3_OK;
  if (s->value.run.device == G3_DEVICE_CUDA)
    return G3_FAIL(G3_EINVAL,
                   "%s: train.exact is the cpu backend's alone, and run.device is cuda; use "
                   "--device cpu, or leave --exact out",
                   BLAME(s, G3_AT(train.exact), G3_AT(run.device)));
  G3_TRY(check_exact_trees(s));
  return check_exact_cuts(s);
}

g3_status g3_config_check(const g3_settings *s) {
  static g3_status (*const checks[])(const g3_settings *) = {
      check_shares, check_heads,    check_tp,     check_stages, check_ranks,
      check_batch,  check_sequence, check_warmup, check_rates,  check_samples,
      check_sizes,  check_dtype,    check_exact};
  for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
    G3_TRY(checks[i](s));
  return G3_OK;
}

g3_status g3_config_world(g3_settings *s, int64_t world) {
  g3_parallel_config *p = &s->value.parallel;
  const int64_t stage = p->tp * p->pp; /* <= 2^32 */
  char use[64];
  if (p->dp == 0 && world % stage != 0) {
    g3_number_text quotient;
    snprintf(quotient, sizeof quotient, "%.6g", (double)world / (double)stage);
    return G3_FAIL(G3_EINVAL,
                   "%s: the number of ranks, %" PRId64 ", is not parallel.tp %" PRId64
                   " x parallel.pp %" PRId64 " x a whole parallel.dp: %" PRId64 " / %" PRId64
                   " = %s; start %s ranks (mpirun -np), or change --tp or --pp",
                   BLAME(s, G3_AT(parallel.tp), G3_AT(parallel.pp)), world, p->tp, p->pp, world,
                   stage, quotient, multiples_text(stage, world, use, sizeof use));
  }
  if (p->dp == 0) {
    p->dp = world / stage;
    const g3_option *o = g3_option_at(G3_AT(parallel.dp));
    g3_origin *origin = &s->origin[o - g3_options];
    *origin = g3_origin_make(origin->kind, "%" PRId64 " ranks / (tp x pp)", world);
  }
  if (stage * p->dp == world) return G3_OK;
  return G3_FAIL(G3_EINVAL,
                 "%s: parallel.tp %" PRId64 " x parallel.pp %" PRId64 " x parallel.dp %" PRId64
                 " = %" PRId64 " ranks, but %" PRId64 " %s running; start %" PRId64
                 " (mpirun -np %" PRId64 "), or change --tp, --pp or --dp",
                 BLAME(s, G3_AT(parallel.tp), G3_AT(parallel.pp), G3_AT(parallel.dp)), p->tp, p->pp,
                 p->dp, stage * p->dp, world, world == 1 ? "is" : "are", stage * p->dp,
                 stage * p->dp);
}
