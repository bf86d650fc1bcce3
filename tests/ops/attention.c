/* attention and its backward against T x T float64, finite differences, and themselves: cut in
 * batch and heads, with other numbers of threads, with dropout. */
#include "ops/groups.h"
#include "ops/harness.h"
#include "unit/util/death.h"
#include "util/philox.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the reference: naive, float64. Rows of qkv are [3, heads, dim], of o [heads, dim]. ---- */

typedef struct {
  int64_t batch, time, heads, dim;
  g3_attention_spec spec;
} problem;

static int64_t width(const problem *p) {
  return p->heads * p->dim;
}

static int64_t tokens(const problem *p) {
  return p->batch * p->time;
}

/* What dropout multiplies the probability of (query, key) with, as device.h says it. */
static double mask(const problem *p, int64_t b, int64_t head, int64_t query, int64_t key) {
  const g3_attention_spec *s = &p->spec;
  const uint64_t sample = (uint64_t)(s->sample + b);
  const g3_philox_block block =
      g3_philox((uint32_t)s->key, (uint32_t)(s->key >> 32), (uint32_t)(key / 4), (uint32_t)query,
                (uint32_t)sample, (uint32_t)(s->head + head) | (uint32_t)(sample >> 32) << 16);
  const double drop = (double)s->dropout;
  return (double)block.w[key % 4] >= drop * 4294967296.0 ? 1 / (1 - drop) : 0;
}

static double dot(const double *a, const double *b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++)
    sum += a[i] * b[i];
  return sum;
}

static void axpy(double *y, double a, const double *x, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    y[i] += a * x[i];
}

/* Row `token` of the third `which` for one head. */
static const double *row(const problem *p, const double *qkv, int64_t which, int64_t b, int64_t t,
                         int64_t head) {
  return qkv + ((b * p->time + t) * 3 + which) * width(p) + head * p->dim;
}

/* prob[0..t] of query t; returns the logarithm of the softmax's denominator. */
static double probabilities(const problem *p, const double *qkv, int64_t b, int64_t head, int64_t t,
                            double *prob) {
  double top = -INFINITY, sum = 0;
  for (int64_t k = 0; k <= t; k++) {
    prob[k] =
        (double)p->spec.scale * dot(row(p, qkv, 0, b, t, head), row(p, qkv, 1, b, k, head), p->dim);
    top = fmax(top, prob[k]);
  }
  for (int64_t k = 0; k <= t; k++)
    sum += prob[k] = exp(prob[k] - top);
  for (int64_t k = 0; k <= t; k++)
    prob[k] /= sum;
  return top + log(sum);
}

static void ref_forward(const problem *p, const double *qkv, double *o, double *lse) {
  double *prob = calloc((size_t)p->time, sizeof *prob);
  assert_non_null(prob);
  memset(o, 0, (size_t)(tokens(p) * width(p)) * sizeof *o);
  for (int64_t b = 0; b < p->batch; b++)
    for (int64_t h = 0; h < p->heads; h++)
      for (int64_t t = 0; t < p->time; t++) {
        lse[(b * p->heads + h) * p->time + t] = probabilities(p, qkv, b, h, t, prob);
        for (int64_t k = 0; k <= t; k++)
          axpy(o + (b * p->time + t) * width(p) + h * p->dim, prob[k] * mask(p, b, h, t, k),
               row(p, qkv, 2, b, k, h), p->dim);
      }
  free(prob);
}

