/* What is saved is what is loaded: whole, in slices, and in the other dtype. */
#include "fixture.h"

static void both_dtypes_come_back(void **state) {
  fixture *f = *state;
  assert_ok(save_small(f, 12, 0));
  char path[512];
  path_in(f, path, "step-00000012");
  g3_ckpt_index *ix = NULL;
  assert_ok(g3_ckpt_index_read(path, &ix));
  assert_int_equal(ix->meta.step, 12);
  assert_int_equal(ix->meta.consumed_samples, 384);
  assert_int_equal(ix->meta.applied_steps, 11);
  assert_string_equal(g3_ckpt_attr_get(&ix->meta, "model.layers"), "4");
  assert_string_equal(g3_ckpt_attr_get(&ix->meta, "model.width"), "128");
  assert_null(g3_ckpt_attr_get(&ix->meta, "model.heads"));
  assert_int_equal(ix->nentries, 2);
  assert_int_equal(ix->nshards, 1);
  assert_int_equal(g3_ckpt_find(ix, "optim/exp_avg/block.weight")->dtype, G3_BF16);
  assert_null(g3_ckpt_find(ix, "optim"));

  g3_ckpt_item items[SMALL_ITEMS];
  small_items(items);
  for (int i = 0; i < SMALL_ITEMS; i++)
    memset(items[i].local.data, 0x5a, g3_tensor_bytes(items[i].local));
  bool found[SMALL_ITEMS] = {false};
  assert_ok(g3_ckpt_load(ix, f->stream, items, SMALL_ITEMS, NULL, f->stage, found));
  assert_true(found[0] && found[1]);
  expect_numbers(&items[0], 0);
  expect_numbers(&items[1], 1);
  free_items(items, SMALL_ITEMS);
  g3_ckpt_index_free(ix);
}

/* Every bit pattern that training makes survives, NaN and -0 among them. */
static void bits_survive(void **state) {
  fixture *f = *state;
  enum { N = 1 << 16 };
  g3_ckpt_item items[2] = {item_of("model/all16", G3_BF16, 0, N),
                           item_of("model/some32", G3_F32, 0, N)};
  for (int i = 0; i < N; i++) {
    const uint16_t half = (uint16_t)i;
    const uint32_t word = (uint32_t)i * 2654435761u;
    memcpy((char *)items[0].local.data + i * 2, &half, 2);
    memcpy((char *)items[1].local.data + i * 4, &word, 4);
  }
  const g3_ckpt_meta meta = {.step = 1};
  assert_ok(g3_ckpt_save(f->self, f->stream, f->dir, &meta, items, 2, 0, f->stage));
  char path[512];
  path_in(f, path, "step-00000001");
  g3_ckpt_index *ix = NULL;
  assert_ok(g3_ckpt_index_read(path, &ix));
  g3_ckpt_item again[2] = {item_of("model/all16", G3_BF16, 0, N),
                           item_of("model/some32", G3_F32, 0, N)};
  assert_ok(g3_ckpt_load(ix, f->stream, again, 2, NULL, f->stage, NULL));
  for (int i = 0; i < 2; i++)
    assert_memory_equal(again[i].local.data, items[i].local.data, g3_tensor_bytes(items[i].local));
  g3_ckpt_index_free(ix);
  free_items(items, 2);
  free_items(again, 2);
}

static void dtypes_convert(void **state) {
  fixture *f = *state;
  assert_ok(save_small(f, 1, 0));
  char path[512];
  path_in(f, path, "step-00000001");
  g3_ckpt_index *ix = NULL;
  assert_ok(g3_ckpt_index_read(path, &ix));
  /* The same f32 tensor three times in one call: narrowed before and after it is wanted as it is.
   */
  g3_ckpt_item items[4] = {item_of("model/block.weight", G3_BF16, 6, 10),
                           item_of("model/block.weight", G3_F32, 6, 10),
                           item_of("model/block.weight", G3_BF16, 6, 10),
                           item_of("optim/exp_avg/block.weight", G3_F32, 0, 7)};
  assert_ok(g3_ckpt_load(ix, f->stream, items, 4, NULL, f->stage, NULL));
  for (int i = 0; i < 4; i++)
    expect_numbers(&items[i], i == 3 ? 1 : 0);
  free_items(items, 4);
  g3_ckpt_index_free(ix);
}

static void narrowing_rounds_to_even(void **state) {
  fixture *f = *state;
  g3_ckpt_item item = item_of("model/x", G3_F32, 0, 3);
  float *x = item.local.data;
  x[0] = 1.00390625f; /* half way: to even, 1 */
  x[1] = 1.01171875f; /* half way: to even, 1.015625 */
  x[2] = 1.00390637f; /* just above half way */
  const g3_ckpt_meta meta = {.step = 1};
  assert_ok(g3_ckpt_save(f->self, f->stream, f->dir, &meta, &item, 1, 0, f->stage));
  char path[512];
  path_in(f, path, "step-00000001");
  g3_ckpt_index *ix = NULL;
  assert_ok(g3_ckpt_index_read(path, &ix));
  g3_ckpt_item low = item_of("model/x", G3_BF16, 0, 3);
  assert_ok(g3_ckpt_load(ix, f->stream, &low, 1, NULL, f->stage, NULL));
  assert_true(get(low.local, 0) == 1.0f);
  assert_true(get(low.local, 1) == 1.015625f);
  assert_true(get(low.local, 2) == 1.0078125f);
  g3_ckpt_index_free(ix);
  free_items(&item, 1);
  free_items(&low, 1);
}

