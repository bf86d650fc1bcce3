#include "unit/util/cm.h"
#include "util/half.h"
#include <float.h>
#include <math.h>

static float from_bits(uint32_t bits) {
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

static uint32_t bits_of(float f) {
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  return bits;
}

static void test_every_bf16_comes_back(void **unused) {
  (void)unused;
  for (uint32_t h = 0; h <= 0xFFFF; h++) {
    const float f = g3_bf16_to_f32((g3_bf16)h);
    assert_int_equal(bits_of(f), h << 16);
    if (isnan(f))
      assert_true(isnan(g3_bf16_to_f32(g3_f32_to_bf16(f))));
    else
      assert_int_equal(g3_f32_to_bf16(f), h);
  }
}

static void test_rounds_to_nearest_even(void **unused) {
  (void)unused;
  static const struct {
    uint32_t f;
    uint16_t h;
  } cases[] = {
      {0x3F800000, 0x3F80}, /* 1 */
      {0x3F807FFF, 0x3F80}, /* just below the middle */
      {0x3F808000, 0x3F80}, /* the middle, even below */
      {0x3F808001, 0x3F81}, /* just above the middle */
      {0x3F818000, 0x3F82}, /* the middle, even above */
      {0xBF818000, 0xBF82}, /* the same below zero */
      {0x7F7FFFFF, 0x7F80}, /* the largest float rounds to infinity */
      {0x7F7F7FFF, 0x7F7F}, /* the largest that does not */
      {0x7F800000, 0x7F80}, {0xFF800000, 0xFF80}, /* infinities */
      {0x00000001, 0x0000}, {0x80000001, 0x8000}, /* tiny denormals keep their sign */
      {0x00008001, 0x0001}, /* a denormal that rounds up */
      {0x007FFFFF, 0x0080}, /* the largest denormal rounds to the smallest normal */
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_int_equal(g3_f32_to_bf16(from_bits(cases[i].f)), cases[i].h);
}

static void test_nan_stays_nan(void **unused) {
  (void)unused;
  static const uint32_t nans[] = {0x7F800001, 0x7FC00000, 0x7FFFFFFF, 0xFF800001, 0xFFFFFFFF};
  for (size_t i = 0; i < sizeof nans / sizeof *nans; i++) {
    const g3_bf16 h = g3_f32_to_bf16(from_bits(nans[i]));
    assert_true(isnan(g3_bf16_to_f32(h)));
    assert_int_equal(h >> 15, nans[i] >> 31);
  }
}

/* The result is one of the two neighbours, and the nearer one. */
static void test_error_is_at_most_half_a_step(void **unused) {
  (void)unused;
  uint32_t bits = 12345;
  for (int i = 0; i < 100000; i++) {
    bits = bits * 1664525u + 1013904223u;
    const float f = from_bits(bits);
    if (!isfinite(f) || fabsf(f) > 3.3e38f || fabsf(f) < FLT_MIN) continue;
    const float r = g3_bf16_to_f32(g3_f32_to_bf16(f));
    assert_true(fabs((double)r - (double)f) <= ldexp(fabs((double)f), -8));
  }
}

static void test_every_f16(void **unused) {
  (void)unused;
  for (uint32_t h = 0; h <= 0xFFFF; h++) {
    const float f = g3_f16_to_f32((uint16_t)h);
    const int exponent = (int)(h >> 10 & 0x1F), mantissa = (int)(h & 0x3FF);
    assert_int_equal(signbit(f) != 0, h >> 15);
    if (exponent == 31) {
      assert_true(mantissa ? isnan(f) : isinf(f));
      continue;
    }
    const double unit = exponent ? 1024.0 + mantissa : (double)mantissa;
    const double want = ldexp(unit, (exponent ? exponent : 1) - 25);
    assert_true(fabs((double)f) == want);
  }
  assert_true(g3_f16_to_f32(0x3C00) == 1.0f && g3_f16_to_f32(0xC000) == -2.0f);
  assert_true(g3_f16_to_f32(0x7BFF) == 65504.0f && g3_f16_to_f32(0x0001) == 0x1p-24f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_bf16_comes_back),
      cmocka_unit_test(test_rounds_to_nearest_even),
      cmocka_unit_test(test_nan_stays_nan),
      cmocka_unit_test(test_every_f16),
      cmocka_unit_test(test_error_is_at_most_half_a_step),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
