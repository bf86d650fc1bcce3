/* Small files for the tests of src/data, in a folder of their own. */
#ifndef TESTS_UNIT_DATA_FILES_H
#define TESTS_UNIT_DATA_FILES_H
#include "util/status.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { PATH_BYTES = 512 };

/* A fresh folder; the program works inside it until leave_folder. */
static inline int enter_folder(void **state) {
  char *name = strdup("/tmp/gpt3d-data-XXXXXX");
  *state = name;
  return name && mkdtemp(name) && chdir(name) == 0 ? 0 : -1;
}

static inline int leave_folder(void **state) {
  char command[PATH_BYTES];
  snprintf(command, sizeof command, "rm -rf '%s'", (char *)*state);
  const int rc = chdir("/") != 0 || system(command) != 0;
  free(*state);
  return rc;
}

static inline void write_file(const char *path, const void *bytes, size_t n) {
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(bytes, 1, n, f), n);
  assert_int_equal(fclose(f), 0);
}

/* The last failure's message holds `text`. */
static inline void assert_message(const char *text) {
  if (!strstr(g3_last_error(), text)) fail_msg("\"%s\" is not in \"%s\"", text, g3_last_error());
}

/* A header file under construction. */
typedef struct {
  uint8_t bytes[4096];
  size_t n;
} idx_file;

static inline void idx_put(idx_file *f, int size, int64_t value) {
  assert_true(f->n + (size_t)size <= sizeof f->bytes);
  for (int i = 0; i < size; i++)
    f->bytes[f->n++] = (uint8_t)((uint64_t)value >> (8 * i));
}

/* Magic, version, code and counts; the arrays follow. */
static inline idx_file idx_head(int code, int64_t sequences, int64_t documents) {
  idx_file f = {.n = 0};
  memcpy(f.bytes, "MMIDIDX\0\0", 9);
  f.n = 9;
  idx_put(&f, 8, 1);
  idx_put(&f, 1, code);
  idx_put(&f, 8, sequences);
  idx_put(&f, 8, documents);
  return f;
}

/* A header of n sequences that lie one after another, a document each. */
static inline idx_file idx_of(int code, int bytes, int n, const int32_t *lengths) {
  idx_file f = idx_head(code, n, n + 1);
  int64_t at = 0;
  for (int i = 0; i < n; i++)
    idx_put(&f, 4, lengths[i]);
  for (int i = 0; i < n; at += (int64_t)lengths[i++] * bytes)
    idx_put(&f, 8, at);
  for (int i = 0; i <= n; i++)
    idx_put(&f, 8, i);
  return f;
}

static inline void idx_write(const idx_file *f, const char *path) {
  write_file(path, f->bytes, f->n);
}

#endif
