/* column_sum, sum, sum_squares, and the ops that only move: copy, fill, cast. */
#include "ops/groups.h"
#include "ops/harness.h"
#include "util/half.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const int64_t shapes[][2] = {{1, 1}, {7, 3}, {1, 96}, {33, 31}, {257, 130}, {1000, 64}};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static void column_case(ops_bench *bench, g3_dtype t, int64_t m, int64_t n) {
  ops_buf x = ops_make(t, m, n, 5), sum = ops_vector(G3_F32, n);
  ops_random(&x, 1, 0.25, 1);
  ops_random(&sum, 2, 0, 1);
  double *want = ops_doubles(&sum);
  for (int64_t i = 0; i < m * n; i++)
    want[i % n] += ops_get(&x, i / n, i % n);
  ops_buf got[OPS_STREAMS];
  for (int i = 0; i < OPS_STREAMS; i++) {
    got[i] = ops_vector(G3_F32, n);
    ops_copy(&got[i], &sum);
    OPS_OK(bench->dev[i]->ops->column_sum(bench->stream[i], got[i].t, x.t));
  }
  ops_judge("column_sum", t, &got[0], want, (double)m);
  ops_same("column_sum", &got[0], &got[1]);
  ops_free(&got[0]);
  ops_free(&got[1]);
  ops_free(&x);
  ops_free(&sum);
  free(want);
}

static void test_column_sum(void **state) {
  for (int t = 0; t < OPS_TYPES; t++)
    for (int i = 0; i < SHAPES; i++)
      column_case(*state, ops_types[t], shapes[i][0], shapes[i][1]);
}

static const int64_t counts[] = {0, 1, 31, 33, 8191, 8193, 100003, 3000017};
enum { COUNTS = sizeof counts / sizeof counts[0] };

/* float64 sums: far below the bound of f32, so judged more strictly. */
static void sum_case(ops_bench *bench, g3_dtype t, int64_t n) {
  ops_buf x = ops_vector(t, n), sum[OPS_STREAMS], squares[OPS_STREAMS];
  ops_random(&x, (uint64_t)n, 0.5, 1);
  long double want = 2, want_squares = 3;
  for (int64_t i = 0; i < n; i++) {
    const long double v = (long double)ops_get(&x, 0, i);
    want += v;
    want_squares += v * v;
  }
  for (int i = 0; i < OPS_STREAMS; i++) {
    sum[i] = ops_vector(G3_F64, 1);
    squares[i] = ops_vector(G3_F64, 1);
    ops_put(&sum[i], 0, 0, 2);
    ops_put(&squares[i], 0, 0, 3);
    OPS_OK(bench->dev[i]->ops->sum(bench->stream[i], sum[i].t, x.t));
    OPS_OK(bench->dev[i]->ops->sum_squares(bench->stream[i], squares[i].t, x.t));
  }
  assert_true(fabs(ops_get(&sum[0], 0, 0) - (double)want) <= 1e-13 * (double)(n + 1));
  assert_true(fabs(ops_get(&squares[0], 0, 0) - (double)want_squares) <= 1e-13 * (double)(n + 1));
  ops_same("sum", &sum[0], &sum[1]);
  ops_same("sum_squares", &squares[0], &squares[1]);
  for (int i = 0; i < OPS_STREAMS; i++) {
    ops_free(&sum[i]);
    ops_free(&squares[i]);
  }
  ops_free(&x);
}

static void test_sums(void **state) {
  for (int t = 0; t < OPS_TYPES; t++)
    for (int i = 0; i < COUNTS; i++)
      sum_case(*state, ops_types[t], counts[i]);
}

/* Where every partial sum is a whole number below 2^53, any order gives this very value. */
static void test_sum_exact(void **state) {
  ops_bench *bench = *state;
  enum { N = 50000 };
  ops_buf x = ops_vector(G3_F32, N), out = ops_vector(G3_F64, 1);
  for (int64_t i = 0; i < N; i++)
    ops_put(&x, 0, i, (double)(i % 2048) + 1);
  ops_put(&out, 0, 0, 0);
  double want = 0;
  for (int64_t i = 0; i < N; i++)
    want += ((double)(i % 2048) + 1) * ((double)(i % 2048) + 1);
  OPS_OK(bench->dev[1]->ops->sum_squares(bench->stream[1], out.t, x.t));
  assert_true(ops_get(&out, 0, 0) == want);
  ops_free(&x);
  ops_free(&out);
}

static void test_copy_fill(void **state) {
  ops_bench *bench = *state;
  for (int i = 0; i < OPS_STREAMS; i++)
    for (int64_t n = 1; n < 1000000; n = 7 * n + 1) {
      const g3_device_ops *ops = bench->dev[i]->ops;
      ops_buf a = ops_vector(G3_F32, n), b = ops_vector(G3_F32, n), c = ops_vector(G3_BF16, n);
      ops_random(&a, 1, 0, 1);
      ops_poison(&b);
      ops_poison(&c);
      OPS_OK(ops->copy(bench->stream[i], b.t, a.t));
      ops_same("copy", &a, &b);
      OPS_OK(ops->fill(bench->stream[i], b.t, -2.5f));
      OPS_OK(ops->fill(bench->stream[i], c.t, -2.5f));
      for (int64_t k = 0; k < n; k++)
        assert_true(ops_get(&b, 0, k) == -2.5 && ops_get(&c, 0, k) == -2.5);
      OPS_OK(ops->fill(bench->stream[i], c.t, 0));
      for (int64_t k = 0; k < n; k++)
        assert_true(ops_get(&c, 0, k) == 0);
      ops_free(&a);
      ops_free(&b);
      ops_free(&c);
    }
}

/* Down rounds to nearest even, as util/half.h does; back up is exact. */
static void test_cast(void **state) {
  ops_bench *bench = *state;
  static const float special[] = {0.0f,      -0.0f,   1.00390625f, 1.01171875f, INFINITY,
                                  -INFINITY, 3.4e38f, 1e-40f,      -1.0f / 3,   65504.0f};
  enum { SPECIAL = sizeof special / sizeof special[0] };
  for (int i = 0; i < OPS_STREAMS; i++)
    for (int64_t n = SPECIAL; n < 300000; n = 11 * n + 3) {
      const g3_device_ops *ops = bench->dev[i]->ops;
      ops_buf x = ops_vector(G3_F32, n), low = ops_vector(G3_BF16, n), up = ops_vector(G3_F32, n);
      ops_random(&x, 1, 0, 1000);
      memcpy(x.t.data, special, sizeof special);
      OPS_OK(ops->cast(bench->stream[i], low.t, x.t));
      OPS_OK(ops->cast(bench->stream[i], up.t, low.t));
      for (int64_t k = 0; k < n; k++) {
        const g3_bf16 want = g3_f32_to_bf16(((const float *)x.t.data)[k]);
        assert_int_equal(((const g3_bf16 *)low.t.data)[k], want);
        assert_true(((const float *)up.t.data)[k] == g3_bf16_to_f32(want));
      }
      ops_free(&x);
      ops_free(&low);
      ops_free(&up);
    }
}

int ops_group_sums(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_column_sum), cmocka_unit_test(test_sums),
      cmocka_unit_test(test_sum_exact),  cmocka_unit_test(test_copy_fill),
      cmocka_unit_test(test_cast),
  };
  return cmocka_run_group_tests(tests, ops_setup, ops_teardown);
}
