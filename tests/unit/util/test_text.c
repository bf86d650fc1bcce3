#include "unit/util/cm.h"
#include "util/text.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void test_bytes(void **unused) {
  (void)unused;
  static const struct {
    int64_t n;
    const char *text;
  } cases[] = {
      {0, "0 B"},
      {1023, "1023 B"},
      {1024, "1.00 KiB"},
      {1536, "1.50 KiB"},
      {10 * 1024, "10.0 KiB"},
      {100 * 1024, "100 KiB"},
      {1023 * 1024 + 511, "1023 KiB"},
      {1024 * 1024 - 1, "1.00 MiB"},
      {(int64_t)3 << 29, "1.50 GiB"},
      {(int64_t)128 << 30, "128 GiB"},
      {(int64_t)5 << 40, "5.00 TiB"},
      {(int64_t)7 << 50, "7.00 PiB"},
      {INT64_MAX, "8.00 EiB"},
  };
  g3_number_text out;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_string_equal(g3_text_bytes(cases[i].n, out), cases[i].text);
}

static void test_counts(void **unused) {
  (void)unused;
  static const struct {
    int64_t n;
    const char *count, *commas;
  } cases[] = {
      {0, "0", "0"},
      {7, "7", "7"},
      {-42, "-42", "-42"},
      {999, "999", "999"},
      {1000, "1.0 k", "1,000"},
      {-1000, "-1.0 k", "-1,000"},
      {12288, "12.3 k", "12,288"},
      {999949, "999.9 k", "999,949"},
      {999950, "1.0 M", "999,950"},
      {124439808, "124.4 M", "124,439,808"},
      {-124439808, "-124.4 M", "-124,439,808"},
      {174604259328, "174.6 B", "174,604,259,328"},
      {1008038758400, "1.0 T", "1,008,038,758,400"},
      {INT64_MAX, "9223372.0 T", "9,223,372,036,854,775,807"},
      {INT64_MIN, "-9223372.0 T", "-9,223,372,036,854,775,808"},
  };
  g3_number_text out;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_string_equal(g3_text_count(cases[i].n, out), cases[i].count);
    assert_string_equal(g3_text_commas(cases[i].n, out), cases[i].commas);
  }
}

static void test_durations(void **unused) {
  (void)unused;
  static const struct {
    double s;
    const char *text;
  } cases[] = {
      {0, "0 us"},
      {850e-6, "850 us"},
      {0.9994e-3, "999 us"},
      {0.9996e-3, "1.0 ms"},
      {0.045, "45.0 ms"},
      {0.99996, "1.0 s"},
      {12.34, "12.3 s"},
      {59.94, "59.9 s"},
      {59.96, "1m 00s"},
      {185, "3m 05s"},
      {3599.4, "59m 59s"},
      {3599.6, "1h 00m"},
      {3720, "1h 02m"},
      {3779.9, "1h 03m"},
      {86399, "23h 59m"},
      {86400, "1d 00h"},
      {4 * 86400 + 3 * 3600 + 1800, "4d 03h"},
      {-1, "unknown"},
      {(double)NAN, "unknown"},
      {(double)INFINITY, "unknown"},
      {1e300, "unknown"},
  };
  g3_number_text out;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_string_equal(g3_text_duration(cases[i].s, out), cases[i].text);
}

static void test_double_is_shortest(void **unused) {
  (void)unused;
  static const struct {
    double x;
    const char *text;
  } cases[] = {
      {0, "0"},
      {-0.0, "-0"},
      {1, "1"},
      {400, "400"},
      {1000, "1000"},
      {-100000, "-100000"},
      {0.1, "0.1"},
      {2e-3, "0.002"},
      {1e-8, "1e-08"},
      {0.95, "0.95"},
      {1e14, "100000000000000"},
      {1e15, "1e+15"},
      {1.0 / 3, "0.3333333333333333"},
      {(double)NAN, "nan"},
      {(double)INFINITY, "inf"},
      {-(double)INFINITY, "-inf"},
  };
  g3_number_text out;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_string_equal(g3_text_double(cases[i].x, out), cases[i].text);
}

