#include "parallel/slice.h"
#include "util/array.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
/* after those, which it needs */
#include <cmocka.h>

/* A small generator, so that failures repeat. */
static uint64_t state;

static int64_t below(int64_t n) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (int64_t)((state >> 33) % (uint64_t)n);
}

static g3_slice random_slice(int most) {
  g3_slice s;
  memset(&s, 0, sizeof s);
  s.ndim = 1 + (int)below(G3_MAX_DIMS);
  for (int d = 0; d < s.ndim; d++) {
    s.global[d] = 1 + below(most);
    s.start[d] = below(s.global[d]);
    s.count[d] = 1 + below(s.global[d] - s.start[d]);
  }
  return s;
}

/* Number in the whole tensor of element `i` of a slice, both row-major. */
static int64_t global_number(const g3_slice *s, int64_t i) {
  int64_t at[G3_MAX_DIMS], n = 0;
  for (int d = s->ndim - 1; d >= 0; d--) {
    at[d] = s->start[d] + i % s->count[d];
    i /= s->count[d];
  }
  for (int d = 0; d < s->ndim; d++)
    n = n * s->global[d] + at[d];
  return n;
}

static void check_range(const g3_slice *s, int64_t start, int64_t count) {
  g3_slice piece[G3_SLICES_OF_RANGE];
  const int n = g3_slice_range(s, start, count, piece);
  assert_in_range(n, count > 0, 2 * s->ndim - 1);
  int64_t pos = start;
  for (int i = 0; i < n; i++) {
    assert_true(g3_slice_valid(&piece[i]));
    assert_true(g3_slice_count(&piece[i]) > 0);
    for (int64_t e = 0; e < g3_slice_count(&piece[i]); e++, pos++)
      assert_int_equal(global_number(&piece[i], e), global_number(s, pos));
  }
  assert_int_equal(pos, start + count);
}

static void range_tiles_exactly(void **unused) {
  (void)unused;
  state = 1;
  for (int trial = 0; trial < 20000; trial++) {
    const g3_slice s = random_slice(6);
    const int64_t all = g3_slice_count(&s), start = below(all + 1);
    check_range(&s, start, below(all - start + 1));
  }
}

static void every_range_of_one_slice(void **unused) {
  (void)unused;
  g3_slice s = g3_slice_whole(4, (const int64_t[]){3, 4, 3, 4});
  for (int d = 0; d < 4; d++) {
    s.start[d] = 1;
    s.count[d]--;
  }
  const int64_t all = g3_slice_count(&s);
  for (int64_t start = 0; start <= all; start++)
    for (int64_t count = 0; count <= all - start; count++)
      check_range(&s, start, count);
}

static void range_needs_no_more_pieces(void **unused) {
  (void)unused;
  g3_slice piece[G3_SLICES_OF_RANGE];
  const g3_slice s = g3_slice_whole(3, (const int64_t[]){4, 4, 4});
  assert_int_equal(g3_slice_range(&s, 0, 64, piece), 1);
  assert_int_equal(g3_slice_range(&s, 16, 32, piece), 1);
  assert_int_equal(g3_slice_range(&s, 21, 0, piece), 0);
  assert_int_equal(g3_slice_range(&s, 1, 62, piece), 5); /* row, plane, middle, plane, row */
  const int64_t elements[] = {3, 12, 32, 12, 3};
  for (int i = 0; i < 5; i++)
    assert_int_equal(g3_slice_count(&piece[i]), elements[i]);
}

static void range_of_a_large_slice(void **unused) {
  (void)unused;
  g3_slice piece[G3_SLICES_OF_RANGE];
  const int64_t rows = INT64_C(1) << 40, columns = INT64_C(1) << 20;
  const g3_slice s = g3_slice_whole(2, (const int64_t[]){rows, columns});
  const int n = g3_slice_range(&s, columns * 5 + 7, columns * (rows - 6), piece);
  assert_int_equal(n, 3);
  assert_int_equal(piece[0].start[0], 5);
  assert_int_equal(piece[0].start[1], 7);
  assert_int_equal(piece[1].start[0], 6);
  assert_int_equal(piece[1].count[0], rows - 7);
  assert_int_equal(piece[2].start[0], rows - 1);
  assert_int_equal(piece[2].count[1], 7);
}

/* The number of each element of a slice, as a dense buffer. Freed by the caller. */
static int32_t *numbers(const g3_slice *s) {
  int32_t *data = malloc((size_t)g3_slice_count(s) * sizeof *data);
  assert_non_null(data);
  for (int64_t i = 0; i < g3_slice_count(s); i++)
    data[i] = (int32_t)global_number(s, i);
  return data;
}

static bool holds(const g3_slice *s, const g3_slice *whole_of, int64_t number) {
  for (int d = whole_of->ndim - 1; d >= 0; d--) {
    const int64_t at = number % whole_of->global[d];
    number /= whole_of->global[d];
    if (at < s->start[d] || at >= s->start[d] + s->count[d]) return false;
  }
  return true;
}

