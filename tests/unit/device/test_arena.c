/* Arenas: the same calls on measuring arenas and on real ones give the same layout. */
#include "device/arena.h"
#include "unit/util/cm.h"
#include "unit/util/death.h"
#include <string.h>

static void lay_out(g3_arenas *a, g3_tensor *x, g3_tensor *y, void **z) {
  *x = g3_arena_tensor(a, G3_MEM_PARAMS, G3_F32, 3, 5);
  *y = g3_arena_tensor(a, G3_MEM_PARAMS, G3_BF16, 7, 100);
  *z = g3_arena_take(a, G3_MEM_GRADS, 1);
}

static void test_measured_is_what_is_used(void **state) {
  (void)state;
  g3_arenas m = g3_arenas_measuring();
  g3_tensor x, y;
  void *z;
  lay_out(&m, &x, &y, &z);
  assert_int_equal(m.of[G3_MEM_PARAMS].used, 256 + 1536); /* 60 and 1400 bytes */
  assert_int_equal(m.of[G3_MEM_GRADS].used, 256);
  assert_int_equal(m.of[G3_MEM_ACTS].used, 0);
  assert_non_null(x.data);

  static _Alignas(G3_ARENA_ALIGN) char params[256 + 1536], grads[256];
  g3_arenas real = {0};
  real.of[G3_MEM_PARAMS] = (g3_arena){params, 0, sizeof params};
  real.of[G3_MEM_GRADS] = (g3_arena){grads, 0, sizeof grads};
  lay_out(&real, &x, &y, &z);
  assert_ptr_equal(x.data, params);
  assert_ptr_equal(y.data, params + 256);
  assert_ptr_equal(z, grads);
  assert_int_equal(real.of[G3_MEM_PARAMS].used, real.of[G3_MEM_PARAMS].size);
  assert_int_equal(y.dim[0], 7);
  assert_int_equal(y.stride[0], 100);
  assert_int_equal(y.dtype, G3_BF16);
}

static void test_empty_takes_nothing(void **state) {
  (void)state;
  g3_arenas m = g3_arenas_measuring();
  assert_non_null(g3_arena_take(&m, G3_MEM_COMM, 0));
  assert_int_equal(m.of[G3_MEM_COMM].used, 0);
  assert_int_equal(g3_tensor_count(g3_arena_tensor(&m, G3_MEM_COMM, G3_F32, 0, 9)), 0);
}

static void too_small(void) {
  g3_arenas a = {0};
  char memory[256];
  a.of[G3_MEM_ACTS] = (g3_arena){memory, 0, sizeof memory};
  g3_arena_take(&a, G3_MEM_ACTS, 257);
}
static void overflow(void) {
  g3_arenas a = g3_arenas_measuring();
  g3_arena_take(&a, G3_MEM_ACTS, 512);
  g3_arena_take(&a, G3_MEM_ACTS, SIZE_MAX - 511);
}
static void impossible_shape(void) {
  g3_arenas a = g3_arenas_measuring();
  g3_arena_tensor(&a, G3_MEM_ACTS, G3_F32, INT64_MAX / 2, 3);
}

/* A wrong plan is a mistake of the program: it ends the process and says why. */
static void dies(void (*mistake)(void), const char *says) {
  char text[4096];
  assert_int_not_equal(death_of(mistake, text, sizeof text), -1);
  assert_non_null(strstr(text, says));
}

static void test_mistakes(void **state) {
  (void)state;
  dies(too_small, "activations arena of 256 bytes has no room for 257 more");
  dies(overflow, "no room");
  dies(impossible_shape, "impossible");
}

static void test_names(void **state) {
  (void)state;
  for (int c = 0; c < G3_MEM_CLASSES; c++) {
    assert_non_null(g3_mem_class_name((g3_mem_class)c));
    for (int d = 0; d < c; d++)
      assert_string_not_equal(g3_mem_class_name((g3_mem_class)c),
                              g3_mem_class_name((g3_mem_class)d));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_measured_is_what_is_used),
      cmocka_unit_test(test_empty_takes_nothing),
      cmocka_unit_test(test_mistakes),
      cmocka_unit_test(test_names),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
