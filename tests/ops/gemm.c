/* gemm against plain float64 sums. */
#include "ops/groups.h"
#include "ops/harness.h"
#include <stdlib.h>

typedef struct {
  int64_t m, n, k;
} shape;

static const shape shapes[] = {
    {1, 1, 1},     {1, 7, 3},      {7, 1, 5},      {5, 3, 1},      {13, 17, 19},
    {31, 1, 96},   {96, 257, 7},   {257, 96, 33},  {128, 64, 128}, {3, 520, 515},
    {515, 5, 600}, {64, 64, 2048}, {520, 512, 33}, {2, 3, 16400},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static double at(const double *a, bool trans, int64_t rows, int64_t cols, int64_t r, int64_t c) {
  return trans ? a[c * rows + r] : a[r * cols + c];
}

/* want [m, n] = op(a) op(b) + what it held. */
static void reference(double *want, const double *a, const double *b, shape s,
                      const g3_gemm_spec *spec) {
  for (int64_t i = 0; i < s.m; i++)
    for (int64_t j = 0; j < s.n; j++)
      for (int64_t l = 0; l < s.k; l++)
        want[i * s.n + j] +=
            at(a, spec->trans_a, s.m, s.k, i, l) * at(b, spec->trans_b, s.k, s.n, l, j);
}

typedef struct {
  shape s;
  g3_dtype in, out;
  bool trans_a, trans_b, accumulate, bias;
  int64_t gap; /* between rows */
} test_case;

static void run_case(ops_bench *bench, test_case t) {
  const shape s = t.s;
  ops_buf a = ops_make(t.in, t.trans_a ? s.k : s.m, t.trans_a ? s.m : s.k, t.gap);
  ops_buf b = ops_make(t.in, t.trans_b ? s.n : s.k, t.trans_b ? s.k : s.n, 2 * t.gap);
  ops_buf bias = ops_vector(t.in, s.n);
  ops_random(&a, 1, 0.1, 1);
  ops_random(&b, 2, -0.1, 1);
  ops_random(&bias, 3, 0, 1);
  const g3_gemm_spec spec = {.trans_a = t.trans_a,
                             .trans_b = t.trans_b,
                             .accumulate = t.accumulate,
                             .bias = t.bias ? bias.t : g3_tensor_none()};
  ops_buf c = ops_make(t.out, s.m, s.n, t.gap);
  if (t.accumulate)
    ops_random(&c, 4, 0, 1);
  else
    ops_poison(&c);
  double *wa = ops_doubles(&a), *wb = ops_doubles(&b), *want = ops_doubles(&c);
  for (int64_t i = 0; i < s.m && !t.accumulate; i++)
    for (int64_t j = 0; j < s.n; j++)
      want[i * s.n + j] = t.bias ? ops_get(&bias, 0, j) : 0;
  reference(want, wa, wb, s, &spec);
  for (int i = 0; i < OPS_STREAMS; i++) {
    ops_buf got = ops_make(t.out, s.m, s.n, t.gap);
    ops_copy(&got, &c);
    OPS_OK(bench->dev[i]->ops->gemm(bench->stream[i], got.t, a.t, b.t, &spec));
    const char *name = t.accumulate    ? "gemm, accumulate"
                       : t.bias        ? "gemm, bias"
                       : t.out == t.in ? "gemm"
                                       : "gemm, f32 out";
    ops_judge(name, t.in, &got, want, (double)s.k);
    ops_free(&got);
  }
  ops_free(&a);
  ops_free(&b);
  ops_free(&bias);
  ops_free(&c);
  free(wa);
  free(wb);
  free(want);
}

static void test_gemm(void **state) {
  for (int i = 0; i < SHAPES; i++)
    for (int t = 0; t < 4; t++)
      for (int ty = 0; ty < OPS_TYPES; ty++) {
        test_case c = {.s = shapes[i], .in = ops_types[ty], .out = ops_types[ty]};
        c.trans_a = t & 1;
        c.trans_b = t & 2;
        c.gap = i % 3;
        run_case(*state, c);
        c.bias = true;
        run_case(*state, c);
        c.bias = false;
        c.out = G3_F32;
        run_case(*state, c);
        c.accumulate = true;
        run_case(*state, c);
      }
}

/* The second call for a shape comes from the table of products; other addresses must be used. */
static void test_again_elsewhere(void **state) {
  for (int i = 0; i < 3; i++)
    run_case(*state, (test_case){.s = {24, 40, 56}, .in = G3_F32, .out = G3_F32, .bias = true});
}

static void test_empty(void **state) {
  ops_bench *bench = *state;
  ops_buf a = ops_make(G3_F32, 4, 4, 0), c = ops_make(G3_F32, 4, 4, 0);
  ops_random(&a, 1, 0, 1);
  ops_poison(&c);
  const g3_gemm_spec spec = {0};
  OPS_OK(bench->dev[0]->ops->gemm(bench->stream[0], g3_tensor_part(c.t, 0, 0, 0),
                                  g3_tensor_part(a.t, 0, 0, 0), a.t, &spec));
  ops_free(&a);
  ops_free(&c);
}

int ops_group_gemm(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_gemm),
      cmocka_unit_test(test_again_elsewhere),
      cmocka_unit_test(test_empty),
  };
  return cmocka_run_group_tests(tests, ops_setup, ops_teardown);
}
