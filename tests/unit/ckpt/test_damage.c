/* What a damaged checkpoint gets: a message that names the file and the reason, never numbers. */
#include "ckpt/index.h"
#include "ckpt/seal.h"
#include "fixture.h"
#include <hdf5.h>

/* HDF5 1.10 forgets memory when it meets broken structures; ours is still watched. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
  return "leak:libhdf5";
}

static char step_dir[512], shard[512], index_file[512];

static int setup_saved(void **state) {
  if (setup(state) != 0) return -1;
  fixture *f = *state;
  path_in(f, step_dir, "step-00000003");
  path_in(f, shard, "step-00000003/shard-00000.h5");
  path_in(f, index_file, "step-00000003/index.h5");
  return save_small(f, 3, 0) == G3_OK ? 0 : -1;
}

static g3_status read_index(void) {
  g3_ckpt_index *ix = NULL;
  const g3_status st = g3_ckpt_index_read(step_dir, &ix);
  if (st != G3_OK) assert_null(ix);
  g3_ckpt_index_free(ix);
  return st;
}

/* Loads and verifies everything; the two must agree. */
static g3_status load_all(fixture *f) {
  g3_ckpt_index *ix = NULL;
  const g3_status read = g3_ckpt_index_read(step_dir, &ix);
  if (read != G3_OK) return read;
  g3_ckpt_item items[SMALL_ITEMS];
  small_items(items);
  int64_t bytes = 0;
  const g3_status verified = g3_ckpt_verify(ix, f->stage, &bytes);
  const g3_status st = g3_ckpt_load(ix, f->stream, items, SMALL_ITEMS, NULL, f->stage, NULL);
  assert_int_equal(verified, st);
  free_items(items, SMALL_ITEMS);
  g3_ckpt_index_free(ix);
  return st;
}

static void missing_shard(void **state) {
  (void)state;
  assert_int_equal(unlink(shard), 0);
  expect_failure(read_index(), G3_EIO, "shard-00000.h5", "No such file");
}

static void truncated_shard(void **state) {
  (void)state;
  assert_int_equal(truncate(shard, size_of(shard) - 1), 0);
  expect_failure(read_index(), G3_EFORMAT, "shard-00000.h5", "cut short");
}

/* Cut after the index was read: HDF5 itself must notice. */
static void shard_truncated_later(void **state) {
  fixture *f = *state;
  g3_ckpt_index *ix = NULL;
  assert_ok(g3_ckpt_index_read(step_dir, &ix));
  assert_int_equal(truncate(shard, size_of(shard) / 2), 0);
  int64_t bytes = 0;
  expect_failure(g3_ckpt_verify(ix, f->stage, &bytes), G3_EFORMAT, "shard-00000.h5", "truncated");
  assert_int_equal(unlink(shard), 0);
  expect_failure(g3_ckpt_verify(ix, f->stage, &bytes), G3_EFORMAT, "shard-00000.h5",
                 "No such file");
  g3_ckpt_index_free(ix);
}

static void flipped_byte_in_data(void **state) {
  fixture *f = *state;
  hid_t file = H5Fopen(shard, H5F_ACC_RDONLY, H5P_DEFAULT);
  hid_t set = H5Dopen2(file, "model/block.weight@0,0", H5P_DEFAULT);
  const haddr_t at = H5Dget_offset(set);
  assert_true(at != HADDR_UNDEF);
  H5Dclose(set);
  H5Fclose(file);
  assert_ok(load_all(f));
  flip_byte(shard, (long)at + 17);
  expect_failure(load_all(f), G3_EFORMAT, "shard-00000.h5: model/block.weight@0,0", "damaged");
}

/* No byte of a shard can change so that other numbers are loaded without a word. */
static void any_byte_of_a_shard(void **state) {
  fixture *f = *state;
  const int64_t size = size_of(shard);
  int noticed = 0, harmless = 0;
  for (int64_t at = 0; at < size; at += 13) {
    flip_byte(shard, (long)at);
    g3_ckpt_index *ix = NULL;
    assert_ok(g3_ckpt_index_read(step_dir, &ix));
    g3_ckpt_item items[SMALL_ITEMS];
    small_items(items);
    for (int i = 0; i < SMALL_ITEMS; i++)
      memset(items[i].local.data, 0, g3_tensor_bytes(items[i].local));
    if (g3_ckpt_load(ix, f->stream, items, SMALL_ITEMS, NULL, f->stage, NULL) == G3_OK) {
      expect_numbers(&items[0], 0);
      expect_numbers(&items[1], 1);
      harmless++;
    } else {
      assert_non_null(strstr(g3_last_error(), "shard-00000.h5"));
      noticed++;
    }
    free_items(items, SMALL_ITEMS);
    g3_ckpt_index_free(ix);
    flip_byte(shard, (long)at);
  }
  assert_true(noticed > 20);
  assert_true(harmless > 20); /* bytes between HDF5's structures */
  assert_ok(load_all(f));
}

