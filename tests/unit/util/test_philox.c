#include "unit/util/cm.h"
#include "util/philox.h"
#include <math.h>

/* The published answers for ten rounds (Random123's known-answer vectors). */
static void test_known_answers(void **unused) {
  (void)unused;
  static const struct {
    uint32_t key[2], counter[4], answer[4];
  } cases[] = {
      {{0, 0}, {0, 0, 0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{0xffffffff, 0xffffffff},
       {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
       {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0xa4093822, 0x299f31d0},
       {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const uint32_t *c = cases[i].counter;
    const g3_philox_block b = g3_philox(cases[i].key[0], cases[i].key[1], c[0], c[1], c[2], c[3]);
    assert_memory_equal(b.w, cases[i].answer, sizeof b.w);
  }
}

/* Seeds, uses and items that differ anywhere give keys that differ. */
static void test_keys_differ(void **unused) {
  (void)unused;
  static const uint64_t seeds[] = {0, 1, 1234, (uint64_t)1 << 32, UINT64_MAX};
  static const uint64_t items[] = {0, 1, 2, (uint64_t)1 << 32, UINT64_MAX};
  enum { USES = G3_RNG_MOCK };
  uint64_t keys[5 * 5 * USES];
  int n = 0;
  for (int s = 0; s < 5; s++)
    for (int i = 0; i < 5; i++)
      for (int use = G3_RNG_INIT; use <= G3_RNG_MOCK; use++)
        keys[n++] = g3_rng_key(seeds[s], (g3_rng_use)use, items[i]);
  for (int a = 0; a < n; a++)
    for (int b = 0; b < a; b++)
      assert_true(keys[a] != keys[b]);
  assert_true(g3_rng_key(1234, G3_RNG_INIT, 3) == g3_rng_key(1234, G3_RNG_INIT, 3));
}

static void test_unit_is_open_at_0(void **unused) {
  (void)unused;
  assert_true(g3_unit(0) > 0 && isfinite(logf(g3_unit(0))));
  assert_true(g3_unit(UINT32_MAX) == 1.0f);
  assert_true(g3_unit(0x7FFFFFFF) == 0.5f);
}

/* Mean 1/2, variance 1/12, and no bit that prefers one value, over 2^16 counters. */
static void test_moments(void **unused) {
  (void)unused;
  enum { BLOCKS = 1 << 16, WORDS = 4 * BLOCKS };
  double sum = 0, squares = 0;
  int ones[32] = {0};
  for (uint32_t i = 0; i < BLOCKS; i++) {
    const g3_philox_block b = g3_philox(1, 2, i, 0, 0, 0);
    for (int k = 0; k < 4; k++) {
      const double u = (double)g3_unit(b.w[k]);
      sum += u;
      squares += u * u;
      for (int bit = 0; bit < 32; bit++)
        ones[bit] += (int)(b.w[k] >> bit & 1);
    }
  }
  const double mean = sum / WORDS, variance = squares / WORDS - mean * mean;
  /* six standard errors each; the stream is fixed, so that this never flickers */
  assert_true(fabs(mean - 0.5) < 6 * sqrt(1.0 / 12 / WORDS));
  assert_true(fabs(variance - 1.0 / 12) < 6 * sqrt(1.0 / 180 / WORDS));
  for (int bit = 0; bit < 32; bit++)
    assert_true(fabs(ones[bit] - WORDS / 2.0) < 6 * sqrt(WORDS / 4.0));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_known_answers),
      cmocka_unit_test(test_keys_differ),
      cmocka_unit_test(test_unit_is_open_at_0),
      cmocka_unit_test(test_moments),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