/* Every kind of bit pattern must come back as it was. */
static void test_double_comes_back(void **unused) {
  (void)unused;
  static const double edges[] = {DBL_MAX,  DBL_MIN,   DBL_TRUE_MIN,      DBL_EPSILON,
                                 -DBL_MAX, 0.1 + 0.2, 9007199254740993.0};
  g3_number_text out;
  for (size_t i = 0; i < sizeof edges / sizeof *edges; i++)
    assert_true(strtod(g3_text_double(edges[i], out), NULL) == edges[i]);
  uint64_t bits = 0x9E3779B97F4A7C15u;
  for (int i = 0; i < 20000; i++) {
    bits = bits * 6364136223846793005u + 1442695040888963407u;
    double x;
    memcpy(&x, &bits, sizeof x);
    if (isfinite(x)) assert_true(strtod(g3_text_double(x, out), NULL) == x);
  }
}

static void test_distance(void **unused) {
  (void)unused;
  assert_int_equal(g3_text_distance("", ""), 0);
  assert_int_equal(g3_text_distance("", "abc"), 3);
  assert_int_equal(g3_text_distance("abc", ""), 3);
  assert_int_equal(g3_text_distance("kitten", "sitting"), 3);
  assert_int_equal(g3_text_distance("sitting", "kitten"), 3);
  assert_int_equal(g3_text_distance("--micro-bach", "--micro-batch"), 1);
  assert_int_equal(g3_text_distance("WSD", "wsd"), 0);
  assert_int_equal(g3_text_distance("ab", "ba"), 2);
  /* long words: the first 63 bytes count */
  char a[100], b[100];
  memset(a, 'x', sizeof a - 1);
  memset(b, 'x', sizeof b - 1);
  a[99] = b[99] = '\0';
  b[80] = 'y';
  assert_int_equal(g3_text_distance(a, b), 0);
  b[5] = 'y';
  assert_int_equal(g3_text_distance(a, b), 1);
}

static void test_utf8(void **unused) {
  (void)unused;
  static const struct {
    const char *s;
    int bytes;
    uint32_t code;
  } cases[] = {
      {"A", 1, 'A'},
      {"\x7F", 1, 0x7F},
      {"\xC2\x80", 2, 0x80},
      {"\xC3\xA9", 2, 0xE9},
      {"\xE2\x82\xAC", 3, 0x20AC},
      {"\xEF\xBF\xBF", 3, 0xFFFF},
      {"\xF0\x9F\x98\x80", 4, 0x1F600},
      {"\xF4\x8F\xBF\xBF", 4, 0x10FFFF},
      {"\x80", 0, 0}, /* a continuation alone */
      {"\xC3", 0, 0}, /* cut off */
      {"\xE2\x82", 0, 0},
      {"\xC0\x80", 0, 0}, /* overlong */
      {"\xC1\xBF", 0, 0},
      {"\xE0\x9F\xBF", 0, 0},
      {"\xF0\x8F\xBF\xBF", 0, 0},
      {"\xED\xA0\x80", 0, 0}, /* a surrogate */
      {"\xF4\x90\x80\x80", 0, 0}, /* above 0x10FFFF */
      {"\xFF", 0, 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    uint32_t code = 0;
    assert_int_equal(g3_utf8_decode(cases[i].s, &code), cases[i].bytes);
    assert_int_equal(code, cases[i].code);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_bytes),
      cmocka_unit_test(test_counts),
      cmocka_unit_test(test_durations),
      cmocka_unit_test(test_double_is_shortest),
      cmocka_unit_test(test_double_comes_back),
      cmocka_unit_test(test_distance),
      cmocka_unit_test(test_utf8),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
