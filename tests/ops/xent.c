/* Softmax cross-entropy against float64, with the vocabulary cut into ranges whose results are
 * combined as ranks would: maximum of the peaks, sum of the sums. */
#include "ops/groups.h"
#include "ops/harness.h"
#include "unit/util/death.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PARTS = 4 };

typedef struct {
  int64_t rows, vocab;
  int parts; /* ranges of equal width; the last ones end in padding, all in `pad` columns more */
  int64_t pad, gap;
  g3_dtype dtype; /* of dlogits */
  bool in_place; /* dlogits are the logits themselves */
} problem;

/* Logits of range `part`: columns part * width + c, real where that is < vocab. */
typedef struct {
  ops_buf logits, dlogits, peak, sums, loss;
  int64_t first, valid;
} range;

static const float scale = 0.37f;

static int64_t width_of(const problem *p) {
  return (p->vocab + p->parts - 1) / p->parts;
}

static range make_range(const problem *p, const ops_buf *logits, int part) {
  const int64_t width = width_of(p), first = part * width;
  const int64_t left = p->vocab - first < 0 ? 0 : p->vocab - first;
  range r = {.first = first, .valid = left < width ? left : width};
  r.logits = ops_make(G3_F32, p->rows, width + p->pad, p->gap);
  ops_poison(&r.logits);
  for (int64_t i = 0; i < p->rows; i++)
    for (int64_t c = 0; c < r.valid; c++)
      ops_put(&r.logits, i, c, ops_get(logits, i, first + c));
  r.dlogits = p->in_place ? r.logits : ops_make(p->dtype, p->rows, width + p->pad, 2 * p->gap);
  if (!p->in_place) ops_poison(&r.dlogits);
  r.peak = ops_vector(G3_F32, p->rows);
  r.sums = ops_make(G3_F32, 2, p->rows, 0);
  r.loss = ops_vector(G3_F32, p->rows);
  ops_poison(&r.peak);
  ops_poison(&r.sums);
  ops_poison(&r.loss);
  return r;
}

static void free_range(const problem *p, range *r) {
  ops_free(&r->logits);
  if (!p->in_place) ops_free(&r->dlogits);
  ops_free(&r->peak);
  ops_free(&r->sums);
  ops_free(&r->loss);
}

/* Every range gets the sum (or the maximum) over all of them. */
static void combine(range *r, int n, ops_buf *(*of)(range *), bool maximum) {
  const int64_t rows = of(&r[0])->rows, cols = of(&r[0])->cols;
  for (int64_t i = 0; i < rows; i++)
    for (int64_t c = 0; c < cols; c++) {
      float all = (float)ops_get(of(&r[0]), i, c);
      for (int k = 1; k < n; k++) {
        const float x = (float)ops_get(of(&r[k]), i, c);
        all = maximum ? fmaxf(all, x) : all + x;
      }
      for (int k = 0; k < n; k++)
        ops_put(of(&r[k]), i, c, (double)all);
    }
}

static ops_buf *peak_of(range *r) {
  return &r->peak;
}

static ops_buf *sums_of(range *r) {
  return &r->sums;
}

static void cross_entropy(g3_stream *s, const problem *p, range *r, g3_tensor targets,
                          bool gradient) {
  const g3_device_ops *ops = s->dev->ops;
  for (int k = 0; k < p->parts; k++)
    OPS_OK(ops->xent_peak(s, r[k].peak.t, r[k].logits.t, r[k].valid));
  combine(r, p->parts, peak_of, true);
  for (int k = 0; k < p->parts; k++)
    OPS_OK(ops->xent_sums(s, r[k].sums.t, r[k].logits.t, r[k].peak.t, targets, r[k].first,
                          r[k].valid));
  combine(r, p->parts, sums_of, false);
  for (int k = 0; k < p->parts; k++)
    OPS_OK(ops->xent_loss(s, r[k].loss.t, gradient ? r[k].dlogits.t : g3_tensor_none(),
                          r[k].logits.t, r[k].peak.t, r[k].sums.t, targets, r[k].first, r[k].valid,
                          scale));
}

/* The loss of a row of n logits; its gradient times `factor` into d unless that is NULL. */
static double reference(const double *x, int64_t n, int64_t target, double factor, double *d) {
  double top = x[0], sum = 0;
  for (int64_t c = 0; c < n; c++)
    top = fmax(top, x[c]);
  for (int64_t c = 0; c < n; c++)
    sum += exp(x[c] - top);
  for (int64_t c = 0; d && c < n; c++)
    d[c] = target < 0 ? 0 : factor * (exp(x[c] - top) / sum - (c == target));
  return target < 0 ? 0 : log(sum) + top - x[target];
}

/* Targets walk over the vocabulary; every fourth row has none. */
static ops_buf make_targets(const problem *p) {
  ops_buf t = ops_vector(G3_I32, p->rows);
  for (int64_t i = 0; i < p->rows; i++)
    ops_put(&t, 0, i, i % 4 == 3 ? -1 - (double)i : (double)(i * 7919 % p->vocab));
  ops_put(&t, 0, 0, (double)(p->vocab - 1));
  return t;
}

