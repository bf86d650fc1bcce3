/* Indexes whose seal is right and whose contents are not. */
#include "ckpt/index.h"
#include "fixture.h"

/* A good index in memory: one tensor of 6 x 10 in two pieces, one of 7 in one. */
typedef struct {
  g3_ckpt_index ix;
  g3_ckpt_entry entry[2];
  g3_ckpt_piece piece[3];
  int64_t shard_bytes[1];
} sample;

static void fill_piece(g3_ckpt_piece *p, const char *name, const g3_slice *whole, int64_t start,
                       int64_t count) {
  snprintf(p->dataset, sizeof p->dataset, "%s", name);
  p->slice = *whole;
  p->slice.start[0] = start;
  p->slice.count[0] = count;
}

static void make_sample(sample *s, const char *path) {
  memset(s, 0, sizeof *s);
  const int64_t dims[2] = {6, 10}, dim[1] = {7};
  const g3_slice a = g3_slice_whole(2, dims), b = g3_slice_whole(1, dim);
  snprintf(s->ix.path, sizeof s->ix.path, "%s", path);
  s->ix.entry = s->entry;
  s->ix.nentries = 2;
  s->ix.shard_bytes = s->shard_bytes;
  s->ix.nshards = 1;
  s->shard_bytes[0] = 5;
  snprintf(s->entry[0].name, sizeof s->entry[0].name, "model/a");
  s->entry[0].ndim = 2;
  memcpy(s->entry[0].global, a.global, sizeof a.global);
  s->entry[0].piece = s->piece;
  s->entry[0].npieces = 2;
  snprintf(s->entry[1].name, sizeof s->entry[1].name, "model/b");
  s->entry[1].ndim = 1;
  memcpy(s->entry[1].global, b.global, sizeof b.global);
  s->entry[1].piece = s->piece + 2;
  s->entry[1].npieces = 1;
  fill_piece(&s->piece[0], "model/a@0,0", &a, 0, 4);
  fill_piece(&s->piece[1], "model/a@4,0", &a, 4, 2);
  fill_piece(&s->piece[2], "model/b@0", &b, 0, 7);
}

static void outside(sample *s) {
  s->piece[1].slice.count[0] = 3;
}
static void negative_start(sample *s) {
  s->piece[0].slice.start[1] = -1;
}
static void overflowing(sample *s) {
  s->piece[1].slice.start[0] = INT64_MAX;
}
static void empty_piece(sample *s) {
  s->piece[1].slice.count[1] = 0;
}
static void overlapping(sample *s) {
  s->piece[1].slice.start[0] = 3;
}
static void same_start(sample *s) {
  s->piece[1].slice.start[0] = 0;
}
static void hole(sample *s) {
  s->piece[0].slice.count[0] = 3;
}
static void piece_lost(sample *s) {
  s->entry[0].npieces = 1, s->piece[1] = s->piece[2], s->entry[1].piece = s->piece + 1;
}
static void no_such_shard(sample *s) {
  s->piece[2].shard = 1;
}
static void negative_shard(sample *s) {
  s->piece[2].shard = -1;
}
static void nameless(sample *s) {
  s->piece[2].dataset[0] = '\0';
}
static void out_of_order(sample *s) {
  const g3_ckpt_piece p = s->piece[0];
  s->piece[0] = s->piece[1];
  s->piece[1] = p;
}
static void same_name(sample *s) {
  snprintf(s->entry[1].name, sizeof s->entry[1].name, "model/a");
}
static void bad_name(sample *s) {
  snprintf(s->entry[0].name, sizeof s->entry[0].name, "model/../a");
}
static void bad_dtype(sample *s) {
  s->entry[1].dtype = G3_I32;
}
static void no_dims(sample *s) {
  s->entry[1].ndim = 0;
}
static void many_dims(sample *s) {
  s->entry[1].ndim = 5;
}
static void no_elements(sample *s) {
  s->entry[1].global[0] = 0;
}
static void impossible(sample *s) {
  s->entry[0].global[0] = s->entry[0].global[1] = INT64_MAX / 2;
}

