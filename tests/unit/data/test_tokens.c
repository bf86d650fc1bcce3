#include "data/data.h"
#include "unit/data/files.h"

static void text_is_read_as_bytes(void **state) {
  (void)state;
  const uint8_t bytes[] = {'a', 0, 255, '\n', 'z'};
  write_file("t.txt", bytes, sizeof bytes);
  g3_tokens *t = NULL;
  assert_int_equal(g3_tokens_open("t.txt", 256, &t), G3_OK);
  assert_int_equal(g3_tokens_count(t), 5);
  int32_t out[5] = {0};
  assert_int_equal(g3_tokens_read(t, 0, 5, out), G3_OK);
  for (int i = 0; i < 5; i++)
    assert_int_equal(out[i], bytes[i]);
  assert_int_equal(g3_tokens_read(t, 3, 2, out), G3_OK);
  assert_int_equal(out[0], '\n');
  assert_int_equal(out[1], 'z');
  assert_int_equal(g3_tokens_read(t, 5, 0, out), G3_OK);
  g3_tokens_close(t);
}

static void an_id_beyond_the_vocabulary_is_named_with_its_position(void **state) {
  (void)state;
  write_file("t.txt", "aaab", 4);
  g3_tokens *t = NULL;
  assert_int_equal(g3_tokens_open("t.txt", 'b', &t), G3_OK);
  int32_t out[4] = {0};
  assert_int_equal(g3_tokens_read(t, 0, 3, out), G3_OK);
  assert_int_equal(g3_tokens_read(t, 1, 3, out), G3_EFORMAT);
  assert_message("t.txt: token 3 is id 98, outside a vocabulary of 98");
  g3_tokens_close(t);
}

static void files_that_are_no_data_are_refused(void **state) {
  (void)state;
  assert_int_equal(mkdir("folder", 0700), 0);
  assert_int_equal(mkfifo("pipe", 0600), 0);
  write_file("empty.txt", "", 0);
  write_file("lonely.bin", "abc", 3);
  write_file("half.idx", "abc", 3);
  static const struct {
    const char *path;
    g3_status status;
    const char *message;
  } cases[] = {
      {"missing.txt", G3_EIO, "missing.txt: cannot be opened: No such file"},
      {"data/kjv.txt", G3_EIO, "tools/corpus"},
      {"folder", G3_EIO, "folder: is a directory"},
      {"pipe", G3_EIO, "pipe: is not a regular file"},
      {"empty.txt", G3_EFORMAT, "empty.txt: no tokens"},
      {"lonely.bin", G3_EIO, "lonely.idx: cannot be opened"},
      {"half.idx", G3_EIO, "half.bin: cannot be opened"},
      {"", G3_EIO, "No such file"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    g3_tokens *t = NULL;
    assert_int_equal(g3_tokens_open(cases[i].path, 256, &t), cases[i].status);
    assert_null(t);
    assert_message(cases[i].message);
  }
}

/* Tokens 0, 1, 2, ... (wrapping at `top`) stored as a type, opened by either name. */
static void each_type(void **state) {
  (void)state;
  static const struct {
    int code, bytes, top;
  } types[] = {{1, 1, 256}, {2, 1, 128}, {3, 2, 300}, {4, 4, 70000}, {5, 8, 70000}, {8, 2, 65536}};
  enum { N = 80000 };
  uint8_t *bin = malloc(8 * N);
  int32_t *out = malloc(sizeof(int32_t) * N);
  assert_true(bin && out);
  for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
    const int size = types[k].bytes, top = types[k].top;
    for (int i = 0; i < N; i++)
      for (int b = 0; b < size; b++)
        bin[i * size + b] = (uint8_t)((uint64_t)(i % top) >> (8 * b));
    write_file("d.bin", bin, (size_t)size * N);
    const idx_file idx = idx_of(types[k].code, size, 2, (const int32_t[]){N - 7, 7});
    idx_write(&idx, "d.idx");
    g3_tokens *t = NULL;
    assert_int_equal(g3_tokens_open(k % 2 ? "d.bin" : "d.idx", top, &t), G3_OK);
    assert_int_equal(g3_tokens_count(t), N);
    assert_int_equal(g3_tokens_read(t, 0, N, out), G3_OK);
    for (int i = 0; i < N; i++)
      assert_int_equal(out[i], i % top);
    g3_tokens_close(t);
  }
  free(bin);
  free(out);
}