/* Slices of any cut are put together from pieces of any other. */
static void any_slice_loads(void **state) {
  fixture *f = *state;
  const g3_ckpt_item whole = item_of("model/w", G3_F32, 12, 20);
  /* Four pieces that tile it unevenly. */
  g3_ckpt_item parts[4] = {
      part_of(&whole, G3_F32, 0, 5, 0, 20), part_of(&whole, G3_F32, 5, 7, 0, 3),
      part_of(&whole, G3_F32, 5, 6, 3, 17), part_of(&whole, G3_F32, 11, 1, 3, 17)};
  for (int i = 0; i < 4; i++)
    fill(&parts[i], 0);
  const g3_ckpt_meta meta = {.step = 1};
  assert_ok(g3_ckpt_save(f->self, f->stream, f->dir, &meta, parts, 4, 0, f->stage));
  char path[512];
  path_in(f, path, "step-00000001");
  g3_ckpt_index *ix = NULL;
  assert_ok(g3_ckpt_index_read(path, &ix));
  assert_int_equal(ix->entry[0].npieces, 4);
  for (int64_t row = 0; row < 12; row += 3)
    for (int64_t col = 0; col < 20; col += 7) {
      g3_ckpt_item want[3] = {part_of(&whole, G3_F32, row, 12 - row, col, 20 - col),
                              part_of(&whole, G3_BF16, 0, row + 1, 0, col + 1),
                              part_of(&whole, G3_F32, row, 0, col, 5)}; /* empty: fine */
      assert_ok(g3_ckpt_load(ix, f->stream, want, 3, NULL, f->stage, NULL));
      for (int i = 0; i < 3; i++)
        expect_numbers(&want[i], 0);
      free_items(want, 3);
    }
  g3_ckpt_index_free(ix);
  free_items(parts, 4);
  free(whole.local.data);
}

static void optional_tensors_may_be_absent(void **state) {
  fixture *f = *state;
  assert_ok(save_small(f, 1, 0));
  char path[512];
  path_in(f, path, "step-00000001");
  g3_ckpt_index *ix = NULL;
  assert_ok(g3_ckpt_index_read(path, &ix));
  g3_ckpt_item items[2] = {item_of("optim/master/block.weight", G3_F32, 6, 10),
                           item_of("model/block.weight", G3_F32, 6, 10)};
  put(items[0].local, 0, 77);
  bool found[2] = {true, false};
  assert_ok(g3_ckpt_load(ix, f->stream, items, 2, "optim/", f->stage, found));
  assert_false(found[0]);
  assert_true(found[1]);
  assert_true(get(items[0].local, 0) == 77);
  expect_numbers(&items[1], 0);
  expect_failure(g3_ckpt_load(ix, f->stream, items, 2, NULL, f->stage, NULL), G3_EFORMAT,
                 "step-00000001/index.h5", "optim/master/block.weight");
  expect_failure(g3_ckpt_load(ix, f->stream, items, 2, "model/", f->stage, NULL), G3_EFORMAT,
                 "index.h5", "optim/master/block.weight");
  free_items(items, 2);
  g3_ckpt_index_free(ix);
}

static void another_shape_is_refused(void **state) {
  fixture *f = *state;
  assert_ok(save_small(f, 1, 0));
  char path[512];
  path_in(f, path, "step-00000001");
  g3_ckpt_index *ix = NULL;
  assert_ok(g3_ckpt_index_read(path, &ix));
  g3_ckpt_item items[2] = {item_of("model/block.weight", G3_F32, 10, 6),
                           item_of("model/block.weight", G3_F32, 0, 60)};
  expect_failure(g3_ckpt_load(ix, f->stream, &items[0], 1, NULL, f->stage, NULL), G3_EFORMAT,
                 "model/block.weight is 6 x 10", "wants 10 x 6");
  expect_failure(g3_ckpt_load(ix, f->stream, &items[1], 1, NULL, f->stage, NULL), G3_EFORMAT,
                 "model/block.weight is 6 x 10", "wants 60");
  free_items(items, 2);
  g3_ckpt_index_free(ix);
}