static const struct {
  const char *what;
  void (*spoil)(sample *);
  const char *reason;
} cases[] = {
    {"outside", outside, "outside its tensor"},
    {"negative start", negative_start, "outside its tensor"},
    {"overflowing", overflowing, "outside its tensor"},
    {"empty piece", empty_piece, "outside its tensor"},
    {"overlapping", overlapping, "hold the same elements"},
    {"same start", same_start, "hold the same elements"},
    {"hole", hole, "hold 50 of its 60 elements"},
    {"piece lost", piece_lost, "hold 40 of its 60 elements"},
    {"no such shard", no_such_shard, "lies in shard 1"},
    {"negative shard", negative_shard, "lies in shard -1"},
    {"nameless", nameless, "has no name"},
    {"out of order", out_of_order, "not in order"},
    {"same name", same_name, "not in order"},
    {"bad name", bad_name, "cannot name a tensor"},
    {"bad dtype", bad_dtype, "unknown dtype"},
    {"no dims", no_dims, "0 dimensions"},
    {"many dims", many_dims, "5 dimensions"},
    {"no elements", no_elements, "impossible"},
    {"impossible", impossible, "impossible"},
};

static void the_sample_is_good(void **state) {
  (void)state;
  sample s;
  make_sample(&s, "x");
  assert_ok(g3_ckpt_index_check(&s.ix, "x"));
}

static void each_fault_is_named(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    sample s;
    make_sample(&s, "x");
    cases[i].spoil(&s);
    expect_failure(g3_ckpt_index_check(&s.ix, "here.h5"), G3_EFORMAT, "here.h5", cases[i].reason);
  }
}

/* The same through a file, where HDF5 lets such an index be written at all. */
static void faults_are_found_in_files(void **state) {
  fixture *f = *state;
  int written = 0;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    sample s;
    make_sample(&s, f->dir);
    cases[i].spoil(&s);
    if (s.entry[1].ndim > 4 || s.entry[1].ndim < 1 || g3_ckpt_index_write(&s.ix) != G3_OK) continue;
    written++;
    g3_ckpt_index *ix = NULL;
    expect_failure(g3_ckpt_index_read(f->dir, &ix), G3_EFORMAT, "/index.h5", cases[i].reason);
    assert_null(ix);
  }
  assert_true(written >= 8);
}

/* Sizes of shards are held against the files. */
static void shards_are_measured(void **state) {
  fixture *f = *state;
  sample s;
  make_sample(&s, f->dir);
  assert_ok(g3_ckpt_index_write(&s.ix));
  char path[512];
  path_in(f, path, "shard-00000.h5");
  g3_ckpt_index *ix = NULL;
  expect_failure(g3_ckpt_index_read(f->dir, &ix), G3_EIO, path, "1 shards");
  write_text(path, "1234");
  expect_failure(g3_ckpt_index_read(f->dir, &ix), G3_EFORMAT, path, "4 bytes");
  write_text(path, "12345");
  assert_ok(g3_ckpt_index_read(f->dir, &ix));
  assert_int_equal(ix->entry[1].piece->slice.count[0], 7);
  g3_ckpt_index_free(ix);
}

static void names(void **state) {
  (void)state;
  static const char *const good[] = {"a", "model/a.b", "model/..a/b-c_d", "indexes/a", "@"};
  static const char *const bad[] = {"",        "/a",         "a/",  "a//b",  ".",
                                    "model/.", "model/../b", "a%b", "index", "index/tensors",
                                    "config",  "config/x"};
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
    assert_true(g3_ckpt_name_ok(good[i], strlen(good[i]) + 1));
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    assert_false(g3_ckpt_name_ok(bad[i], strlen(bad[i]) + 1));
  assert_false(g3_ckpt_name_ok("abc", 3)); /* no end */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_sample_is_good),
      cmocka_unit_test(each_fault_is_named),
      cmocka_unit_test_setup_teardown(faults_are_found_in_files, setup, teardown),
      cmocka_unit_test_setup_teardown(shards_are_measured, setup, teardown),
      cmocka_unit_test(names),
  };
  return cmocka_run_group_tests_name("ckpt_index", tests, NULL, NULL);
}
