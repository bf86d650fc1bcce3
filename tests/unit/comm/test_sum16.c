#include "comm/sum16.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
/* after those, which it needs */
#include <cmocka.h>

enum { N = 1000, STEP = N + 24, MOST = 5 };

/* Numbers of very different sizes, so that order and rounding both show. */
static g3_bf16 held(int r, int64_t i) {
  const float scale = (i + r) % 3 == 0 ? 300.0f : 1.0f;
  return g3_f32_to_bf16(scale * ((float)((i * 31 + r * 57) % 41) / 7.0f - 2.5f));
}

static float want(int size, int64_t i, g3_redop op) {
  float acc = g3_bf16_to_f32(held(0, i));
  for (int r = 1; r < size; r++) {
    const float v = g3_bf16_to_f32(held(r, i));
    acc = op == G3_SUM ? acc + v : v > acc ? v : acc;
  }
  return g3_bf16_to_f32(g3_f32_to_bf16(acc));
}

static void fold_adds_in_order_and_rounds_once(void **unused) {
  (void)unused;
  g3_bf16 *parts = malloc(MOST * STEP * sizeof *parts), own[N + 1];
  assert_non_null(parts);
  for (g3_redop op = G3_SUM; op <= G3_MAX; op++)
    for (int size = 2; size <= MOST; size++)
      for (int me = 0; me < size; me++) {
        for (int r = 0, slot = 0; r < size; r++) {
          if (r == me) continue;
          for (int64_t i = 0; i < N; i++)
            parts[slot * STEP + i] = held(r, i);
          slot++;
        }
        for (int64_t i = 0; i < N; i++)
          own[i] = held(me, i);
        own[N] = 0x1234;
        g3_sum16_fold(own, N, parts, STEP, own, me, size, op);
        for (int64_t i = 0; i < N; i++)
          assert_true(g3_bf16_to_f32(own[i]) == want(size, i, op));
        assert_int_equal(own[N], 0x1234);
      }
  free(parts);
}

static void scratch_is_enough_and_bounded(void **unused) {
  (void)unused;
  assert_int_equal(g3_comm_scratch_bytes(1000, 1), 0);
  assert_int_equal(g3_comm_scratch_bytes(0, 4), 0);
  /* Small: the vectors of the three others. Large: their pieces of a range. */
  assert_int_equal(g3_comm_scratch_bytes(1000, 4), 3 * 2000);
  assert_int_equal(g3_comm_scratch_bytes(400000, 4), 3 * 200000);
  assert_int_equal(g3_comm_scratch_bytes(400001, 4), 3 * 200002);
  assert_int_equal(g3_comm_scratch_bytes(400001, 2), 800002);
  const size_t most = g3_comm_scratch_bytes(G3_SUM16_CHUNK, 4);
  assert_int_equal(most, 3 * 2 * G3_SUM16_CHUNK / 4);
  assert_int_equal(g3_comm_scratch_bytes(INT64_MAX, 4), most);
  for (int size = 2; size < 9; size++)
    for (int64_t n = 1; n < 5000; n++)
      assert_true(g3_comm_scratch_bytes(n, size) <= g3_comm_scratch_bytes(n + 1, size));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(fold_adds_in_order_and_rounds_once),
      cmocka_unit_test(scratch_is_enough_and_bounded),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