/* d[which] [tokens, width] are the gradients of q, k, v. */
static void ref_backward(const problem *p, const double *qkv, const double *dout, double *d[3]) {
  double *prob = calloc((size_t)p->time * 2, sizeof *prob), *dprob = prob + p->time;
  assert_non_null(prob);
  for (int i = 0; i < 3; i++)
    memset(d[i], 0, (size_t)(tokens(p) * width(p)) * sizeof **d);
  for (int64_t b = 0; b < p->batch; b++)
    for (int64_t h = 0; h < p->heads; h++)
      for (int64_t t = 0; t < p->time; t++) {
        const int64_t at = (b * p->time + t) * width(p) + h * p->dim;
        double delta = 0;
        probabilities(p, qkv, b, h, t, prob);
        for (int64_t k = 0; k <= t; k++) {
          const double m = mask(p, b, h, t, k);
          const int64_t to = (b * p->time + k) * width(p) + h * p->dim;
          dprob[k] = m * dot(dout + at, row(p, qkv, 2, b, k, h), p->dim);
          delta += prob[k] * dprob[k];
          axpy(d[2] + to, prob[k] * m, dout + at, p->dim);
        }
        for (int64_t k = 0; k <= t; k++) {
          const double ds = (double)p->spec.scale * prob[k] * (dprob[k] - delta);
          axpy(d[0] + at, ds, row(p, qkv, 1, b, k, h), p->dim);
          axpy(d[1] + (b * p->time + k) * width(p) + h * p->dim, ds, row(p, qkv, 0, b, t, h),
               p->dim);
        }
      }
  free(prob);
}

/* ---- ours ---- */

typedef struct {
  problem p;
  g3_dtype dtype;
  ops_buf qkv, dout, o, lse, dqkv;
} run;

/* Third `which` of rows that hold `thirds` of them, as [batch, time, heads, dim]. */
static g3_tensor view(const problem *p, const ops_buf *x, int64_t which) {
  g3_tensor t = g3_tensor_4d(g3_tensor_at(x->t, which * width(p)), x->t.dtype, p->batch, p->time,
                             p->heads, p->dim);
  t.stride[0] = p->time * x->stride;
  t.stride[1] = x->stride;
  t.stride[2] = p->dim;
  return t;
}

static g3_tensor lse_view(const run *r) {
  return g3_tensor_3d(r->lse.t.data, G3_F32, r->p.batch, r->p.heads, r->p.time);
}

static run make_run(problem p, g3_dtype dtype, int64_t gap) {
  run r = {.p = p, .dtype = dtype};
  r.qkv = ops_make(dtype, tokens(&p), 3 * width(&p), gap);
  r.dqkv = ops_make(dtype, tokens(&p), 3 * width(&p), gap);
  r.dout = ops_make(dtype, tokens(&p), width(&p), 2 * gap);
  r.o = ops_make(dtype, tokens(&p), width(&p), 0);
  r.lse = ops_make(G3_F32, p.batch * p.heads, p.time, 0);
  ops_random(&r.qkv, 11, 0, 1.5);
  ops_random(&r.dout, 12, 0.1, 1);
  ops_poison(&r.dqkv);
  ops_poison(&r.o);
  ops_poison(&r.lse);
  return r;
}

static void free_run(run *r) {
  ops_free(&r->qkv);
  ops_free(&r->dqkv);
  ops_free(&r->dout);
  ops_free(&r->o);
  ops_free(&r->lse);
}

static void attend(g3_stream *s, run *r) {
  const problem *p = &r->p;
  const g3_device_ops *ops = s->dev->ops;
  const g3_tensor q = view(p, &r->qkv, 0), k = view(p, &r->qkv, 1), v = view(p, &r->qkv, 2);
  const g3_tensor o = view(p, &r->o, 0), lse = lse_view(r);
  OPS_OK(ops->attention(s, o, lse, q, k, v, &p->spec));
  OPS_OK(ops->attention_bwd(s, view(p, &r->dqkv, 0), view(p, &r->dqkv, 1), view(p, &r->dqkv, 2),
                            view(p, &r->dout, 0), o, lse, q, k, v, &p->spec));
}

static void same_runs(const run *a, const run *b) {
  ops_same("attention", &a->o, &b->o);
  ops_same("attention lse", &a->lse, &b->lse);
  ops_same("attention_bwd", &a->dqkv, &b->dqkv);
}

/* One third of dqkv as a buffer of its own. */
static ops_buf third(const run *r, int64_t which) {
  ops_buf part = r->dqkv;
  part.cols = width(&r->p);
  part.t = g3_tensor_part(part.t, 1, which * part.cols, part.cols);
  return part;
}