static void any_byte_of_the_index(void **state) {
  (void)state;
  const int64_t size = size_of(index_file);
  for (int64_t at = 0; at < size; at += at < 600 ? 1 : 97) {
    flip_byte(index_file, (long)at);
    expect_failure(read_index(), G3_EFORMAT, "step-00000003/index.h5", "");
    flip_byte(index_file, (long)at);
  }
  flip_byte(index_file, (long)size - 1);
  expect_failure(read_index(), G3_EFORMAT, "step-00000003/index.h5", "is damaged");
  flip_byte(index_file, (long)size - 1);
  assert_ok(read_index());
}

static void truncated_index(void **state) {
  (void)state;
  const int64_t sizes[] = {size_of(index_file) - 1, 600, 512};
  for (int i = 0; i < 3; i++) {
    assert_int_equal(truncate(index_file, sizes[i]), 0);
    expect_failure(read_index(), G3_EFORMAT, "index.h5", "damaged");
  }
  assert_int_equal(truncate(index_file, 100), 0);
  expect_failure(read_index(), G3_EFORMAT, "index.h5", "is not the index");
  assert_int_equal(truncate(index_file, 0), 0);
  expect_failure(read_index(), G3_EFORMAT, "index.h5", "is not the index");
}

static void missing_index(void **state) {
  (void)state;
  assert_int_equal(unlink(index_file), 0);
  expect_failure(read_index(), G3_EIO, "step-00000003/index.h5", "No such file");
}

