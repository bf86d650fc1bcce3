/* The kernels' own exponential against the C library's in float64. */
#include "device/cpu/kernels/vmath.h"
#include "unit/util/cm.h"
#include <math.h>

static void test_exp_ulps(void **state) {
  (void)state;
  double worst = 0;
  for (float x = -87.33f; x < 88.72f; x += 3.1e-4f) {
    const double want = exp((double)x);
    const float near = (float)want;
    const double ulp = (double)nextafterf(near, INFINITY) - (double)near;
    worst = fmax(worst, fabs((double)g3_expf(x) - want) / ulp);
  }
  if (worst > 1.05) fail_msg("e^x is off by %g units in the last place", worst);
  for (float x = -1e-3f; x < 1e-3f; x += 1.7e-7f)
    assert_true(fabs((double)g3_expf(x) - exp((double)x)) < 1.2e-7);
}

static void test_exp_edges(void **state) {
  (void)state;
  assert_true(g3_expf(0) == 1 && g3_expf(-0.0f) == 1);
  assert_true(isinf(g3_expf(INFINITY)) && isinf(g3_expf(89)) && isinf(g3_expf(3e38f)));
  assert_true(g3_expf(-INFINITY) == 0 && g3_expf(-3e38f) == 0 && g3_expf(-105) == 0);
  assert_true(isnan(g3_expf(NAN)) && isnan(g3_expf(-NAN)));
  for (float x = -103; x < -87.4f; x += 0.1f) /* below the normal range: to the smallest steps */
    assert_true(fabs((double)g3_expf(x) - exp((double)x)) < 3e-45);
  float before = 0;
  for (float x = -104; x < 88.7f; x += 0.01f) {
    assert_true(g3_expf(x) >= before);
    before = g3_expf(x);
  }
}

static void test_get_put(void **state) {
  (void)state;
  float f[3] = {0};
  g3_bf16 h[3] = {0};
  g3_put(f, 1, 1.2345f, false);
  g3_put(h, 2, 1.2345f, true);
  assert_true(g3_get(f, 1, false) == 1.2345f && f[0] == 0 && f[2] == 0);
  assert_true(g3_get(h, 2, true) == 1.234375f && h[0] == 0 && h[1] == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_exp_ulps),
      cmocka_unit_test(test_exp_edges),
      cmocka_unit_test(test_get_put),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
