/* The optimizer's ops against float64. */
#include "ops/groups.h"
#include "ops/harness.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const g3_adamw_spec spec = {3e-3f, 0.9f, 0.95f, 1e-8f, 0.1f};

static g3_tensor control_tensor(g3_control *c) {
  return g3_tensor_1d(c, G3_U8, sizeof *c);
}

static g3_status control(ops_bench *b, int i, g3_control *c, double *sums, int64_t n, float most) {
  return b->dev[i]->ops->control(b->stream[i], control_tensor(c), g3_tensor_1d(sums, G3_F64, n),
                                 most);
}

static void test_control(void **state) {
  g3_control c = {0};
  double sums[] = {12.5, 64, 1, 9, 16}; /* squares 9 and 16: norm 5 */
  OPS_OK(control(*state, 0, &c, sums, 5, 1.0f));
  assert_true(c.loss_sum == 12.5 && c.tokens == 64 && c.stop == 1 && c.norm == 5);
  assert_true(c.clip == (float)(1.0 / (5 + 1e-6)));
  assert_int_equal(c.applied_steps, 1);
  assert_int_equal(c.skip, 0);
  OPS_OK(control(*state, 0, &c, sums, 5, 100.0f)); /* below the limit: as it is */
  assert_true(c.clip == 1.0f && c.applied_steps == 2);
  OPS_OK(control(*state, 0, &c, sums, 5, 0)); /* never */
  assert_true(c.clip == 1.0f && c.applied_steps == 3);
}

static void test_control_skips(void **state) {
  static const int bad_entry[] = {G3_SUM_LOSS, G3_SUM_SQUARES, G3_SUM_SQUARES + 1};
  const double bad_value[] = {(double)NAN, (double)INFINITY};
  for (int e = 0; e < 3; e++)
    for (int v = 0; v < 2; v++) {
      g3_control c = {.applied_steps = 7};
      double sums[] = {12.5, 64, 0, 9, 16};
      sums[bad_entry[e]] = bad_value[v];
      OPS_OK(control(*state, 0, &c, sums, 5, 1.0f));
      assert_int_equal(c.skip, 1);
      assert_int_equal(c.applied_steps, 7);
      sums[bad_entry[e]] = 1;
      OPS_OK(control(*state, 0, &c, sums, 5, 1.0f));
      assert_int_equal(c.skip, 0);
      assert_int_equal(c.applied_steps, 8);
    }
}