static void copy_moves_the_common_part_only(void **unused) {
  (void)unused;
  state = 2;
  for (int trial = 0; trial < 3000; trial++) {
    const g3_slice from = random_slice(6);
    g3_slice to = from;
    for (int d = 0; d < to.ndim; d++) {
      to.start[d] = below(to.global[d]);
      to.count[d] = 1 + below(to.global[d] - to.start[d]);
    }
    int32_t *source = numbers(&from), *target = numbers(&to), *want = numbers(&to);
    int64_t common = 0;
    for (int64_t i = 0; i < g3_slice_count(&to); i++) {
      const bool shared = holds(&from, &to, want[i]);
      common += shared;
      target[i] = -1;
      if (!shared) want[i] = -1;
    }
    assert_int_equal(g3_slice_copy(&to, target, &from, source, sizeof *source), common);
    assert_memory_equal(target, want, (size_t)g3_slice_count(&to) * sizeof *want);
    g3_slice both;
    assert_int_equal(g3_slice_meet(&to, &from, &both), common > 0);
    if (common > 0) assert_int_equal(g3_slice_count(&both), common);
    free(source), free(target), free(want);
  }
}

static void copy_takes_any_element_size(void **unused) {
  (void)unused;
  const g3_slice whole = g3_slice_whole(2, (const int64_t[]){2, 3});
  const g3_slice column = g3_slice_cut(&whole, 1, 1, 2);
  const char from[] = "aaabbbcccdddeeefff";
  char to[] = "......";
  assert_int_equal(g3_slice_copy(&column, to, &whole, from, 3), 2);
  assert_string_equal(to, "cccfff");
}

static void cuts_tile_the_dimension(void **unused) {
  (void)unused;
  state = 3;
  for (int trial = 0; trial < 2000; trial++) {
    const g3_slice s = random_slice(9);
    const int d = (int)below(s.ndim);
    const int64_t part = 1 + below(5);
    int64_t next = s.start[d];
    for (int64_t i = 0; i < 12; i++) {
      const g3_slice cut = g3_slice_cut(&s, d, part, i);
      assert_true(g3_slice_valid(&cut));
      assert_int_equal(cut.start[d], next);
      assert_true(cut.count[d] <= part);
      next += cut.count[d];
      for (int other = 0; other < s.ndim; other++)
        if (other != d) assert_int_equal(cut.count[other], s.count[other]);
    }
    assert_int_equal(next, s.start[d] + s.count[d]);
  }
  const g3_slice s = g3_slice_whole(1, (const int64_t[]){10});
  const g3_slice far = g3_slice_cut(&s, 0, INT64_MAX, INT64_MAX);
  assert_int_equal(far.start[0], 10);
  assert_int_equal(far.count[0], 0);
}

static void meet_leaves_its_output_alone_when_empty(void **unused) {
  (void)unused;
  const g3_slice whole = g3_slice_whole(2, (const int64_t[]){4, 4});
  const g3_slice left = g3_slice_cut(&whole, 1, 2, 0), right = g3_slice_cut(&whole, 1, 2, 1);
  g3_slice out = whole;
  assert_false(g3_slice_meet(&left, &right, &out));
  assert_memory_equal(&out, &whole, sizeof out);
  assert_true(g3_slice_meet(&left, &whole, &out));
  assert_memory_equal(&out, &left, sizeof out);
}

static void valid_refuses_hostile_values(void **unused) {
  (void)unused;
  const int64_t big = INT64_MAX;
  const struct {
    g3_slice s;
    bool valid;
  } cases[] = {
      {{1, {4}, {0}, {4}}, true},
      {{1, {4}, {4}, {0}}, true},
      {{4, {1, 2, 3, 4}, {0, 1, 2, 3}, {1, 1, 1, 1}}, true},
      {{0, {4}, {0}, {4}}, false},
      {{-1, {4}, {0}, {4}}, false},
      {{5, {4}, {0}, {4}}, false},
      {{1, {4}, {1}, {4}}, false},
      {{1, {4}, {-1}, {4}}, false},
      {{1, {4}, {0}, {-1}}, false},
      {{1, {-4}, {0}, {0}}, false},
      {{1, {big}, {big}, {1}}, false},
      {{1, {big}, {1}, {big}}, false},
      {{1, {big}, {0}, {big}}, true},
      {{2, {big, 2}, {0, 0}, {1, 1}}, false},
      {{3, {0, big, big}, {0, 0, 0}, {0, 1, 1}}, false},
      {{4, {1 << 16, 1 << 16, 1 << 16, 1 << 16}, {0}, {1, 1, 1, 1}}, false},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    if (g3_slice_valid(&cases[i].s) != cases[i].valid) fail_msg("case %zu", i);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(range_tiles_exactly),
      cmocka_unit_test(every_range_of_one_slice),
      cmocka_unit_test(range_needs_no_more_pieces),
      cmocka_unit_test(range_of_a_large_slice),
      cmocka_unit_test(copy_moves_the_common_part_only),
      cmocka_unit_test(copy_takes_any_element_size),
      cmocka_unit_test(cuts_tile_the_dimension),
      cmocka_unit_test(meet_leaves_its_output_alone_when_empty),
      cmocka_unit_test(valid_refuses_hostile_values),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
