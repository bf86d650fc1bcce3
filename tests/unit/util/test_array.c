#include "unit/util/cm.h"
#include "util/array.h"
#include "util/clock.h"
#include <stdlib.h>
#include <string.h>

static void test_zeroed(void **unused) {
  (void)unused;
  double *x = NULL;
  assert_int_equal(G3_NEW_ARRAY(1000, &x), G3_OK);
  for (int i = 0; i < 1000; i++)
    assert_true(x[i] == 0);
  x[999] = 1;
  free(x);
}

static void test_none_is_freeable(void **unused) {
  (void)unused;
  int *x = NULL;
  assert_int_equal(G3_NEW_ARRAY(0, &x), G3_OK);
  assert_non_null(x);
  free(x);
}

static void test_impossible_sizes(void **unused) {
  (void)unused;
  void *untouched = &untouched;
  void *p = untouched;
  assert_int_equal(g3_alloc_array(-1, 8, &p), G3_ENOMEM);
  assert_string_equal(g3_last_error(), "an array of -1 elements of 8 bytes is impossible");
  assert_int_equal(g3_alloc_array(INT64_MAX, 16, &p), G3_ENOMEM);
  assert_non_null(strstr(g3_last_error(), "9223372036854775807 elements of 16 bytes"));
  assert_ptr_equal(p, untouched);
}

static void test_checked_arithmetic(void **unused) {
  (void)unused;
  int64_t x = 0;
  assert_true(g3_mul_ok((int64_t)1 << 31, (int64_t)1 << 31, &x));
  assert_true(x == (int64_t)1 << 62);
  assert_false(g3_mul_ok((int64_t)1 << 32, (int64_t)1 << 31, &x));
  assert_false(g3_mul_ok(INT64_MIN, -1, &x));
  assert_true(g3_add_ok(INT64_MAX - 1, 1, &x));
  assert_true(x == INT64_MAX);
  assert_false(g3_add_ok(INT64_MAX, 1, &x));
}

static void test_rounding(void **unused) {
  (void)unused;
  assert_int_equal(g3_round_up(0, 256), 0);
  assert_int_equal(g3_round_up(1, 256), 256);
  assert_int_equal(g3_round_up(256, 256), 256);
  assert_int_equal(g3_round_up(257, 256), 512);
  assert_int_equal(g3_round_up(10, 3), 12);
  assert_int_equal(g3_ceil_div(0, 7), 0);
  assert_int_equal(g3_ceil_div(7, 7), 1);
  assert_int_equal(g3_ceil_div(8, 7), 2);
}

static void test_clock_goes_on(void **unused) {
  (void)unused;
  const double start = g3_now();
  double last = start;
  while (last < start + 1e-3) {
    const double now = g3_now();
    assert_true(now >= last);
    last = now;
  }
  assert_true(last - start < 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_zeroed),           cmocka_unit_test(test_none_is_freeable),
      cmocka_unit_test(test_impossible_sizes), cmocka_unit_test(test_checked_arithmetic),
      cmocka_unit_test(test_rounding),         cmocka_unit_test(test_clock_goes_on),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