/* Items beyond a piece's limit are cut, along an inner dimension when the outermost has one row. */
static void big_items_are_cut(void **state) {
  fixture *f = *state;
  g3_ckpt_item item = {.name = "model/big"};
  const int64_t dims[3] = {1, 1025, 1 << 14};
  item.slice = g3_slice_whole(3, dims);
  const int64_t n = g3_slice_count(&item.slice);
  item.local = g3_tensor_1d(malloc((size_t)n * 2), G3_BF16, n);
  for (int64_t i = 0; i < n; i++)
    ((g3_bf16 *)item.local.data)[i] = (g3_bf16)(i * 40503 >> 8);
  assert_int_equal(g3_ckpt_stage_bytes(&item, 1), 64 << 20);
  const g3_ckpt_meta meta = {.step = 1};
  assert_ok(g3_ckpt_save(f->self, f->stream, f->dir, &meta, &item, 1, 0, f->stage));
  char path[512];
  path_in(f, path, "step-00000001");
  g3_ckpt_index *ix = NULL;
  assert_ok(g3_ckpt_index_read(path, &ix));
  assert_int_equal(ix->entry[0].npieces, 2);
  assert_int_equal(ix->entry[0].piece[1].slice.start[1], 1024);
  assert_string_equal(ix->entry[0].piece[1].dataset, "model/big@0,1024,0");
  g3_ckpt_item again = item;
  again.local = g3_tensor_1d(calloc((size_t)n, 2), G3_BF16, n);
  assert_ok(g3_ckpt_load(ix, f->stream, &again, 1, NULL, f->stage, NULL));
  assert_memory_equal(again.local.data, item.local.data, (size_t)n * 2);
  g3_ckpt_index_free(ix);
  free(item.local.data);
  free(again.local.data);
}

/* More attributes than HDF5 keeps in one block, each as long as it can be. */
static void many_attributes(void **state) {
  fixture *f = *state;
  enum { ATTRS = 300 };
  static g3_ckpt_attr attr[ATTRS];
  for (int i = 0; i < ATTRS; i++) {
    snprintf(attr[i].key, sizeof attr[i].key, "key.%d.", i * 7 % ATTRS);
    memset(attr[i].key + strlen(attr[i].key), 'k', sizeof attr[i].key - 1 - strlen(attr[i].key));
    memset(attr[i].value, 'a' + i % 26, sizeof attr[i].value - 1);
  }
  attr[5].value[0] = '\0';
  g3_ckpt_item item = item_of("x", G3_F32, 0, 1);
  const g3_ckpt_meta meta = {.step = 1, .attr = attr, .nattrs = ATTRS};
  assert_ok(g3_ckpt_save(f->self, f->stream, f->dir, &meta, &item, 1, 0, f->stage));
  char path[512];
  path_in(f, path, "step-00000001");
  g3_ckpt_index *ix = NULL;
  assert_ok(g3_ckpt_index_read(path, &ix));
  assert_int_equal(ix->meta.nattrs, ATTRS);
  for (int i = 0; i < ATTRS; i++)
    assert_string_equal(g3_ckpt_attr_get(&ix->meta, attr[i].key), attr[i].value);
  g3_ckpt_index_free(ix);
  const g3_ckpt_meta twice = {.step = 2, .attr = (g3_ckpt_attr[]){attr[0], attr[0]}, .nattrs = 2};
  expect_failure(g3_ckpt_save(f->self, f->stream, f->dir, &twice, &item, 1, 0, f->stage), G3_EIO,
                 "cannot write the attribute key.0.", "exists");
  free_items(&item, 1);
}

static void files_repeat(void **state) {
  fixture *f = *state;
  char out[256];
  assert_ok(save_small(f, 5, 0));
  assert_int_equal(shell(out, sizeof out, "cp -r '%s/step-00000005' '%s/copy'", f->dir, f->dir), 0);
  assert_ok(save_small(f, 5, 0));
  assert_int_equal(shell(out, sizeof out, "diff -r '%s/step-00000005' '%s/copy'", f->dir, f->dir),
                   0);
}

static void staging_is_bounded(void **state) {
  (void)state;
  g3_ckpt_item items[2] = {{.name = "a"}, {.name = "b"}};
  const int64_t small[1] = {100}, huge[3] = {1 << 20, 1 << 20, 1 << 10};
  items[0].slice = g3_slice_whole(1, small);
  items[1].slice = g3_slice_whole(3, huge);
  items[1].slice.count[0] = 1;
  assert_int_equal(g3_ckpt_stage_bytes(items, 0), 0);
  assert_int_equal(g3_ckpt_stage_bytes(items, 1), 400);
  assert_int_equal(g3_ckpt_stage_bytes(items, 2), 64 << 20);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(both_dtypes_come_back, setup, teardown),
      cmocka_unit_test_setup_teardown(bits_survive, setup, teardown),
      cmocka_unit_test_setup_teardown(dtypes_convert, setup, teardown),
      cmocka_unit_test_setup_teardown(narrowing_rounds_to_even, setup, teardown),
      cmocka_unit_test_setup_teardown(any_slice_loads, setup, teardown),
      cmocka_unit_test_setup_teardown(optional_tensors_may_be_absent, setup, teardown),
      cmocka_unit_test_setup_teardown(another_shape_is_refused, setup, teardown),
      cmocka_unit_test_setup_teardown(big_items_are_cut, setup, teardown),
      cmocka_unit_test_setup_teardown(many_attributes, setup, teardown),
      cmocka_unit_test_setup_teardown(files_repeat, setup, teardown),
      cmocka_unit_test(staging_is_bounded),
  };
  return cmocka_run_group_tests_name("ckpt_round", tests, NULL, NULL);
}
