#include "data/data.h"
#include "unit/data/files.h"

static void assert_file(const char *path, const void *expected, size_t n) {
  uint8_t bytes[4096];
  FILE *f = fopen(path, "rb");
  assert_non_null(f);
  assert_int_equal(fread(bytes, 1, sizeof bytes, f), n);
  assert_memory_equal(bytes, expected, n);
  fclose(f);
}

static void assert_absent(const char *path) {
  if (access(path, F_OK) == 0) fail_msg("%s is there", path);
}

/* The pair is, byte for byte, what the layout says; the newline belongs to its line. */
static void lines_become_documents(void **state) {
  (void)state;
  static const struct {
    const char *text;
    int n;
    int32_t lengths[6];
  } cases[] = {
      {"one\ntwo\n", 2, {4, 4}},
      {"\n\nfirst\n\nlast", 5, {1, 1, 6, 1, 4}},
      {"\n", 1, {1}},
      {"x", 1, {1}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const size_t n = strlen(cases[i].text);
    write_file("t.txt", cases[i].text, n);
    assert_int_equal(g3_tokenize_bytes("t.txt", "t"), G3_OK);
    assert_file("t.bin", cases[i].text, n);
    const idx_file idx = idx_of(1, 1, cases[i].n, cases[i].lengths);
    assert_file("t.idx", idx.bytes, idx.n);
    assert_absent("t.bin.tmp");
    assert_absent("t.idx.tmp");
    g3_tokens *t = NULL;
    assert_int_equal(g3_tokens_open("t.bin", 256, &t), G3_OK);
    assert_int_equal(g3_tokens_count(t), n);
    g3_tokens_close(t);
  }
}

static void a_refusal_leaves_nothing_behind(void **state) {
  (void)state;
  write_file("empty.txt", "", 0);
  assert_int_equal(g3_tokenize_bytes("empty.txt", "r"), G3_EFORMAT);
  assert_message("empty.txt: no tokens");
  assert_int_equal(g3_tokenize_bytes("missing.txt", "r"), G3_EIO);
  assert_message("missing.txt");
  assert_int_equal(g3_tokenize_bytes(".", "r"), G3_EIO);
  assert_message("is a directory");
  write_file("x.txt", "abc", 3);
  assert_int_equal(g3_tokenize_bytes("x.txt", "no/such/folder/r"), G3_EIO);
  assert_message("no/such/folder/r.bin.tmp: cannot be written");
  static const char *const names[] = {"r.bin", "r.idx", "r.bin.tmp", "r.idx.tmp"};
  for (size_t i = 0; i < 4; i++)
    assert_absent(names[i]);
}

/* The .idx cannot get its name, since a folder has it: no .bin may be left alone. */
static void a_failure_at_the_end_leaves_no_half_pair(void **state) {
  (void)state;
  write_file("x.txt", "abc", 3);
  assert_int_equal(mkdir("h.idx", 0700), 0);
  assert_int_equal(g3_tokenize_bytes("x.txt", "h"), G3_EIO);
  assert_message("h.idx");
  assert_absent("h.bin");
  assert_absent("h.bin.tmp");
  assert_absent("h.idx.tmp");
}

static void the_text_itself_is_never_overwritten(void **state) {
  (void)state;
  write_file("own.bin", "abc", 3);
  assert_int_equal(g3_tokenize_bytes("own.bin", "own"), G3_EINVAL);
  assert_message("own.bin: is the text itself");
  assert_file("own.bin", "abc", 3);
  assert_absent("own.idx");
}

static void a_new_pair_replaces_an_old_one(void **state) {
  (void)state;
  write_file("a.txt", "a\nb\n", 4);
  write_file("b.txt", "longer", 6);
  assert_int_equal(g3_tokenize_bytes("a.txt", "p"), G3_OK);
  assert_int_equal(g3_tokenize_bytes("b.txt", "p"), G3_OK);
  assert_file("p.bin", "longer", 6);
  const idx_file idx = idx_of(1, 1, 1, (const int32_t[]){6});
  assert_file("p.idx", idx.bytes, idx.n);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lines_become_documents),
      cmocka_unit_test(a_refusal_leaves_nothing_behind),
      cmocka_unit_test(a_failure_at_the_end_leaves_no_half_pair),
      cmocka_unit_test(the_text_itself_is_never_overwritten),
      cmocka_unit_test(a_new_pair_replaces_an_old_one),
  };
  return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