static void judge(const problem *p, const range *r, const ops_buf *logits, const ops_buf *targets) {
  const int64_t n = p->vocab;
  double *x = ops_doubles(logits), *d = ops_doubles(logits);
  double *loss = calloc((size_t)p->rows, sizeof *loss);
  assert_non_null(loss);
  for (int64_t i = 0; i < p->rows; i++)
    loss[i] = reference(x + i * n, n, (int64_t)ops_get(targets, 0, i), (double)scale, d + i * n);
  for (int k = 0; k < p->parts; k++) {
    const ops_buf *got = &r[k].dlogits;
    ops_buf real = *got;
    real.cols = r[k].valid;
    real.t = g3_tensor_part(real.t, 1, 0, real.cols);
    double *want = calloc((size_t)(p->rows * real.cols) + 1, sizeof *want);
    assert_non_null(want);
    for (int64_t i = 0; i < p->rows; i++) {
      memcpy(want + i * real.cols, d + i * n + r[k].first, (size_t)real.cols * sizeof *want);
      for (int64_t c = real.cols; c < got->cols; c++)
        assert_true(ops_get(got, i, c) == 0.0);
    }
    ops_judge("xent_loss", G3_F32, &r[k].loss, loss, (double)n);
    /* Alone, a range without targets has a far smaller scale than the whole gradient. */
    if (real.cols) ops_judge("xent_loss dlogits", p->dtype, &real, want, (double)n);
    free(want);
  }
  free(x);
  free(d);
  free(loss);
}

static void check(ops_bench *bench, problem p) {
  ops_buf logits = ops_make(G3_F32, p.rows, p.vocab, 0), targets = make_targets(&p);
  range r[OPS_STREAMS][MAX_PARTS];
  ops_random(&logits, 21, 1, 6);
  for (int i = 0; i < OPS_STREAMS; i++) {
    for (int k = 0; k < p.parts; k++)
      r[i][k] = make_range(&p, &logits, k);
    cross_entropy(bench->stream[i], &p, r[i], targets.t, true);
  }
  judge(&p, r[0], &logits, &targets);
  for (int k = 0; k < p.parts; k++) {
    ops_same("xent_peak", &r[0][k].peak, &r[1][k].peak);
    ops_same("xent_sums", &r[0][k].sums, &r[1][k].sums);
    ops_same("xent_loss", &r[0][k].loss, &r[1][k].loss);
    ops_same("xent_loss dlogits", &r[0][k].dlogits, &r[1][k].dlogits);
    for (int i = 0; i < OPS_STREAMS; i++)
      free_range(&p, &r[i][k]);
  }
  ops_free(&logits);
  ops_free(&targets);
}

