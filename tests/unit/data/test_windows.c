/* A whole file in windows of seq + 1 tokens that lie seq apart. */
#include "data/data.h"
#include "unit/data/files.h"

static void counts(void **state) {
  (void)state;
  static const struct {
    int64_t tokens, seq, windows;
  } cases[] = {{0, 4, 0},  {1, 4, 0},
               {2, 4, 1},  {5, 4, 1},
               {6, 4, 2},  {9, 4, 2},
               {10, 4, 3}, {2, 1, 1},
               {3, 1, 2},  {INT64_MAX, 1, INT64_MAX - 1},
               {1, 1, 0},  {2, INT64_MAX - 1, 1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_int_equal(g3_file_windows(cases[i].tokens, cases[i].seq), cases[i].windows);
}

/* Every token but the first is a target once, whatever the length; the rest is no token. */
static void every_token_is_a_target_once(void **state) {
  (void)state;
  enum { MOST = 40 };
  uint8_t bytes[MOST];
  for (int i = 0; i < MOST; i++)
    bytes[i] = (uint8_t)(i * 7 % 251);
  for (int n = 2; n <= MOST; n++) {
    write_file("text", bytes, (size_t)n);
    g3_tokens *t;
    assert_int_equal(g3_tokens_open("text", 256, &t), G3_OK);
    for (int64_t seq = 1; seq < MOST + 3; seq++) {
      const g3_split s = {.seq = seq};
      int32_t window[MOST + 3];
      int64_t next = 1;
      for (int64_t w = 0; w < g3_file_windows(n, seq); w++) {
        assert_int_equal(g3_sample_file(t, &s, w, window), G3_OK);
        assert_int_equal(window[0], bytes[w * seq]);
        for (int64_t i = 1; i <= seq; i++) {
          if (next < n)
            assert_int_equal(window[i], bytes[next++]);
          else
            assert_int_equal(window[i], -1);
        }
      }
      assert_int_equal(next, n);
    }
    g3_tokens_close(t);
  }
}

static void a_token_outside_the_vocabulary_is_named(void **state) {
  (void)state;
  const g3_split s = {.seq = 4};
  int32_t window[5];
  g3_tokens *t;
  write_file("text", "\1\2\3\4\5\6\77", 7);
  assert_int_equal(g3_tokens_open("text", 32, &t), G3_OK);
  assert_int_equal(g3_sample_file(t, &s, 0, window), G3_OK);
  assert_int_equal(g3_sample_file(t, &s, 1, window), G3_EFORMAT);
  assert_message("token 6 is id 63");
  g3_tokens_close(t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(counts),
      cmocka_unit_test(every_token_is_a_target_once),
      cmocka_unit_test(a_token_outside_the_vocabulary_is_named),
  };
  return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