static double *doubles(int64_t n) {
  double *d = calloc((size_t)n, sizeof *d);
  assert_non_null(d);
  return d;
}

/* Rounding to bf16 goes both ways: over many elements its errors cancel, which cutting bits off
 * does not. */
static void judge_bias(const ops_buf *got, const double *want) {
  double error = 0, all = 0;
  for (int64_t i = 0; i < got->rows * got->cols; i++) {
    const double g = ops_get(got, i / got->cols, i % got->cols);
    error += want[i] < 0 ? want[i] - g : g - want[i];
    all += fabs(want[i]);
  }
  assert_true(fabs(error) < all / 1024);
}

static void judge(const run *r) {
  static const char *const names[] = {"attention_bwd dq", "attention_bwd dk", "attention_bwd dv"};
  const problem *p = &r->p;
  const int64_t n = tokens(p) * width(p);
  const double terms = (double)(p->time + p->dim);
  double *qkv = ops_doubles(&r->qkv), *dout = ops_doubles(&r->dout);
  double *o = doubles(n), *lse = doubles(p->batch * p->heads * p->time);
  double *d[3] = {doubles(n), doubles(n), doubles(n)};
  ref_forward(p, qkv, o, lse);
  ref_backward(p, qkv, dout, d);
  ops_judge("attention", r->dtype, &r->o, o, terms);
  if (r->dtype == G3_BF16 && n > 5000) judge_bias(&r->o, o);
  ops_judge("attention lse", r->dtype, &r->lse, lse, terms);
  for (int i = 0; i < 3; i++) {
    const ops_buf part = third(r, i);
    /* A first query sees one key: dq and dk are zero but for rounding. */
    if (i == 2 || p->time > 1) ops_judge(names[i], r->dtype, &part, d[i], terms);
    if (r->dtype == G3_BF16 && n > 5000) judge_bias(&part, d[i]);
    for (int64_t t = 0; p->time == 1 && t < n; t++)
      assert_true(fabs(ops_get(&part, t / part.cols, t % part.cols) - d[i][t]) < 0.02);
  }
  free(qkv);
  free(dout);
  free(o);
  free(lse);
  for (int i = 0; i < 3; i++)
    free(d[i]);
}

static problem make_problem(int64_t batch, int64_t time, int64_t heads, int64_t dim, float drop) {
  return (problem){batch,
                   time,
                   heads,
                   dim,
                   {.scale = (float)(1 / sqrt((double)dim)),
                    .dropout = drop,
                    .key = 0x123456789abcdefu,
                    .sample = (INT64_C(5) << 32) - 1, /* so that a batch crosses 32 bits */
                    .head = 7}};
}

static void check(ops_bench *bench, problem p, g3_dtype dtype, int64_t gap) {
  run r[OPS_STREAMS];
  for (int i = 0; i < OPS_STREAMS; i++) {
    r[i] = make_run(p, dtype, gap);
    attend(bench->stream[i], &r[i]);
  }
  same_runs(&r[0], &r[1]);
  judge(&r[0]);
  for (int i = 0; i < OPS_STREAMS; i++)
    free_run(&r[i]);
}

/* ---- tests ---- */

