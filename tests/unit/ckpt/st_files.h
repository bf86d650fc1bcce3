/* Small safetensors files for tests, in a folder of their own. */
#ifndef G3_TESTS_ST_FILES_H
#define G3_TESTS_ST_FILES_H
#include "ckpt/safetensors.h"
#include "unit/util/cm.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A fresh folder; the program works inside it until leave_folder. */
static inline int enter_folder(void **state) {
  char *name = strdup("/tmp/gpt3d-st-XXXXXX");
  *state = name;
  return name && mkdtemp(name) && chdir(name) == 0 ? 0 : -1;
}

static inline int leave_folder(void **state) {
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", (char *)*state);
  const int rc = chdir("/") != 0 || system(command) != 0;
  free(*state);
  return rc;
}

static inline void write_bytes(const char *path, const void *bytes, size_t n) {
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(bytes, 1, n, f), n);
  assert_int_equal(fclose(f), 0);
}

/* The bytes of a file in out [size]; how many. */
static inline size_t read_bytes(const char *path, void *out, size_t size) {
  FILE *f = fopen(path, "rb");
  assert_non_null(f);
  const size_t n = fread(out, 1, size, f);
  assert_true(n < size);
  assert_int_equal(fclose(f), 0);
  return n;
}

/* A file whose header claims `length` bytes, is `header`, and is followed by n bytes of data. */
static inline void write_st(const char *path, uint64_t length, const char *header, const void *data,
                            size_t n) {
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  for (int i = 0; i < 8; i++)
    assert_true(fputc((int)(length >> (8 * i) & 0xFF), f) != EOF);
  assert_int_equal(fwrite(header, 1, strlen(header), f), strlen(header));
  assert_int_equal(fwrite(data, 1, n, f), n);
  assert_int_equal(fclose(f), 0);
}

/* The folder's model is refused with this status, and a message that holds both parts. */
static inline void refused(g3_status wanted, const char *part1, const char *part2) {
  g3_safetensors *set = NULL;
  const g3_status st = g3_safetensors_open(".", &set);
  if (st != wanted)
    fail_msg("status %d (%s), wanted %d for %s", st, g3_last_error(), wanted, part1);
  assert_null(set);
  if (!strstr(g3_last_error(), part1) || !strstr(g3_last_error(), part2))
    fail_msg("\"%s\" lacks \"%s\" or \"%s\"", g3_last_error(), part1, part2);
}

static inline g3_safetensors *opened(void) {
  g3_safetensors *set = NULL;
  if (g3_safetensors_open(".", &set) != G3_OK) fail_msg("%s", g3_last_error());
  return set;
}

#endif
