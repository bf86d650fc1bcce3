#include "data/data.h"
#include "unit/data/files.h"

static void a_permutation_for_every_small_count(void **state) {
  (void)state;
  static bool seen[1000];
  for (int n = 1; n <= 1000; n++) {
    memset(seen, 0, sizeof seen);
    for (int i = 0; i < n; i++) {
      const int64_t to = g3_permute(i, n, 1234, n % 3);
      assert_in_range(to, 0, n - 1);
      assert_false(seen[to]);
      seen[to] = true;
    }
  }
}

static int by_value(const void *a, const void *b) {
  const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

/* Too many to list: the images of a window are in range and no two are the same. */
static void no_collisions_among_many(void **state) {
  (void)state;
  static const int64_t counts[] = {(1 << 16) + 1, (1LL << 32) - 1, (1LL << 32) + 1, 1LL << 45,
                                   INT64_MAX};
  enum { N = 20000 };
  static int64_t image[N];
  for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
    const int64_t n = counts[k], step = n / N;
    for (int i = 0; i < N; i++) {
      image[i] = g3_permute(i % 2 ? i : i * step, n, 99, 7);
      assert_true(image[i] >= 0 && image[i] < n);
    }
    qsort(image, N, sizeof *image, by_value);
    for (int i = 1; i < N; i++)
      assert_true(image[i - 1] < image[i]);
    /* Spread over the whole range, as drawn evenly. */
    assert_true(image[0] < n / 1000 && image[N - 1] > n - n / 1000);
    assert_true(image[N / 2] > n / 100 * 47 && image[N / 2] < n / 100 * 53);
  }
}

static void seed_and_epoch_change_the_order(void **state) {
  (void)state;
  int seed_same = 0, epoch_same = 0, identity = 0;
  for (int i = 0; i < 1000; i++) {
    const int64_t to = g3_permute(i, 1000, 5, 0);
    seed_same += to == g3_permute(i, 1000, 6, 0);
    epoch_same += to == g3_permute(i, 1000, 5, 1);
    identity += to == i;
  }
  assert_true(seed_same < 20 && epoch_same < 20 && identity < 20);
}

/* Over many epochs each place of a small set gets each sample about equally often. */
static void small_sets_are_shuffled_evenly(void **state) {
  (void)state;
  enum { N = 5, EPOCHS = 5000 };
  int count[N][N] = {{0}};
  for (int e = 0; e < EPOCHS; e++)
    for (int i = 0; i < N; i++)
      count[i][g3_permute(i, N, 42, e)]++;
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) /* 1000 expected, a standard deviation is 28 */
      assert_in_range(count[i][j], 860, 1140);
}

