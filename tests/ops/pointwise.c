/* GELU, and bias + dropout + residual, against float64 and the documented random numbers. */
#include "ops/groups.h"
#include "ops/harness.h"
#include "util/philox.h"
#include <math.h>
#include <stdlib.h>

static double gelu_of(double x) {
  return 0.5 * x * (1 + tanh(sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
}

static double gelu_loss(const void *ctx) {
  return gelu_of(*(const double *)ctx);
}

static const int64_t counts[] = {1, 2, 13, 96, 257, 4099, 40009};
enum { COUNTS = sizeof counts / sizeof counts[0] };

static void gelu_case(ops_bench *bench, g3_dtype t, int64_t n, double spread) {
  ops_buf x = ops_vector(t, n), dy = ops_vector(t, n);
  ops_random(&x, 1, 0, spread);
  ops_random(&dy, 2, 0, 1);
  double *y = ops_doubles(&x), *dx = ops_doubles(&x);
  for (int64_t i = 0; i < n; i++) {
    double at = y[i];
    dx[i] = ops_get(&dy, 0, i) * ops_slope(gelu_loss, &at, &at);
    y[i] = gelu_of(at);
  }
  ops_buf got[OPS_STREAMS], back[OPS_STREAMS];
  for (int i = 0; i < OPS_STREAMS; i++) {
    const g3_device_ops *ops = bench->dev[i]->ops;
    got[i] = ops_vector(t, n);
    back[i] = ops_vector(t, n);
    ops_poison(&got[i]);
    ops_copy(&back[i], &dy); /* dx may be dy */
    OPS_OK(ops->gelu(bench->stream[i], got[i].t, x.t));
    OPS_OK(ops->gelu_bwd(bench->stream[i], back[i].t, back[i].t, x.t));
  }
  ops_judge("gelu", t, &got[0], y, 1);
  ops_judge("gelu_bwd", t, &back[0], dx, 1);
  ops_same("gelu", &got[0], &got[1]);
  ops_same("gelu_bwd", &back[0], &back[1]);
  for (int i = 0; i < OPS_STREAMS; i++) {
    ops_free(&got[i]);
    ops_free(&back[i]);
  }
  ops_free(&x);
  ops_free(&dy);
  free(y);
  free(dx);
}

static void test_gelu(void **state) {
  for (int t = 0; t < OPS_TYPES; t++)
    for (int i = 0; i < COUNTS; i++) {
      gelu_case(*state, ops_types[t], counts[i], 1);
      gelu_case(*state, ops_types[t], counts[i], 4);
    }
}

/* Far out GELU is x or 0, and its slope 1 or 0, without NaN. */
static void test_gelu_far(void **state) {
  ops_bench *bench = *state;
  static const double far[] = {-1e30, -200, -30, 30, 200, 1e12};
  enum { N = sizeof far / sizeof far[0] };
  ops_buf x = ops_vector(G3_F32, N), y = ops_vector(G3_F32, N), dy = ops_vector(G3_F32, N);
  for (int i = 0; i < N; i++) {
    ops_put(&x, 0, i, far[i]);
    ops_put(&dy, 0, i, 1);
  }
  OPS_OK(bench->dev[0]->ops->gelu(bench->stream[0], y.t, x.t));
  OPS_OK(bench->dev[0]->ops->gelu_bwd(bench->stream[0], dy.t, dy.t, x.t));
  for (int i = 0; i < N; i++) {
    assert_true(ops_get(&y, 0, i) == (far[i] > 0 ? ops_get(&x, 0, i) : 0));
    assert_true(fabs(ops_get(&dy, 0, i) - (far[i] > 0 ? 1 : 0)) < 1e-30);
  }
  ops_free(&x);
  ops_free(&y);
  ops_free(&dy);
}

/* The documented mask, one element at a time. */
static double mask_at(const g3_dropout_spec *d, int64_t row, int64_t col) {
  if (d->p == 0) return 1;
  const int64_t flat = d->row + row;
  const uint64_t sample = (uint64_t)(d->sample + flat / d->seq);
  const g3_philox_block b =
      g3_philox((uint32_t)d->key, (uint32_t)(d->key >> 32), (uint32_t)(col / 4),
                (uint32_t)(flat % d->seq), (uint32_t)sample, (uint32_t)(sample >> 32 << 16));
  return (double)b.w[col % 4] >= (double)d->p * 4294967296.0 ? 1 / (1 - (double)d->p) : 0;
}

typedef struct {
  int64_t m, n;
  bool bias, residual, in_place;
  g3_dropout_spec drop;
} row_case;

static const row_case row_cases[] = {
    {1, 1, true, true, false, {0.0f, 0, 0, 0, 1}},
    {3, 7, false, true, false, {0.0f, 0, 0, 0, 4}},
    {5, 96, true, false, true, {0.1f, 0x123456789ABCDEFu, 3, 2, 4}},
    {37, 257, true, true, true, {0.5f, 77, (int64_t)5 << 32 | 9, 11, 16}},
    {70, 1030, true, true, false, {0.25f, 0xFFFFFFFFFFFFFFFFu, 1, 0, 32}},
    {4, 256, false, false, false, {0.9f, 1, 0, 1000, 7}},
};
enum { ROW_CASES = sizeof row_cases / sizeof row_cases[0] };

static void bias_dropout_add_case(ops_bench *bench, g3_dtype t, const row_case *c) {
  ops_buf x = ops_make(t, c->m, c->n, 3), residual = ops_make(t, c->m, c->n, 1);
  ops_buf bias = ops_vector(t, c->n);
  ops_random(&x, 1, 0, 1);
  ops_random(&residual, 2, 0, 1);
  ops_random(&bias, 3, 0, 1);
  double *y = ops_doubles(&x), *dx = ops_doubles(&x);
  for (int64_t i = 0; i < c->m * c->n; i++) {
    const int64_t row = i / c->n, col = i % c->n;
    dx[i] = y[i] * mask_at(&c->drop, row, col); /* the backward of dy = x */
    y[i] = (y[i] + (c->bias ? ops_get(&bias, 0, col) : 0)) * mask_at(&c->drop, row, col) +
           (c->residual ? ops_get(&residual, row, col) : 0);
  }
  ops_buf got[OPS_STREAMS], back[OPS_STREAMS];
  for (int i = 0; i < OPS_STREAMS; i++) {
    const g3_device_ops *ops = bench->dev[i]->ops;
    got[i] = ops_make(t, c->m, c->n, 3);
    back[i] = ops_make(t, c->m, c->n, 3);
    ops_poison(&got[i]);
    ops_poison(&back[i]);
    if (c->in_place) {
      ops_copy(&got[i], &x);
      ops_copy(&back[i], &x);
    }
    OPS_OK(ops->bias_dropout_add(bench->stream[i], got[i].t, c->in_place ? got[i].t : x.t,
                                 c->bias ? bias.t : g3_tensor_none(),
                                 c->residual ? residual.t : g3_tensor_none(), &c->drop));
    OPS_OK(ops->dropout_bwd(bench->stream[i], back[i].t, c->in_place ? back[i].t : x.t, &c->drop));
  }
  ops_judge("bias_dropout_add", t, &got[0], y, 1);
  ops_judge("dropout_bwd", t, &back[0], dx, 1);
  ops_same("bias_dropout_add", &got[0], &got[1]);
  ops_same("dropout_bwd", &back[0], &back[1]);
  for (int i = 0; i < OPS_STREAMS; i++) {
    ops_free(&got[i]);
    ops_free(&back[i]);
  }
  ops_free(&x);
  ops_free(&residual);
  ops_free(&bias);
  free(y);
  free(dx);
}

static void test_bias_dropout_add(void **state) {
  for (int t = 0; t < OPS_TYPES; t++)
    for (int i = 0; i < ROW_CASES; i++)
      bias_dropout_add_case(*state, ops_types[t], &row_cases[i]);
}

/* A batch in two calls, cut between rows, uses the numbers of the whole. */
static void test_dropout_cut(void **state) {
  ops_bench *bench = *state;
  const g3_device_ops *ops = bench->dev[0]->ops;
  const g3_dropout_spec whole = {0.5f, 99, 7, 0, 8};
  ops_buf x = ops_make(G3_F32, 24, 40, 0), a = ops_make(G3_F32, 24, 40, 0);
  ops_buf b = ops_make(G3_F32, 24, 40, 0);
  ops_random(&x, 1, 2, 1);
  OPS_OK(ops->dropout_bwd(bench->stream[0], a.t, x.t, &whole));
  for (int64_t row = 0; row < 24; row += 6) {
    g3_dropout_spec part = whole;
    part.row = row;
    OPS_OK(ops->dropout_bwd(bench->stream[0], g3_tensor_part(b.t, 0, row, 6),
                            g3_tensor_part(x.t, 0, row, 6), &part));
  }
  ops_same("dropout in parts", &a, &b);
  int64_t kept = 0;
  for (int64_t i = 0; i < 960; i++)
    kept += ops_get(&a, i / 40, i % 40) != 0;
  assert_in_range(kept, 400, 560);
  ops_free(&x);
  ops_free(&a);
  ops_free(&b);
}

int ops_group_pointwise(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_gelu),
      cmocka_unit_test(test_gelu_far),
      cmocka_unit_test(test_bias_dropout_add),
      cmocka_unit_test(test_dropout_cut),
  };
  return cmocka_run_group_tests(tests, ops_setup, ops_teardown);
}
