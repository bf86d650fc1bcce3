/* Exact sums against __float128 and under every shuffling. */
#include "unit/util/cm.h"
#include "util/fixed.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state = 88172645463325252u;

static uint64_t next(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

static void add_f32(g3_fixed *a, float x, int square) {
  int e;
  const double m = frexp((double)x, &e); /* x = m 2^e, m in [0.5, 1) */
  const int64_t whole = (int64_t)ldexp(m, 24);
  if (square)
    g3_fixed_add(a, whole * whole, 2 * (e - 24) + G3_FIXED_UNIT);
  else
    g3_fixed_add(a, whole, e - 24 + G3_FIXED_UNIT);
}

/* Numbers within 2^20 of each other: __float128's 113 bits hold their sums exactly. */
static void sums_agree_with_quad(void **unused) {
  (void)unused;
  for (int round = 0; round < 200; round++) {
    g3_fixed a = {{0}};
    __float128 want = 0;
    const int n = 1 + (int)(next() % 1000), base = (int)(next() % 100) - 60;
    const int square = round % 2;
    for (int i = 0; i < n; i++) {
      const double u = (double)(next() >> 11) * 0x1p-53 - (square ? 0 : 0.5);
      const float x = (float)ldexp(u, base + (int)(next() % 20));
      add_f32(&a, x, square);
      want += square ? (__float128)x * (__float128)x : (__float128)x;
    }
    const double got = g3_fixed_value(&a), rounded = (double)want;
    assert_memory_equal(&got, &rounded, sizeof got);
  }
}

/* The extremes of f32 together: a sum of 2^256 and 2^-298 rounds as it must. */
static void extremes(void **unused) {
  (void)unused;
  g3_fixed a = {{0}};
  assert_true(g3_fixed_value(&a) == 0.0);
  g3_fixed_add(&a, 1, 0);
  assert_true(g3_fixed_value(&a) == 0x1p-298);
  add_f32(&a, 0x1.fffffep127f, 1);
  assert_true(g3_fixed_value(&a) == 0x1.fffffep127 * 0x1.fffffep127);
  g3_fixed_add(&a, -1, 0);
  add_f32(&a, 0x1p-149f, 0);
  for (int i = 0; i < 1 << 16; i++)
    add_f32(&a, 0x1.fffffep127f, 1);
  g3_fixed_carry(&a);
  assert_true(g3_fixed_value(&a) == 65537.0 * 0x1.fffffep127 * 0x1.fffffep127);
}

/* Halves go to the even neighbour, unless anything follows. */
static void rounds_to_even(void **unused) {
  (void)unused;
  static const struct {
    int64_t high;
    int rest;
    double want;
  } rows[] = {
      {(INT64_C(1) << 53) + 1, 0, 0x1p53},     {(INT64_C(1) << 53) + 1, 1, 0x1p53 + 2},
      {(INT64_C(1) << 53) + 3, 0, 0x1p53 + 4}, {(INT64_C(1) << 53) + 3, -1, 0x1p53 + 2},
      {-(INT64_C(1) << 53) - 1, 0, -0x1p53},   {-(INT64_C(1) << 53) - 1, -1, -0x1p53 - 2},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    g3_fixed a = {{0}};
    g3_fixed_add(&a, rows[i].high, G3_FIXED_UNIT);
    g3_fixed_add(&a, rows[i].rest, 3);
    assert_true(g3_fixed_value(&a) == rows[i].want);
  }
}

enum { MANY = 4096 };

/* The same limbs, bit by bit, in any order, in any groups, through memory as float64. */
static void order_does_not_matter(void **unused) {
  (void)unused;
  static float x[MANY];
  for (int i = 0; i < MANY; i++)
    x[i] = ldexpf((float)(int32_t)next(), (int)(next() % 180) - 120);
  g3_fixed first = {{0}};
  for (int round = 0; round < 20; round++) {
    double memory[G3_FIXED_SIZE] = {0}, part[G3_FIXED_SIZE];
    const int group = 1 + (int)(next() % 500);
    for (int at = 0; at < MANY; at += group) {
      g3_fixed a = {{0}};
      for (int i = at; i < MANY && i < at + group; i++)
        add_f32(&a, x[i], 0);
      g3_fixed_carry(&a);
      g3_fixed_store(&a, part);
      for (int k = 0; k < G3_FIXED_LIMBS; k++)
        memory[k] += part[k];
    }
    g3_fixed all;
    g3_fixed_load(&all, memory);
    g3_fixed_carry(&all);
    if (round == 0) first = all;
    assert_memory_equal(&all, &first, sizeof all);
    for (int i = MANY - 1; i > 0; i--) {
      const int j = (int)(next() % (uint64_t)(i + 1));
      const float t = x[i];
      x[i] = x[j];
      x[j] = t;
    }
  }
}

/* What was added and taken away again leaves nothing, whatever its size. */
static void cancels(void **unused) {
  (void)unused;
  g3_fixed a = {{0}};
  for (int i = 0; i < 1000; i++) {
    const int64_t x = (int64_t)next();
    const int bit = (int)(next() % 500);
    g3_fixed_add(&a, x / 2, bit);
    g3_fixed_add(&a, -(x / 2), bit);
  }
  assert_true(g3_fixed_value(&a) == 0.0);
  g3_fixed_add(&a, -3, 40);
  assert_true(g3_fixed_value(&a) == -3 * 0x1p-258);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sums_agree_with_quad),
      cmocka_unit_test(extremes),
      cmocka_unit_test(rounds_to_even),
      cmocka_unit_test(order_does_not_matter),
      cmocka_unit_test(cancels),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