static const struct {
  int64_t batch, time, heads, dim;
} shapes[] = {
    {1, 1, 1, 1},    {2, 1, 3, 64},   {1, 2, 1, 5},    {3, 2, 3, 1},     {2, 63, 1, 32},
    {1, 64, 3, 5},   {1, 64, 1, 64},  {2, 65, 3, 64},  {1, 65, 1, 80},   {1, 63, 3, 96},
    {1, 127, 1, 96}, {1, 127, 3, 1},  {3, 65, 1, 128}, {1, 127, 1, 256}, {1, 257, 1, 5},
    {1, 257, 3, 32}, {1, 257, 1, 64}, {1, 257, 1, 80}, {1, 257, 1, 96},  {1, 257, 1, 128},
    {2, 40, 2, 17},  {1, 70, 1, 129},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static void test_shapes(void **state) {
  for (int i = 0; i < SHAPES; i++)
    for (int t = 0; t < OPS_TYPES; t++)
      check(*state,
            make_problem(shapes[i].batch, shapes[i].time, shapes[i].heads, shapes[i].dim, 0),
            ops_types[t], i % 3);
}

static void test_dropout(void **state) {
  for (int i = 0; i < SHAPES; i += 3)
    for (int t = 0; t < OPS_TYPES; t++)
      check(*state,
            make_problem(shapes[i].batch, shapes[i].time, shapes[i].heads, shapes[i].dim, 0.2f),
            ops_types[t], i % 2);
}

typedef struct {
  const problem *p;
  const double *qkv, *dout;
  double *o, *lse;
} slope_ctx;

static double weighted(const void *ctx) {
  const slope_ctx *c = ctx;
  ref_forward(c->p, c->qkv, c->o, c->lse);
  return dot(c->o, c->dout, tokens(c->p) * width(c->p));
}

/* The reference's gradient and ours are the slope of the reference's forward pass. */
static void test_slopes(void **state) {
  ops_bench *bench = *state;
  for (int drop = 0; drop < 2; drop++) {
    const problem p = make_problem(2, 9, 2, 5, drop ? 0.3f : 0);
    const int64_t n = tokens(&p) * width(&p);
    run r = make_run(p, G3_F32, 1);
    attend(bench->stream[0], &r);
    double *qkv = ops_doubles(&r.qkv), *dout = ops_doubles(&r.dout);
    double *d[3] = {doubles(n), doubles(n), doubles(n)};
    slope_ctx c = {&p, qkv, dout, doubles(n), doubles(p.batch * p.heads * p.time)};
    ref_backward(&p, qkv, dout, d);
    for (int64_t i = 0; i < 3 * n; i++) {
      const int64_t token = i / (3 * width(&p)), col = i % (3 * width(&p));
      const int64_t which = col / width(&p);
      const double slope = ops_slope(weighted, &c, qkv + i);
      const double want = d[which][token * width(&p) + col % width(&p)];
      assert_true(fabs(slope - want) < 1e-8);
      assert_true(fabs(slope - ops_get(&r.dqkv, token, col)) < 1e-5);
    }
    for (int i = 0; i < 3; i++)
      free(d[i]);
    free(c.o);
    free(c.lse);
    free(qkv);
    free(dout);
    free_run(&r);
  }
}

/* A part of a run, with its own place among samples and heads. */
static void attend_part(g3_stream *s, const run *r, int dim, int64_t start, int64_t count) {
  const problem *p = &r->p;
  const g3_device_ops *ops = s->dev->ops;
  g3_attention_spec spec = p->spec;
  if (dim == 0)
    spec.sample += start;
  else
    spec.head += start;
#define PART(x, which) g3_tensor_part(view(p, &r->x, which), dim, start, count)
  const g3_tensor lse = g3_tensor_part(lse_view(r), dim == 0 ? 0 : 1, start, count);
  const g3_tensor q = PART(qkv, 0), k = PART(qkv, 1), v = PART(qkv, 2), o = PART(o, 0);
  OPS_OK(ops->attention(s, o, lse, q, k, v, &spec));
  OPS_OK(ops->attention_bwd(s, PART(dqkv, 0), PART(dqkv, 1), PART(dqkv, 2), PART(dout, 0), o, lse,
                            q, k, v, &spec));
#undef PART
}

/* A batch or heads shared out over ranks give the bits of the whole, masks included. */
static void test_cuts(void **state) {
  g3_stream *s = ((ops_bench *)*state)->stream[0];
  for (int t = 0; t < OPS_TYPES; t++)
    for (int dim = 0; dim <= 2; dim += 2) {
      const problem p = make_problem(3, 70, 3, 32, 0.25f);
      run whole = make_run(p, ops_types[t], 1), cut = make_run(p, ops_types[t], 1);
      attend(s, &whole);
      attend_part(s, &cut, dim, 0, 1);
      attend_part(s, &cut, dim, 1, 2);
      same_runs(&whole, &cut);
      free_run(&whole);
      free_run(&cut);
    }
}

static void test_threads(void **state) {
  ops_bench *bench = *state;
  g3_device *dev;
  g3_stream *two;
  OPS_OK(g3_device_open("cpu", 2, &dev));
  OPS_OK(dev->ops->stream_create(dev, false, g3_tensor_none(), &two));
  for (int t = 0; t < OPS_TYPES; t++) {
    const problem p = make_problem(1, 300, 3, 64, 0.1f);
    run a = make_run(p, ops_types[t], 0), b = make_run(p, ops_types[t], 0);
    attend(bench->stream[0], &a);
    attend(two, &b);
    same_runs(&a, &b);
    free_run(&a);
    free_run(&b);
  }
  dev->ops->stream_destroy(two);
  g3_device_close(dev);
}

/* With q = k = 0, v = 1 and dout = q + 1, sums of o and of dv count the kept pairs. */
static void test_kept_share(void **state) {
  const problem p = make_problem(1, 400, 2, 4, 0.35f);
  const double drop = (double)p.spec.dropout, pairs = 2 * 400 * 401 / 2.0;
  run r = make_run(p, G3_F32, 0);
  for (int64_t t = 0; t < p.time; t++)
    for (int64_t c = 0; c < 3 * width(&p); c++) {
      ops_put(&r.qkv, t, c, c / width(&p) == 2);
      ops_put(&r.dout, t, c % width(&p), (double)(t + 1));
    }
  attend(((ops_bench *)*state)->stream[0], &r);
  double forward = 0, backward = 0;
  for (int64_t t = 0; t < p.time; t++)
    for (int64_t h = 0; h < p.heads; h++) {
      forward += ops_get(&r.o, t, h * p.dim) * (double)(t + 1) * (1 - drop);
      backward += ops_get(&r.dqkv, t, 2 * width(&p) + h * p.dim) * (1 - drop);
    }
  assert_true(fabs(forward / pairs - (1 - drop)) < 4 * sqrt(drop * (1 - drop) / pairs));
  assert_true(fabs(forward - backward) < 0.5);
  free_run(&r);
}

/* Scores of +-10^4: one key takes all, or all are alike; nothing overflows. */
static void test_large_scores(void **state) {
  g3_stream *s = ((ops_bench *)*state)->stream[0];
  for (int sign = -1; sign <= 1; sign += 2) {
    const problem p = make_problem(1, 37, 1, 4, 0);
    const int64_t loud = 2; /* the key that takes all when scores are positive */
    run r = make_run(p, G3_F32, 0);
    for (int64_t t = 0; t < p.time; t++)
      for (int64_t c = 0; c < 8; c++)
        ops_put(&r.qkv, t, c, c < 4 ? 100 * sign : (sign < 0 || t == loud ? 50 : 0));
    attend(s, &r);
    for (int64_t t = 0; t < p.time; t++)
      for (int64_t c = 0; c < 4; c++) {
        double mean = 0;
        for (int64_t k = 0; k <= t; k++)
          mean += ops_get(&r.qkv, k, 8 + c) / (double)(t + 1);
        const double want = sign > 0 && t >= loud ? ops_get(&r.qkv, loud, 8 + c) : mean;
        assert_true(fabs(ops_get(&r.o, t, c) - want) < 1e-5);
        for (int64_t i = 0; i < 3; i++)
          assert_true(isfinite(ops_get(&r.dqkv, t, 4 * i + c)));
      }
    assert_true(fabs(ops_get(&r.lse, 0, 36) - (sign > 0 ? 1e4 : -1e4 + log(37.0))) < 2e-3);
    free_run(&r);
  }
}

/* A NaN is never lost: it shows in what depends on it, and not in other queries. */
static void test_nan_shows(void **state) {
  for (int t = 0; t < OPS_TYPES; t++) {
    const problem p = make_problem(1, 90, 1, 32, 0);
    const int64_t bad = 70;
    run r = make_run(p, ops_types[t], 0);
    ops_put(&r.qkv, bad, 3, (double)NAN);
    attend(((ops_bench *)*state)->stream[0], &r);
    for (int64_t i = 0; i < p.time; i++) {
      assert_int_equal(isnan(ops_get(&r.o, i, 5)) != 0, i == bad);
      assert_int_equal(isnan(ops_get(&r.lse, 0, i)) != 0, i == bad);
      assert_int_equal(isnan(ops_get(&r.dqkv, i, 5)) != 0, i == bad);
      for (int64_t c = 32 + 5; c < 96; c += 32) /* dk, dv */
        assert_true(i > bad || isnan(ops_get(&r.dqkv, i, c)));
    }
    free_run(&r);
  }
}

/* Mistakes of the caller end the job and say which operand is wrong. */
static void mistaken(int which) {
  g3_device *dev;
  g3_stream *s;
  if (g3_device_open("cpu", 1, &dev) != G3_OK) return;
  if (dev->ops->stream_create(dev, false, g3_tensor_none(), &s) != G3_OK) return;
  problem p = make_problem(1, 4, 2, which == 0 ? 257 : 8, which == 1 ? 1.0f : 0);
  run r = make_run(p, G3_F32, 0);
  if (which == 2) r.lse = ops_make(G3_F32, 2, 3, 0);
  if (which == 3) r.p.heads = 1;
  g3_tensor k = view(&p, &r.qkv, 1), dv = view(&p, &r.dqkv, 2);
  if (which == 4) k = g3_tensor_part(k, 1, 0, 3);
  if (which == 5) dv.dtype = G3_BF16;
  if (which == 6) dv.stride[3] = 2;
  const g3_tensor q = view(&p, &r.qkv, 0), v = view(&p, &r.qkv, 2), o = view(&p, &r.o, 0);
  const g3_tensor lse = which == 2 ? g3_tensor_3d(r.lse.t.data, G3_F32, 1, 2, 3) : lse_view(&r);
  (void)dev->ops->attention(s, o, lse, q, k, v, &p.spec);
  (void)dev->ops->attention_bwd(s, view(&p, &r.dqkv, 0), view(&p, &r.dqkv, 1), dv,
                                view(&p, &r.dout, 0), o, lse, q, k, v, &p.spec);
}

#define MISTAKE(n)                                                                                 \
  static void mistake_##n(void) {                                                                  \
    mistaken(n);                                                                                   \
  }
