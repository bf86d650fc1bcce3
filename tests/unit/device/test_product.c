/* The table of products: one object a shape, found again, through growth. */
#include "device/cpu/product.h"
#include "unit/util/cm.h"
#include <stdlib.h>
#include <string.h>

static g3_product_key key_of(int64_t m, int64_t n, int64_t k, g3_dtype t) {
  return (g3_product_key){.m = m,
                          .n = n,
                          .k = k,
                          .lda = k,
                          .ldb = n,
                          .ldc = n,
                          .input = (int32_t)t,
                          .output = (int32_t)t};
}

static void test_same_key_same_product(void **state) {
  (void)state;
  g3_products *t;
  assert_int_equal(g3_products_create(1, &t), G3_OK);
  g3_product_key key = key_of(4, 5, 6, G3_F32);
  g3_product *p;
  assert_int_equal(g3_products_get(t, &key, &p), G3_OK);
  void *first = p->primitive;
  assert_non_null(first);
  assert_int_equal(g3_products_get(t, &key, &p), G3_OK);
  assert_ptr_equal(p->primitive, first);
  key.lda = 7;
  assert_int_equal(g3_products_get(t, &key, &p), G3_OK);
  assert_int_equal(p->key.lda, 7);
  g3_products_destroy(t);
}

/* 300 shapes: past the first capacity of 256, and still each computes its own product. */
static void test_growth(void **state) {
  (void)state;
  enum { SHAPES = 300 };
  static void *memories[SHAPES];
  static float a[SHAPES], b[SHAPES];
  g3_products *t;
  assert_int_equal(g3_products_create(1, &t), G3_OK);
  for (int i = 0; i < SHAPES; i++)
    a[i] = b[i] = 1;
  for (int round = 0; round < 2; round++)
    for (int i = 0; i < SHAPES; i++) {
      const g3_product_key key = key_of(1, 1, i + 1, G3_F32);
      g3_product *p;
      float c = -1;
      assert_int_equal(g3_products_get(t, &key, &p), G3_OK);
      if (round == 0) memories[i] = p->a;
      assert_ptr_equal(p->a, memories[i]);
      assert_int_equal(g3_product_run(t, p, &c, a, b, NULL), G3_OK);
      assert_true(c == (float)(i + 1));
    }
  g3_products_destroy(t);
}

/* A processor without bf16 products gives a product without a primitive, and not an error. */
static void test_bf16_or_refusal(void **state) {
  (void)state;
  g3_products *t;
  assert_int_equal(g3_products_create(1, &t), G3_OK);
  const g3_product_key key = key_of(8, 8, 8, G3_BF16);
  g3_product *p, *again;
  assert_int_equal(g3_products_get(t, &key, &p), G3_OK);
  const bool can = p->primitive != NULL;
  assert_int_equal(g3_products_get(t, &key, &again), G3_OK);
  assert_int_equal(again->primitive != NULL, can);
  if (can) {
    uint16_t one[64], c[64] = {0};
    for (int i = 0; i < 64; i++)
      one[i] = 0x3F80;
    assert_int_equal(g3_product_run(t, p, c, one, one, NULL), G3_OK);
    for (int i = 0; i < 64; i++)
      assert_int_equal(c[i], 0x4100); /* 8 */
  }
  g3_products_destroy(t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_same_key_same_product),
      cmocka_unit_test(test_growth),
      cmocka_unit_test(test_bf16_or_refusal),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