static void negative_and_huge_ids_are_outside_any_vocabulary(void **state) {
  (void)state;
  static const struct {
    int code, bytes;
    uint8_t token[8];
    const char *message;
  } cases[] = {
      {2, 1, {0xFF}, "token 0 is id -1"},
      {4, 4, {0, 0, 0, 0x80}, "token 0 is id -2147483648"},
      {5, 8, {0, 0, 0, 0, 1}, "token 0 is id 4294967296"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    write_file("d.bin", cases[i].token, (size_t)cases[i].bytes);
    const idx_file idx = idx_of(cases[i].code, cases[i].bytes, 1, (const int32_t[]){1});
    idx_write(&idx, "d.idx");
    g3_tokens *t = NULL;
    int32_t out = 5;
    assert_int_equal(g3_tokens_open("d.bin", INT32_MAX, &t), G3_OK);
    assert_int_equal(g3_tokens_read(t, 0, 1, &out), G3_EFORMAT);
    assert_message(cases[i].message);
    g3_tokens_close(t);
  }
}

/* Sequences may lie anywhere in the file, with gaps and in any order; empty ones count for nothing.
 */
static void scattered_sequences_read_in_the_order_of_the_header(void **state) {
  (void)state;
  write_file("d.bin", "0123456789", 10);
  static const int32_t lengths[] = {0, 3, 0, 2, 2, 0, 1, 0};
  static const int64_t offsets[] = {10, 7, 3, 0, 2, 0, 9, 10};
  idx_file idx = idx_head(1, 8, 2);
  for (int i = 0; i < 8; i++)
    idx_put(&idx, 4, lengths[i]);
  for (int i = 0; i < 8; i++)
    idx_put(&idx, 8, offsets[i]);
  idx_put(&idx, 8, 0);
  idx_put(&idx, 8, 8);
  idx_write(&idx, "d.idx");
  g3_tokens *t = NULL;
  assert_int_equal(g3_tokens_open("d.bin", 256, &t), G3_OK);
  static const char expected[] = "78901239";
  assert_int_equal(g3_tokens_count(t), 8);
  for (int start = 0; start <= 8; start++)
    for (int n = 0; start + n <= 8; n++) {
      int32_t out[9] = {0};
      out[n] = -5;
      assert_int_equal(g3_tokens_read(t, start, n, out), G3_OK);
      for (int i = 0; i < n; i++)
        assert_int_equal(out[i], expected[start + i]);
      assert_int_equal(out[n], -5);
    }
  g3_tokens_close(t);
}

static void empty_sequences_do_not_change_the_tokens(void **state) {
  (void)state;
  uint8_t bin[180];
  for (int i = 0; i < 90; i++) {
    bin[2 * i] = (uint8_t)(i % 251);
    bin[2 * i + 1] = 0;
  }
  write_file("d.bin", bin, sizeof bin);
  const idx_file with = idx_of(8, 2, 7, (const int32_t[]){0, 40, 0, 0, 0, 50, 0});
  idx_write(&with, "d.idx");
  g3_tokens *t = NULL;
  assert_int_equal(g3_tokens_open("d.bin", 257, &t), G3_OK);
  assert_int_equal(g3_tokens_count(t), 90);
  int32_t out[90];
  assert_int_equal(g3_tokens_read(t, 0, 90, out), G3_OK);
  for (int i = 0; i < 90; i++)
    assert_int_equal(out[i], i);
  g3_tokens_close(t);
}

static void expect_place(const g3_tokens *t, int64_t token, int64_t byte, int64_t document,
                         int64_t inside) {
  g3_token_place p;
  assert_int_equal(g3_tokens_place(t, token, &p), G3_OK);
  assert_int_equal(p.byte, byte);
  assert_int_equal(p.document, document);
  assert_int_equal(p.inside, inside);
}

static void a_token_s_place(void **state) {
  (void)state;
  g3_tokens *t;
  write_file("text", "ab\n\ncd", 6);
  assert_int_equal(g3_tokens_open("text", 256, &t), G3_OK);
  expect_place(t, 0, 0, 0, 0);
  expect_place(t, 2, 2, 0, 2); /* a newline belongs to its line */
  expect_place(t, 3, 3, 1, 0);
  expect_place(t, 5, 5, 2, 1);
  g3_tokens_close(t);

  /* documents of 0, 2 + 3, 0 and 4 tokens of two bytes; the last lies first in the file */
  static const int32_t lengths[] = {2, 3, 0, 4};
  static const int64_t offsets[] = {8, 12, 18, 0}, docs[] = {0, 0, 2, 3, 4};
  idx_file idx = idx_head(8, 4, 5);
  for (int i = 0; i < 4; i++)
    idx_put(&idx, 4, lengths[i]);
  for (int i = 0; i < 4; i++)
    idx_put(&idx, 8, offsets[i]);
  for (int i = 0; i < 5; i++)
    idx_put(&idx, 8, docs[i]);
  idx_write(&idx, "p.idx");
  write_file("p.bin", "\1\0\2\0\3\0\4\0\5\0\6\0\7\0\10\0\11\0", 18);
  assert_int_equal(g3_tokens_open("p.bin", 256, &t), G3_OK);
  expect_place(t, 0, 8, 1, 0);
  expect_place(t, 1, 10, 1, 1);
  expect_place(t, 2, 12, 1, 2);
  expect_place(t, 4, 16, 1, 4);
  expect_place(t, 5, 0, 3, 0);
  expect_place(t, 8, 6, 3, 3);
  g3_token_place untouched = {7, 7, 7};
  assert_int_equal(unlink("p.idx"), 0);
  assert_int_equal(g3_tokens_place(t, 0, &untouched), G3_EIO);
  assert_int_equal(untouched.byte, 7);
  g3_tokens_close(t);

  assert_int_equal(g3_tokens_open("mock", 256, &t), G3_OK);
  expect_place(t, 12, -1, -1, -1);
  assert_string_equal(g3_tokens_file(t), "mock");
  g3_tokens_close(t);
}

static void the_generated_stream_is_a_function_of_position(void **state) {
  (void)state;
  enum { N = 3000 };
  static int32_t whole[N];
  g3_tokens *t = NULL;
  assert_int_equal(g3_tokens_open("mock", 50257, &t), G3_OK);
  assert_int_equal(g3_tokens_count(t), 1 << 24);
  assert_int_equal(g3_tokens_read(t, 0, N, whole), G3_OK);
  for (int start = 0; start < N; start += 17) {
    int32_t part[17];
    const int n = start + 17 <= N ? 17 : N - start;
    assert_int_equal(g3_tokens_read(t, start, n, part), G3_OK);
    assert_memory_equal(part, whole + start, (size_t)n * sizeof *part);
  }
  int32_t last;
  assert_int_equal(g3_tokens_read(t, (1 << 24) - 1, 1, &last), G3_OK);
  assert_in_range(last, 0, 50256);
  g3_tokens_close(t);
}

/* Three of four tokens follow from the one before: the commonest successor of a token comes about
 * that often, and no other does. */
static void the_generated_stream_can_be_learned(void **state) {
  (void)state;
  enum { VOCAB = 16, N = 40000 };
  static int32_t ids[N];
  static int pair[VOCAB][VOCAB], seen[VOCAB];
  g3_tokens *t = NULL;
  assert_int_equal(g3_tokens_open("mock", VOCAB, &t), G3_OK);
  assert_int_equal(g3_tokens_read(t, 0, N, ids), G3_OK);
  for (int i = 0; i + 1 < N; i++) {
    assert_in_range(ids[i], 0, VOCAB - 1);
    seen[ids[i]]++;
    pair[ids[i]][ids[i + 1]]++;
  }
  int predicted = 0;
  for (int a = 0; a < VOCAB; a++) {
    int best = 0;
    for (int b = 0; b < VOCAB; b++)
      if (pair[a][b] > best) best = pair[a][b];
    predicted += best;
    assert_true(seen[a] > 100);
  }
  assert_true(predicted > 0.72 * N && predicted < 0.85 * N);
  g3_tokens_close(t);
}

static void a_vocabulary_of_one_works(void **state) {
  (void)state;
  g3_tokens *t = NULL;
  int32_t out[8];
  assert_int_equal(g3_tokens_open("mock", 1, &t), G3_OK);
  assert_int_equal(g3_tokens_read(t, 100, 8, out), G3_OK);
  for (int i = 0; i < 8; i++)
    assert_int_equal(out[i], 0);
  g3_tokens_close(t);
  g3_tokens_close(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(text_is_read_as_bytes),
      cmocka_unit_test(an_id_beyond_the_vocabulary_is_named_with_its_position),
      cmocka_unit_test(files_that_are_no_data_are_refused),
      cmocka_unit_test(each_type),
      cmocka_unit_test(negative_and_huge_ids_are_outside_any_vocabulary),
      cmocka_unit_test(scattered_sequences_read_in_the_order_of_the_header),
      cmocka_unit_test(empty_sequences_do_not_change_the_tokens),
      cmocka_unit_test(a_token_s_place),
      cmocka_unit_test(the_generated_stream_is_a_function_of_position),
      cmocka_unit_test(the_generated_stream_can_be_learned),
      cmocka_unit_test(a_vocabulary_of_one_works),
  };
  return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
