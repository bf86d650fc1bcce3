/* Verifying counts what it read; comparing prints what differs and nothing else. */
#include "fixture.h"

static g3_ckpt_index *save_and_read(fixture *f, int64_t step, const g3_ckpt_item *items, int n) {
  const g3_ckpt_meta meta = {.step = step};
  char path[512];
  snprintf(path, sizeof path, "%s/step-%08d", f->dir, (int)step);
  g3_ckpt_index *ix = NULL;
  assert_ok(g3_ckpt_save(f->self, f->stream, f->dir, &meta, items, n, 0, f->stage));
  assert_ok(g3_ckpt_index_read(path, &ix));
  return ix;
}

/* The rows that a comparison prints. */
static int64_t diff(fixture *f, const g3_ckpt_index *a, const g3_ckpt_index *b, char *text,
                    size_t size) {
  FILE *out = fmemopen(text, size, "w");
  assert_non_null(out);
  int64_t differing = -1;
  assert_ok(g3_ckpt_diff(a, b, f->stage, out, &differing));
  assert_int_equal(fclose(out), 0);
  return differing;
}

static void layouts_do_not_matter(void **state) {
  fixture *f = *state;
  g3_ckpt_item whole = item_of("model/w", G3_F32, 12, 20);
  fill(&whole, 0);
  g3_ckpt_item parts[3] = {part_of(&whole, G3_F32, 0, 12, 0, 9),
                           part_of(&whole, G3_F32, 0, 7, 9, 11),
                           part_of(&whole, G3_F32, 7, 5, 9, 11)};
  for (int i = 0; i < 3; i++)
    fill(&parts[i], 0);
  g3_ckpt_index *a = save_and_read(f, 1, &whole, 1), *b = save_and_read(f, 2, parts, 3);
  char text[512] = "";
  int64_t bytes = 0;
  assert_ok(g3_ckpt_verify(b, f->stage, &bytes));
  assert_int_equal(bytes, 12 * 20 * 4);
  assert_int_equal(g3_ckpt_index_stage_bytes(a), 960);
  assert_int_equal(g3_ckpt_index_stage_bytes(b), 432);
  assert_int_equal(diff(f, a, b, text, sizeof text), 0);
  assert_int_equal(diff(f, b, a, text, sizeof text), 0);
  assert_string_equal(text, "");

  put(parts[1].local, 5, 1000);
  put(parts[2].local, 54, -1000);
  g3_ckpt_index_free(b);
  b = save_and_read(f, 2, parts, 3);
  assert_int_equal(diff(f, a, b, text, sizeof text), 1);
  assert_non_null(strstr(text, "model/w "));
  /* Element 5 of parts[1] is -111 in the whole, and element 54 of parts[2] is 114. */
  assert_non_null(strstr(text, "2 of 240 elements differ, by at most 1.11e+03\n"));
  g3_ckpt_index_free(a);
  g3_ckpt_index_free(b);
  free_items(parts, 3);
  free_items(&whole, 1);
}

static void bits_are_compared(void **state) {
  fixture *f = *state;
  g3_ckpt_item x = item_of("x", G3_F32, 0, 3), y = item_of("x", G3_F32, 0, 3);
  put(x.local, 0, 0.0f);
  put(y.local, 0, -0.0f);
  put(x.local, 1, __builtin_nanf("")); /* equal to itself, bit by bit */
  put(y.local, 1, __builtin_nanf(""));
  put(y.local, 2, __builtin_inff());
  g3_ckpt_index *a = save_and_read(f, 1, &x, 1), *b = save_and_read(f, 2, &y, 1);
  char text[512] = "";
  assert_int_equal(diff(f, a, b, text, sizeof text), 1);
  assert_non_null(strstr(text, "2 of 3 elements differ, by at most 0\n"));
  g3_ckpt_index_free(a);
  g3_ckpt_index_free(b);
  free_items(&x, 1);
  free_items(&y, 1);
}

static void every_kind_of_difference(void **state) {
  fixture *f = *state;
  g3_ckpt_item one[4] = {item_of("a", G3_F32, 0, 4), item_of("c", G3_F32, 2, 4),
                         item_of("d", G3_F32, 0, 4), item_of("e", G3_F32, 0, 2)};
  g3_ckpt_item two[4] = {item_of("b", G3_F32, 0, 4), item_of("c", G3_F32, 4, 2),
                         item_of("d", G3_BF16, 0, 4), item_of("e", G3_F32, 0, 2)};
  for (int i = 0; i < 4; i++) {
    fill(&one[i], 0);
    fill(&two[i], 0);
  }
  put(one[2].local, 1, 1.00390625f);
  put(two[2].local, 1, 1.0f);
  g3_ckpt_index *a = save_and_read(f, 1, one, 4), *b = save_and_read(f, 2, two, 4);
  char text[1024] = "";
  assert_int_equal(diff(f, a, b, text, sizeof text), 4);
  assert_non_null(strstr(text, "only in"));
  const char *first = strstr(text, "step-00000001\n"), *second = strstr(text, "step-00000002\n");
  assert_true(text[0] == 'a' && first && second && second > first);
  assert_non_null(strstr(text, "shapes differ"));
  assert_non_null(strstr(text, "f32 and bf16; 1 of 4 elements differ, by at most 0.00391\n"));
  assert_null(strstr(text, "\ne "));
  g3_ckpt_index_free(a);
  g3_ckpt_index_free(b);
  free_items(one, 4);
  free_items(two, 4);
}

static void damage_stops_a_comparison(void **state) {
  fixture *f = *state;
  g3_ckpt_item x = item_of("x", G3_F32, 0, 3000);
  g3_ckpt_index *a = save_and_read(f, 1, &x, 1), *b = save_and_read(f, 2, &x, 1);
  char path[512];
  path_in(f, path, "step-00000002/shard-00000.h5");
  flip_byte(path, (long)size_of(path) - 5000);
  int64_t differing = 0;
  FILE *out = fopen("/dev/null", "w");
  expect_failure(g3_ckpt_diff(a, b, f->stage, out, &differing), G3_EFORMAT,
                 "step-00000002/shard-00000.h5: x@0", "damaged");
  fclose(out);
  /* A full disk behind the output is no equality. */
  g3_ckpt_index_free(b);
  put(x.local, 0, 1);
  b = save_and_read(f, 2, &x, 1);
  out = fopen("/dev/full", "w");
  setbuf(out, NULL);
  expect_failure(g3_ckpt_diff(a, b, f->stage, out, &differing), G3_EIO, "cannot print", "");
  fclose(out);
  g3_ckpt_index_free(a);
  g3_ckpt_index_free(b);
  free_items(&x, 1);
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      CASE(layouts_do_not_matter),
      CASE(bits_are_compared),
      CASE(every_kind_of_difference),
      CASE(damage_stops_a_comparison),
  };
  return cmocka_run_group_tests_name("ckpt_compare", tests, NULL, NULL);
}
