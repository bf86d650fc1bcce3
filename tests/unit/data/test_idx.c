#include "data/data.h"
#include "unit/data/files.h"

/* A sound pair: 10 bytes in sequences of 4, 0 and 6. Each case spoils one thing. */
static idx_file sound(void) {
  return idx_of(1, 1, 3, (const int32_t[]){4, 0, 6});
}

enum { LENGTHS = 34, OFFSETS = LENGTHS + 3 * 4, DOCS = OFFSETS + 3 * 8 };

static void overwrite(idx_file *f, size_t at, int size, int64_t value) {
  const size_t n = f->n;
  f->n = at;
  idx_put(f, size, value);
  f->n = n;
}

static void open_pair(const idx_file *idx, g3_status expected) {
  g3_tokens *t = NULL;
  write_file("d.bin", "abcdefghij", 10);
  idx_write(idx, "d.idx");
  const g3_status st = g3_tokens_open("d.bin", 256, &t);
  if (st != expected) fail_msg("status %d: %s", st, st == G3_OK ? "accepted" : g3_last_error());
  if (st != G3_OK) assert_null(t);
  g3_tokens_close(t);
}

static void the_sound_one_is_read(void **state) {
  (void)state;
  const idx_file f = sound();
  open_pair(&f, G3_OK);
}

static void one_wrong_number_is_refused(void **state) {
  (void)state;
  static const struct {
    size_t at;
    int size;
    int64_t value;
    const char *message;
  } cases[] = {
      {0, 1, 'X', "d.idx: bad magic"},
      {8, 1, 1, "bad magic"},
      {9, 8, 2, "version 2"},
      {9, 8, 0, "version 0"},
      {17, 1, 0, "token type code 0"},
      {17, 1, 6, "token type code 6"},
      {17, 1, 7, "token type code 7"},
      {17, 1, 9, "token type code 9"},
      {17, 1, 255, "token type code 255"},
      {17, 1, 4, "past the end"},
      {18, 8, 4, "truncated"},
      {18, 8, 2, "too long"},
      {18, 8, -1, "truncated"},
      {18, 8, INT64_MAX, "truncated"},
      {18, 8, INT64_MAX / 6, "truncated"},
      {18, 8, INT64_MIN, "truncated"},
      {26, 8, 5, "truncated"},
      {26, 8, 3, "too long"},
      {26, 8, -1, "truncated"},
      {26, 8, INT64_MAX / 4, "truncated"},
      {LENGTHS, 4, -1, "sequence 0 has the length -1"},
      {LENGTHS, 4, 11, "sequence 0 (offset 0, 11 tokens of 1 bytes) goes past the end"},
      {LENGTHS + 4, 4, INT32_MIN, "sequence 1 has the length -2147483648"},
      {LENGTHS + 8, 4, INT32_MAX, "past the end"},
      {LENGTHS + 8, 4, 7, "sequence 2 (offset 4, 7 tokens of 1 bytes) goes past the end"},
      {OFFSETS, 8, -1, "sequence 0 (offset -1"},
      {OFFSETS, 8, 7, "past the end"},
      {OFFSETS + 8, 8, 11, "sequence 1 (offset 11, 0 tokens"},
      {OFFSETS + 16, 8, INT64_MAX, "past the end"},
      {OFFSETS + 16, 8, INT64_MIN, "past the end"},
      {DOCS, 8, 1, "document index 0 is 1"},
      {DOCS + 8, 8, -1, "document index 1 is -1"},
      {DOCS + 8, 8, 3, "document index 2 is 2"},
      {DOCS + 16, 8, 4, "document index 2 is 4"},
      {DOCS + 24, 8, 2, "the last document ends at sequence 2 of 3"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    idx_file f = sound();
    overwrite(&f, cases[i].at, cases[i].size, cases[i].value);
    open_pair(&f, G3_EFORMAT);
    assert_message(cases[i].message);
  }
}

static void every_truncation_is_refused(void **state) {
  (void)state;
  const idx_file f = sound();
  for (size_t n = 0; n < f.n; n++) {
    idx_file cut = f;
    cut.n = n;
    open_pair(&cut, G3_EFORMAT);
    assert_message("truncated");
  }
}

static void one_byte_a_sequence_may_follow_and_nothing_else(void **state) {
  (void)state;
  idx_file f = sound();
  for (int extra = 1; extra <= 4; extra++) {
    idx_put(&f, 1, 0);
    open_pair(&f, extra == 3 ? G3_OK : G3_EFORMAT);
  }
}

static void no_tokens_is_a_reason_of_its_own(void **state) {
  (void)state;
  const idx_file empty = idx_of(8, 2, 3, (const int32_t[]){0, 0, 0});
  open_pair(&empty, G3_EFORMAT);
  assert_message("no tokens");
  const idx_file none = idx_of(8, 2, 0, NULL);
  open_pair(&none, G3_EFORMAT);
  assert_message("no tokens");
}

static void an_empty_bin_with_empty_sequences_has_no_tokens(void **state) {
  (void)state;
  const idx_file empty = idx_of(8, 2, 2, (const int32_t[]){0, 0});
  write_file("e.bin", "", 0);
  idx_write(&empty, "e.idx");
  g3_tokens *t = NULL;
  assert_int_equal(g3_tokens_open("e.idx", 256, &t), G3_EFORMAT);
  assert_message("no tokens");
  assert_null(t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_sound_one_is_read),
      cmocka_unit_test(one_wrong_number_is_refused),
      cmocka_unit_test(every_truncation_is_refused),
      cmocka_unit_test(one_byte_a_sequence_may_follow_and_nothing_else),
      cmocka_unit_test(no_tokens_is_a_reason_of_its_own),
      cmocka_unit_test(an_empty_bin_with_empty_sequences_has_no_tokens),
  };
  return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