/* Finite, but its squares would be infinite moments: skipped, unless clipping makes it small. */
static void test_control_skips_what_overflows(void **state) {
  static const struct {
    double norm;
    float most;
    int skip;
  } cases[] = {{0x1p63, 0, 0}, {0x1p64, 0, 1}, {1e30, 0, 1}, {1e30, 1e25f, 1}, {1e30, 1, 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    g3_control c = {.applied_steps = 7};
    double sums[] = {12.5, 64, 0, cases[i].norm * cases[i].norm};
    OPS_OK(control(*state, 0, &c, sums, 4, cases[i].most));
    assert_int_equal(c.skip, cases[i].skip);
    assert_int_equal(c.applied_steps, 8 - cases[i].skip);
    assert_true(c.norm == cases[i].norm);
  }
}

enum { P, M, V, G, TENSORS };

/* One step in float64, from the values that the tensors hold now. */
static void reference(double *want[TENSORS], int64_t n, const g3_control *c) {
  const double b1 = (double)spec.beta1, b2 = (double)spec.beta2, lr = (double)spec.lr;
  const double t = (double)c->applied_steps;
  for (int64_t i = 0; i < n; i++) {
    const double g = want[G][i] * (double)c->clip;
    want[M][i] = b1 * want[M][i] + (1 - b1) * g;
    want[V][i] = b2 * want[V][i] + (1 - b2) * g * g;
    const double m_hat = want[M][i] / (1 - pow(b1, t)), v_hat = want[V][i] / (1 - pow(b2, t));
    want[P][i] -= lr * (m_hat / (sqrt(v_hat) + (double)spec.eps) + (double)spec.decay * want[P][i]);
  }
}

static void adamw_case(ops_bench *bench, int64_t n, bool low) {
  ops_buf start[TENSORS], got[OPS_STREAMS][TENSORS], rounded[OPS_STREAMS];
  double *want[TENSORS];
  for (int k = 0; k < TENSORS; k++) {
    start[k] = ops_vector(G3_F32, n);
    ops_random(&start[k], (uint64_t)k, k == V ? 1e-4 : 0, k == V ? 1e-4 : k == M ? 1e-2 : 1);
    want[k] = ops_doubles(&start[k]);
  }
  g3_control c = {.clip = 0.3f, .applied_steps = 5};
  reference(want, n, &c);
  for (int i = 0; i < OPS_STREAMS; i++) {
    ops_buf *g = got[i];
    for (int k = 0; k < TENSORS; k++) {
      g[k] = ops_vector(G3_F32, n);
      ops_copy(&g[k], &start[k]);
    }
    rounded[i] = ops_vector(G3_BF16, n);
    ops_poison(&rounded[i]);
    OPS_OK(bench->dev[i]->ops->adamw(bench->stream[i], g[P].t,
                                     low ? rounded[i].t : g3_tensor_none(), g[M].t, g[V].t, g[G].t,
                                     &spec, control_tensor(&c)));
  }
  static const char *const names[TENSORS] = {"adamw p", "adamw m", "adamw v", "adamw g, unchanged"};
  for (int k = 0; k < TENSORS; k++) {
    ops_judge(names[k], G3_F32, &got[0][k], want[k], 1);
    ops_same(names[k], &got[0][k], &got[1][k]);
  }
  for (int64_t i = 0; low && i < n; i++) /* the rounding of what p became, to the bit */
    assert_true(fabs(ops_get(&rounded[0], 0, i) - ops_get(&got[0][P], 0, i)) <=
                fabs(ops_get(&got[0][P], 0, i)) / 256);
  if (low) ops_same("adamw low", &rounded[0], &rounded[1]);
  for (int k = 0; k < TENSORS; k++) {
    ops_free(&start[k]);
    ops_free(&got[0][k]);
    ops_free(&got[1][k]);
    free(want[k]);
  }
  ops_free(&rounded[0]);
  ops_free(&rounded[1]);
}

/* The update is far smaller than p: started from p = 0, its own error is judged. */
static void test_update_alone(void **state) {
  ops_bench *bench = *state;
  enum { N = 333 };
  ops_buf t[TENSORS];
  double *want[TENSORS];
  for (int k = 0; k < TENSORS; k++) {
    t[k] = ops_vector(G3_F32, N);
    ops_random(&t[k], (uint64_t)k, 0, k == G ? 1e-3 : 0);
    want[k] = ops_doubles(&t[k]);
  }
  g3_control c = {.clip = 1, .applied_steps = 1};
  reference(want, N, &c);
  OPS_OK(bench->dev[0]->ops->adamw(bench->stream[0], t[P].t, g3_tensor_none(), t[M].t, t[V].t,
                                   t[G].t, &spec, control_tensor(&c)));
  ops_judge("adamw first update", G3_F32, &t[P], want[P], 4);
  for (int k = 0; k < TENSORS; k++) {
    ops_free(&t[k]);
    free(want[k]);
  }
}

static void test_adamw(void **state) {
  static const int64_t counts[] = {1, 7, 96, 257, 8193, 50021};
  for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
    adamw_case(*state, counts[i], false);
    adamw_case(*state, counts[i], true);
  }
}

static void test_skip_does_nothing(void **state) {
  ops_bench *bench = *state;
  ops_buf t[TENSORS], before = ops_vector(G3_F32, 50);
  for (int k = 0; k < TENSORS; k++) {
    t[k] = ops_vector(G3_F32, 50);
    ops_random(&t[k], 9, 0, 1);
  }
  ops_random(&before, 9, 0, 1);
  ops_poison(&t[G]);
  g3_control c = {.applied_steps = 3, .skip = 1};
  OPS_OK(bench->dev[0]->ops->adamw(bench->stream[0], t[P].t, g3_tensor_none(), t[M].t, t[V].t,
                                   t[G].t, &spec, control_tensor(&c)));
  for (int k = 0; k < G; k++)
    ops_same("a skipped step", &t[k], &before);
  for (int k = 0; k < TENSORS; k++)
    ops_free(&t[k]);
  ops_free(&before);
}

int ops_group_adamw(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_control),
      cmocka_unit_test(test_control_skips),
      cmocka_unit_test(test_control_skips_what_overflows),
      cmocka_unit_test(test_adamw),
      cmocka_unit_test(test_update_alone),
      cmocka_unit_test(test_skip_does_nothing),
  };
  return cmocka_run_group_tests(tests, ops_setup, ops_teardown);
}