static void test_shapes(void **state) {
  static const struct {
    int64_t rows, vocab;
  } shapes[] = {{1, 1}, {5, 1}, {2, 5}, {9, 5}, {1, 257}, {70, 257}, {33, 2049}, {3, 50257}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (int parts = 1; parts <= MAX_PARTS; parts++)
      for (int kind = 0; kind < 3; kind++)
        check(*state, (problem){.rows = shapes[i].rows,
                                .vocab = shapes[i].vocab,
                                .parts = parts,
                                .pad = parts % 2 * 2,
                                .gap = kind,
                                .dtype = kind == 2 ? G3_BF16 : G3_F32,
                                .in_place = kind == 1});
}

/* Evaluation: the same losses, and nothing else is written. */
static void test_without_gradient(void **state) {
  g3_stream *s = ((ops_bench *)*state)->stream[0];
  const problem p = {.rows = 9, .vocab = 257, .parts = 1, .dtype = G3_F32};
  ops_buf logits = ops_make(G3_F32, p.rows, p.vocab, 0), targets = make_targets(&p);
  ops_random(&logits, 22, 0, 3);
  range with = make_range(&p, &logits, 0), without = make_range(&p, &logits, 0);
  range untouched = make_range(&p, &logits, 0);
  cross_entropy(s, &p, &with, targets.t, true);
  cross_entropy(s, &p, &without, targets.t, false);
  ops_same("loss without gradient", &with.loss, &without.loss);
  ops_same("logits", &without.logits, &untouched.logits);
  ops_same("dlogits", &without.dlogits, &untouched.dlogits);
  free_range(&p, &with);
  free_range(&p, &without);
  free_range(&p, &untouched);
  ops_free(&logits);
  ops_free(&targets);
}

typedef struct {
  const double *x;
  int64_t n, target;
} slope_ctx;

static double loss_of(const void *ctx) {
  const slope_ctx *c = ctx;
  return (double)scale * reference(c->x, c->n, c->target, 0, NULL);
}

static void test_slopes(void **state) {
  const problem p = {.rows = 3, .vocab = 19, .parts = 2, .dtype = G3_F32};
  ops_buf logits = ops_make(G3_F32, p.rows, p.vocab, 0), targets = make_targets(&p);
  ops_random(&logits, 23, 0, 2);
  range r[2] = {make_range(&p, &logits, 0), make_range(&p, &logits, 1)};
  cross_entropy(((ops_bench *)*state)->stream[0], &p, r, targets.t, true);
  double *x = ops_doubles(&logits), d[19];
  for (int64_t i = 0; i < p.rows; i++) {
    slope_ctx c = {x + i * p.vocab, p.vocab, (int64_t)ops_get(&targets, 0, i)};
    reference(c.x, c.n, c.target, (double)scale, d);
    for (int64_t k = 0; k < p.vocab; k++) {
      const range *part = &r[k / width_of(&p)];
      const double slope = ops_slope(loss_of, &c, x + i * p.vocab + k);
      assert_true(fabs(slope - d[k]) < 1e-9);
      assert_true(fabs(slope - ops_get(&part->dlogits, i, k - part->first)) < 1e-6);
    }
  }
  free(x);
  for (int k = 0; k < 2; k++)
    free_range(&p, &r[k]);
  ops_free(&logits);
  ops_free(&targets);
}

/* One row of logits, wherever they lie: its loss. */
static double one_loss(g3_stream *s, const double *x, int64_t n, double *gradient_of_first) {
  const problem p = {.rows = 1, .vocab = n, .parts = 1, .dtype = G3_F32};
  ops_buf logits = ops_make(G3_F32, 1, n, 0), targets = ops_vector(G3_I32, 1);
  for (int64_t c = 0; c < n; c++)
    ops_put(&logits, 0, c, x[c]);
  ops_put(&targets, 0, 0, 0);
  range r = make_range(&p, &logits, 0);
  cross_entropy(s, &p, &r, targets.t, true);
  const double loss = ops_get(&r.loss, 0, 0);
  *gradient_of_first = ops_get(&r.dlogits, 0, 0);
  free_range(&p, &r);
  ops_free(&logits);
  ops_free(&targets);
  return loss;
}

/* Huge logits neither overflow nor vanish; a NaN or an infinity shows in loss and gradient. */
static void test_extremes(void **state) {
  g3_stream *s = ((ops_bench *)*state)->stream[0];
  double x[40] = {0}, d;
  for (int c = 0; c < 40; c++)
    x[c] = 1e4;
  assert_true(fabs(one_loss(s, x, 40, &d) - log(40.0)) < 1e-3);
  x[7] = 2e4;
  assert_true(fabs(one_loss(s, x, 40, &d) - 1e4) < 1e-2 && fabs(d + (double)scale) < 1e-6);
  x[0] = 3e4;
  assert_true(fabs(one_loss(s, x, 40, &d)) < 1e-6 && fabs(d) < 1e-6);
  x[39] = -INFINITY; /* a token that cannot come */
  assert_true(fabs(one_loss(s, x, 40, &d)) < 1e-6);
  for (int at = 0; at < 40; at += 13) {
    const double old = x[at];
    x[at] = (double)NAN;
    assert_true(isnan(one_loss(s, x, 40, &d)) && isnan(d));
    x[at] = (double)INFINITY;
    assert_true(isnan(one_loss(s, x, 40, &d)) && isnan(d));
    x[at] = old;
  }
}

/* Mistakes of the caller end the job and say which operand is wrong. */
static void mistaken(int64_t valid, int64_t rows, g3_dtype dtype) {
  const problem p = {.rows = 3, .vocab = 7, .parts = 1, .dtype = dtype};
  g3_device *dev;
  g3_stream *s;
  if (g3_device_open("cpu", 1, &dev) != G3_OK) return;
  if (dev->ops->stream_create(dev, false, g3_tensor_none(), &s) != G3_OK) return;
  ops_buf logits = ops_make(G3_F32, 3, 7, 0), targets = ops_vector(G3_I32, rows);
  ops_random(&logits, 1, 0, 1);
  ops_random(&targets, 1, 0, 0);
  range r = make_range(&p, &logits, 0);
  r.valid = valid;
  cross_entropy(s, &p, &r, targets.t, true);
}

static void too_many_valid(void) {
  mistaken(8, 3, G3_F32);
}

static void too_few_targets(void) {
  mistaken(7, 2, G3_F32);
}

static void integer_gradient(void) {
  mistaken(7, 3, G3_I32);
}

static void test_mistakes(void **state) {
  (void)state;
  static const struct {
    void (*mistake)(void);
    const char *says;
  } cases[] = {{too_many_valid, "of which 8 columns are real"},
               {too_few_targets, "xent_sums: targets is not dense i32 [3]"},
               {integer_gradient, "dlogits are not f32 or bf16 [3, 7]"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char out[1024];
    assert_int_equal(death_of(cases[i].mistake, out, sizeof out), SIGABRT);
    if (!strstr(out, cases[i].says)) fail_msg("wanted '%s' in: %s", cases[i].says, out);
  }
}

int ops_group_xent(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_shapes),   cmocka_unit_test(test_without_gradient),
      cmocka_unit_test(test_slopes),   cmocka_unit_test(test_extremes),
      cmocka_unit_test(test_mistakes),
  };
  return cmocka_run_group_tests(tests, ops_setup, ops_teardown);
}