static void not_hdf5(void **state) {
  (void)state;
  write_text(index_file, "this is a diary\n");
  expect_failure(read_index(), G3_EFORMAT, "index.h5", "is not the index of a gpt3d checkpoint");
  /* A right seal around something else. */
  char text[700];
  memset(text, 'x', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  write_text(index_file, text);
  assert_ok(g3_ckpt_seal(index_file));
  expect_failure(read_index(), G3_EFORMAT, "index.h5", "cannot be read as HDF5");
}

static void shard_of_another_kind(void **state) {
  fixture *f = *state;
  g3_ckpt_index *ix = NULL;
  assert_ok(g3_ckpt_index_read(step_dir, &ix));
  write_text(shard, "not a shard");
  int64_t bytes = 0;
  expect_failure(g3_ckpt_verify(ix, f->stage, &bytes), G3_EFORMAT, "cannot open the shard",
                 "shard-00000.h5");
  assert_non_null(strstr(g3_last_error(), "1 more of 2"));
  g3_ckpt_index_free(ix);
}

/* A whole shard of a checkpoint with other shapes under the right name. */
static void shard_of_another_checkpoint(void **state) {
  fixture *f = *state;
  g3_ckpt_index *ix = NULL;
  assert_ok(g3_ckpt_index_read(step_dir, &ix));
  g3_ckpt_item items[2] = {item_of("model/block.weight", G3_F32, 5, 10),
                           item_of("other", G3_F32, 0, 4)};
  const g3_ckpt_meta meta = {.step = 4};
  assert_ok(g3_ckpt_save(f->self, f->stream, f->dir, &meta, items, 2, 0, f->stage));
  char other[512];
  path_in(f, other, "step-00000004/shard-00000.h5");
  assert_int_equal(rename(other, shard), 0);
  g3_ckpt_item want[2];
  small_items(want);
  expect_failure(g3_ckpt_load(ix, f->stream, &want[0], 1, NULL, f->stage, NULL), G3_EFORMAT,
                 "shard-00000.h5: model/block.weight@0,0", "type and shape");
  expect_failure(g3_ckpt_load(ix, f->stream, &want[1], 1, NULL, f->stage, NULL), G3_EFORMAT,
                 "shard-00000.h5 does not hold optim/exp_avg/block.weight@0", "");
  free_items(want, 2);
  free_items(items, 2);
  g3_ckpt_index_free(ix);
}

/* Changes a root attribute, and seals the index again as its writer would. */
static void set_attribute(const char *name, int64_t value) {
  hid_t file = H5Fopen(index_file, H5F_ACC_RDWR, H5P_DEFAULT);
  assert_true(file >= 0);
  hid_t attr = H5Aopen(file, name, H5P_DEFAULT);
  assert_true(attr >= 0);
  assert_true(H5Awrite(attr, H5T_NATIVE_INT64, &value) >= 0);
  H5Aclose(attr);
  assert_true(H5Fclose(file) >= 0);
  assert_ok(g3_ckpt_seal(index_file));
}

static void another_format_version(void **state) {
  (void)state;
  set_attribute("format_version", 2);
  expect_failure(read_index(), G3_EFORMAT, "step-00000003/index.h5 has format version 2",
                 "reads version 1");
}

static void negative_step(void **state) {
  (void)state;
  set_attribute("step", -1);
  expect_failure(read_index(), G3_EFORMAT, "step-00000003/index.h5", "negative");
}

/* Deletes an object or a root attribute, and seals the index again. */
static void without(const char *object, const char *attribute, const char *part) {
  hid_t file = H5Fopen(index_file, H5F_ACC_RDWR, H5P_DEFAULT);
  assert_true(file >= 0);
  if (object) assert_true(H5Ldelete(file, object, H5P_DEFAULT) >= 0);
  if (attribute) assert_true(H5Adelete(file, attribute) >= 0);
  assert_true(H5Fclose(file) >= 0);
  assert_ok(g3_ckpt_seal(index_file));
  expect_failure(read_index(), G3_EFORMAT, "step-00000003/index.h5", part);
}

static void parts_of_the_index_missing(void **state) {
  (void)state;
  without("index/shards", NULL, "index/shards");
  without("index/pieces", NULL, "index/pieces");
  without("index/tensors", NULL, "index/tensors");
  without("config", NULL, "config");
  without(NULL, "applied_steps", "applied_steps");
  without(NULL, "format_version", "format_version");
}

/* Tables with a field too few, or that are no tables. */
static void tables_of_another_kind(void **state) {
  (void)state;
  hid_t file = H5Fopen(index_file, H5F_ACC_RDWR, H5P_DEFAULT);
  assert_true(H5Ldelete(file, "index/pieces", H5P_DEFAULT) >= 0);
  const hsize_t n = 2;
  hid_t space = H5Screate_simple(1, &n, NULL), row = H5Tcreate(H5T_COMPOUND, 8);
  H5Tinsert(row, "tensor", 0, H5T_STD_I32LE);
  H5Tinsert(row, "shard", 4, H5T_STD_I32LE);
  hid_t set = H5Dcreate2(file, "index/pieces", row, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  assert_true(set >= 0);
  H5Dclose(set);
  assert_true(H5Fclose(file) >= 0);
  assert_ok(g3_ckpt_seal(index_file));
  expect_failure(read_index(), G3_EFORMAT, "index/pieces", "no field dataset");

  file = H5Fopen(index_file, H5F_ACC_RDWR, H5P_DEFAULT);
  assert_true(H5Ldelete(file, "index/tensors", H5P_DEFAULT) >= 0);
  set = H5Dcreate2(file, "index/tensors", H5T_IEEE_F32LE, space, H5P_DEFAULT, H5P_DEFAULT,
                   H5P_DEFAULT);
  H5Dclose(set);
  H5Sclose(space);
  H5Tclose(row);
  assert_true(H5Fclose(file) >= 0);
  assert_ok(g3_ckpt_seal(index_file));
  expect_failure(read_index(), G3_EFORMAT, "index/tensors", "is not a table");
}

int main(void) {
#define SAVED(name) cmocka_unit_test_setup_teardown(name, setup_saved, teardown)
  const struct CMUnitTest tests[] = {
      SAVED(missing_shard),
      SAVED(truncated_shard),
      SAVED(shard_truncated_later),
      SAVED(flipped_byte_in_data),
      SAVED(any_byte_of_a_shard),
      SAVED(any_byte_of_the_index),
      SAVED(truncated_index),
      SAVED(missing_index),
      SAVED(not_hdf5),
      SAVED(shard_of_another_kind),
      SAVED(shard_of_another_checkpoint),
      SAVED(another_format_version),
      SAVED(negative_step),
      SAVED(parts_of_the_index_missing),
      SAVED(tables_of_another_kind),
  };
  return cmocka_run_group_tests_name("ckpt_damage", tests, NULL, NULL);
}