static void the_split_counts_windows(void **state) {
  (void)state;
  static const struct {
    int64_t tokens;
    double val;
    int64_t seq, train_samples, val_tokens, val_samples;
  } cases[] = {
      {33, 0, 32, 1, 0, 0},
      {64, 0, 32, 1, 0, 0},
      {65, 0, 32, 2, 0, 0},
      {161, 0, 32, 5, 0, 0},
      {40000, 0.004, 32, 1244, 160, 4},
      {1000, 0.29, 10, 70, 290, 28},
      {100, 0.5, 49, 1, 50, 1},
      {2, 0, 1, 1, 0, 0},
      {INT64_MAX / 2, 0, 1, INT64_MAX / 2 - 1, 0, 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    g3_split s;
    assert_int_equal(g3_split_make(cases[i].tokens, cases[i].val, cases[i].seq, 3, &s), G3_OK);
    assert_int_equal(s.seq, cases[i].seq);
    assert_int_equal(s.seed, 3);
    assert_int_equal(s.train_tokens + s.val_tokens, cases[i].tokens);
    assert_int_equal(s.train_samples, cases[i].train_samples);
    assert_int_equal(s.val_tokens, cases[i].val_tokens);
    assert_int_equal(s.val_samples, cases[i].val_samples);
  }
}

static void too_little_data_is_refused_with_the_numbers(void **state) {
  (void)state;
  g3_split s = {.seq = -1};
  assert_int_equal(g3_split_make(32, 0, 32, 0, &s), G3_EINVAL);
  assert_message("32 tokens, of which 32 are for training, but one sample needs seq + 1 = 32 + 1");
  assert_int_equal(g3_split_make(1, 0, 32, 0, &s), G3_EINVAL);
  assert_int_equal(g3_split_make(1000, 0.99, 32, 0, &s), G3_EINVAL);
  assert_message("or a smaller --val-split");
  assert_int_equal(g3_split_make(1000, 0.01, 32, 0, &s), G3_EINVAL);
  assert_message("leaves 10 of 1000 tokens for validation");
  assert_int_equal(g3_split_make(1000, 1e-9, 32, 0, &s), G3_EINVAL);
  assert_int_equal(s.seq, -1); /* untouched */
}

enum { TOKENS = 4000, SEQ = 16 };

/* Token i is i: a sample shows where it was cut. */
static g3_tokens *counting(void) {
  static uint8_t bin[2 * TOKENS];
  for (int i = 0; i < TOKENS; i++) {
    bin[2 * i] = (uint8_t)i;
    bin[2 * i + 1] = (uint8_t)(i >> 8);
  }
  write_file("c.bin", bin, sizeof bin);
  const idx_file idx = idx_of(8, 2, 1, (const int32_t[]){TOKENS});
  idx_write(&idx, "c.idx");
  g3_tokens *t = NULL;
  assert_int_equal(g3_tokens_open("c.bin", TOKENS, &t), G3_OK);
  return t;
}

static void an_epoch_holds_each_training_window_once(void **state) {
  (void)state;
  g3_tokens *t = counting();
  g3_split s;
  assert_int_equal(g3_split_make(TOKENS, 0.1, SEQ, 11, &s), G3_OK);
  int32_t first[2][TOKENS / SEQ], out[SEQ + 2];
  for (int epoch = 0; epoch < 2; epoch++) {
    bool seen[TOKENS / SEQ] = {false};
    for (int64_t i = 0; i < s.train_samples; i++) {
      out[SEQ + 1] = -3;
      assert_int_equal(g3_sample_train(t, &s, epoch * s.train_samples + i, out), G3_OK);
      assert_int_equal(out[SEQ + 1], -3);
      assert_int_equal(out[0] % SEQ, 0);
      for (int k = 1; k <= SEQ; k++)
        assert_int_equal(out[k], out[0] + k);
      assert_true(out[SEQ] < s.train_tokens); /* never a validation token */
      assert_false(seen[out[0] / SEQ]);
      seen[out[0] / SEQ] = true;
      first[epoch][i] = out[0];
    }
  }
  assert_memory_not_equal(first[0], first[1], (size_t)s.train_samples * sizeof(int32_t));
  g3_tokens_close(t);
}

static void validation_is_the_end_in_file_order(void **state) {
  (void)state;
  g3_tokens *t = counting();
  g3_split s;
  assert_int_equal(g3_split_make(TOKENS, 0.1, SEQ, 11, &s), G3_OK);
  assert_int_equal(s.val_samples, 24);
  for (int64_t i = 0; i < s.val_samples; i++) {
    int32_t out[SEQ + 1];
    assert_int_equal(g3_sample_val(t, &s, i, out), G3_OK);
    for (int k = 0; k <= SEQ; k++)
      assert_int_equal(out[k], 3600 + i * SEQ + k);
  }
  g3_tokens_close(t);
}

/* Sample numbers of a long run on little data: far beyond 32 bits. */
static void sample_numbers_beyond_32_bits(void **state) {
  (void)state;
  g3_tokens *t = counting();
  g3_split s;
  assert_int_equal(g3_split_make(200, 0, 4, 7, &s), G3_OK);
  int32_t out[5];
  assert_int_equal(g3_sample_train(t, &s, INT64_C(3072000000000), out), G3_OK);
  assert_in_range(out[4], 4, 199);
  assert_int_equal(g3_sample_train(t, &s, INT64_MAX, out), G3_OK);
  assert_in_range(out[4], 4, 199);
  g3_tokens_close(t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_permutation_for_every_small_count),
      cmocka_unit_test(no_collisions_among_many),
      cmocka_unit_test(seed_and_epoch_change_the_order),
      cmocka_unit_test(small_sets_are_shuffled_evenly),
      cmocka_unit_test(the_split_counts_windows),
      cmocka_unit_test(too_little_data_is_refused_with_the_numbers),
      cmocka_unit_test(an_epoch_holds_each_training_window_once),
      cmocka_unit_test(validation_is_the_end_in_file_order),
      cmocka_unit_test(sample_numbers_beyond_32_bits),
  };
  return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
