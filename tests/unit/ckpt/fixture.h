/* What the checkpoint tests share: a scratch directory, a device, items with known numbers, and
 * ways to damage files. */
#ifndef G3_TESTS_CKPT_FIXTURE_H
#define G3_TESTS_CKPT_FIXTURE_H
#include "ckpt/ckpt.h"
#include "util/half.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
/* cmocka wants the ones above first */
#include <cmocka.h>

#define UNUSED __attribute__((unused))

typedef struct {
  char dir[256]; /* scratch, removed at the end */
  g3_device *dev;
  g3_stream *stream;
  g3_comm *self;
  g3_tensor stage;
} fixture;

#define assert_ok(call)                                                                            \
  do {                                                                                             \
    if ((call) != G3_OK) fail_msg("%s: %s", #call, g3_last_error());                               \
  } while (0)

/* The call fails with this status and its message holds each of these parts. */
UNUSED static void expect_failure(g3_status got, g3_status wanted, const char *part1,
                                  const char *part2) {
  if (got != wanted) fail_msg("status %d (%s), wanted %d", got, g3_last_error(), wanted);
  if (!strstr(g3_last_error(), part1) || !strstr(g3_last_error(), part2))
    fail_msg("\"%s\" lacks \"%s\" or \"%s\"", g3_last_error(), part1, part2);
}

/* Runs a command of the shell; its standard output in `out`. Returns its exit code. */
UNUSED static int shell(char *out, size_t size, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static int shell(char *out, size_t size, const char *fmt, ...) {
  char command[4096];
  va_list args;
  va_start(args, fmt);
  const int length = vsnprintf(command, sizeof command, fmt, args);
  va_end(args);
  assert_in_range(length, 1, sizeof command - 1);
  FILE *p = popen(command, "r");
  assert_non_null(p);
  const size_t n = fread(out, 1, size - 1, p);
  out[n] = '\0';
  return pclose(p);
}

UNUSED static int setup(void **state) {
  fixture *f = calloc(1, sizeof *f);
  char *cwd = getcwd(NULL, 0);
  snprintf(f->dir, sizeof f->dir, "%.200s/ckpt-XXXXXX", cwd);
  free(cwd);
  if (!mkdtemp(f->dir)) return -1;
  if (g3_device_open("cpu", 1, &f->dev) != G3_OK) return -1;
  if (f->dev->ops->stream_create(f->dev, true, g3_tensor_none(), &f->stream) != G3_OK) return -1;
  if (g3_comm_self(&f->self) != G3_OK) return -1;
  const size_t bytes = (size_t)G3_CKPT_PIECE_ELEMENTS * sizeof(float);
  f->stage = g3_tensor_1d(malloc(bytes), G3_U8, (int64_t)bytes);
  *state = f;
  return 0;
}

UNUSED static int teardown(void **state) {
  fixture *f = *state;
  char out[16];
  const int bad = shell(out, sizeof out, "rm -rf '%s'", f->dir);
  free(f->stage.data);
  g3_comm_destroy(f->self);
  f->dev->ops->stream_destroy(f->stream);
  g3_device_close(f->dev);
  free(f);
  return bad;
}

/* An item of up to two dimensions (rows 0: one dimension) over the whole, with memory of its own.
 */
UNUSED static g3_ckpt_item item_of(const char *name, g3_dtype dtype, int64_t rows, int64_t cols) {
  g3_ckpt_item it = {0};
  snprintf(it.name, sizeof it.name, "%s", name);
  const int64_t dims[2] = {rows ? rows : cols, cols};
  it.slice = g3_slice_whole(rows ? 2 : 1, dims);
  const int64_t n = g3_slice_count(&it.slice);
  it.local = g3_tensor_1d(calloc((size_t)n, g3_dtype_bytes(dtype)), dtype, n);
  return it;
}

/* The same tensor, only columns [start, start + count) of rows [row, row + rows). */
UNUSED static g3_ckpt_item part_of(const g3_ckpt_item *whole, g3_dtype dtype, int64_t row,
                                   int64_t rows, int64_t start, int64_t count) {
  g3_ckpt_item it = *whole;
  it.slice.start[0] = row;
  it.slice.count[0] = rows;
  it.slice.start[1] = start;
  it.slice.count[1] = count;
  it.local =
      g3_tensor_1d(calloc((size_t)(rows * count + 1), g3_dtype_bytes(dtype)), dtype, rows * count);
  return it;
}

/* The number that element `at` of a whole tensor has in these tests: exact in bf16 too. */
UNUSED static float number(int64_t at) {
  return (float)(at % 251) - 125.0f;
}

UNUSED static float get(g3_tensor t, int64_t i) {
  return t.dtype == G3_F32 ? ((const float *)t.data)[i]
                           : g3_bf16_to_f32(((const g3_bf16 *)t.data)[i]);
}

UNUSED static void put(g3_tensor t, int64_t i, float x) {
  if (t.dtype == G3_F32)
    ((float *)t.data)[i] = x;
  else
    ((g3_bf16 *)t.data)[i] = g3_f32_to_bf16(x);
}

/* The place in the whole of element i of a dense slice. */
UNUSED static int64_t place_of(const g3_slice *s, int64_t i) {
  int64_t at = 0, unit = 1;
  for (int d = s->ndim - 1; d >= 0; d--) {
    at += (s->start[d] + i % s->count[d]) * unit;
    i /= s->count[d];
    unit *= s->global[d];
  }
  return at;
}

UNUSED static void fill(g3_ckpt_item *it, float shift) {
  for (int64_t i = 0; i < g3_slice_count(&it->slice); i++)
    put(it->local, i, number(place_of(&it->slice, i)) + shift);
}

UNUSED static void expect_numbers(const g3_ckpt_item *it, float shift) {
  for (int64_t i = 0; i < g3_slice_count(&it->slice); i++)
    if (get(it->local, i) != number(place_of(&it->slice, i)) + shift)
      fail_msg("%s: element %lld is %g", it->name, (long long)i, (double)get(it->local, i));
}

UNUSED static void free_items(g3_ckpt_item *items, int n) {
  for (int i = 0; i < n; i++)
    free(items[i].local.data);
}

/* Two tensors of two dtypes, filled. */
enum { SMALL_ITEMS = 2 };
UNUSED static void small_items(g3_ckpt_item *items) {
  items[0] = item_of("model/block.weight", G3_F32, 6, 10);
  items[1] = item_of("optim/exp_avg/block.weight", G3_BF16, 0, 7);
  fill(&items[0], 0);
  fill(&items[1], 1);
}

/* Saves the two tensors as a step of the scratch directory. */
UNUSED static g3_status save_small(fixture *f, int64_t step, int64_t keep) {
  g3_ckpt_item items[SMALL_ITEMS];
  small_items(items);
  g3_ckpt_attr attr[] = {{"model.width", "128"}, {"model.layers", "4"}};
  const g3_ckpt_meta meta = {.step = step,
                             .consumed_samples = 32 * step,
                             .applied_steps = step - 1,
                             .attr = attr,
                             .nattrs = 2};
  const g3_status st =
      g3_ckpt_save(f->self, f->stream, f->dir, &meta, items, SMALL_ITEMS, keep, f->stage);
  free_items(items, SMALL_ITEMS);
  return st;
}

UNUSED static void path_in(const fixture *f, char *out, const char *name) {
  snprintf(out, 512, "%s/%s", f->dir, name);
}

UNUSED static bool is_there(const fixture *f, const char *name) {
  char path[512];
  path_in(f, path, name);
  return access(path, F_OK) == 0;
}

/* Turns over one bit of one byte of a file. */
UNUSED static void flip_byte(const char *path, long at) {
  FILE *file = fopen(path, "r+");
  assert_non_null(file);
  assert_int_equal(fseek(file, at, SEEK_SET), 0);
  const int was = fgetc(file);
  assert_int_not_equal(was, EOF);
  assert_int_equal(fseek(file, at, SEEK_SET), 0);
  assert_int_equal(fputc(was ^ 0x10, file), was ^ 0x10);
  assert_int_equal(fclose(file), 0);
}

UNUSED static int64_t size_of(const char *path) {
  struct stat st;
  assert_int_equal(stat(path, &st), 0);
  return (int64_t)st.st_size;
}

UNUSED static void write_text(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  assert_true(fputs(text, file) >= 0);
  assert_int_equal(fclose(file), 0);
}

#endif