MISTAKE(0)
MISTAKE(1)
MISTAKE(2)
MISTAKE(3)
MISTAKE(4)
MISTAKE(5)
MISTAKE(6)

static void test_mistakes(void **state) {
  (void)state;
  static const struct {
    void (*mistake)(void);
    const char *says;
  } cases[] = {{mistake_0, "head_dim 1..256"},     {mistake_1, "dropout 1 is not in [0, 1)"},
               {mistake_2, "lse is not"},          {mistake_3, "lse is not"},
               {mistake_4, "attention: k is"},     {mistake_5, "attention_bwd: dv is"},
               {mistake_6, "attention_bwd: dv is"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char out[1024];
    assert_int_equal(death_of(cases[i].mistake, out, sizeof out), SIGABRT);
    if (!strstr(out, cases[i].says)) fail_msg("wanted '%s' in: %s", cases[i].says, out);
  }
}

int ops_group_attention(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_shapes),       cmocka_unit_test(test_dropout),
      cmocka_unit_test(test_slopes),       cmocka_unit_test(test_cuts),
      cmocka_unit_test(test_threads),      cmocka_unit_test(test_kept_share),
      cmocka_unit_test(test_large_scores), cmocka_unit_test(test_nan_shows),
      cmocka_unit_test(test_mistakes),
  };
  return cmocka_run_group_tests(tests, ops_setup, ops_teardown);
}
