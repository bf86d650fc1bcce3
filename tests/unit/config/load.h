/* Loads settings from words and from files of a folder of its own, and says what went wrong. */
#ifndef G3_TESTS_CONFIG_LOAD_H
#define G3_TESTS_CONFIG_LOAD_H
#include "config/config.h"
#include "unit/util/cm.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Group set-up: an empty folder with configs/ in it becomes the current one; its name is the state.
 */
static inline int enter_folder(void **state) {
  char *name = strdup("/tmp/gpt3d-config-XXXXXX");
  if (!name || !mkdtemp(name) || chdir(name) != 0 || mkdir("configs", 0700) != 0) return -1;
  *state = name;
  return 0;
}

static inline int leave_folder(void **state) {
  char *name = *state, command[64];
  snprintf(command, sizeof command, "rm -r %s", name);
  free(name);
  return chdir("/") == 0 && system(command) == 0 ? 0 : -1;
}

/* Loads from words that are parted by one space; NULL on failure. Freed by g3_settings_free. */
static inline g3_settings *load(const char *words) {
  enum { MOST = 32 };
  char text[4096], *argv[MOST];
  int argc = 0;
  g3_settings *s = NULL;
  assert_true(strlen(words) < sizeof text);
  snprintf(text, sizeof text, "%s", words);
  for (char *rest = text, *word; (word = strsep(&rest, " ")) && argc < MOST;)
    if (*word) argv[argc++] = word;
  return g3_settings_load(argc, argv, &s) == G3_OK ? s : NULL;
}

/* The message of loading and checking, for `world` ranks unless that is 0; "" when all is well.
 * Valid until the next failure. */
static inline const char *error_in_world(const char *words, int64_t world) {
  g3_settings *s = load(words);
  if (!s) return g3_last_error();
  g3_status st = g3_config_check(s);
  if (st == G3_OK && world) st = g3_config_world(s, world);
  if (st == G3_OK && world) st = g3_config_check(s);
  g3_settings_free(s);
  assert_true(st == G3_OK || st == G3_EINVAL);
  return st == G3_OK ? "" : g3_last_error();
}

static inline const char *error_of(const char *words) {
  return error_in_world(words, 0);
}

static inline void write_file(const char *path, const char *text, size_t n) {
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  assert_int_equal(fwrite(text, 1, n, f), n);
  assert_int_equal(fclose(f), 0);
}

/* The message of loading and checking a file configs/t.yaml with this text. */
static inline const char *error_of_file(const char *yaml) {
  write_file("configs/t.yaml", yaml, strlen(yaml));
  return error_of("--config configs/t.yaml");
}

static inline const g3_origin *origin_of(const g3_settings *s, const char *key) {
  const g3_option *o = g3_option_by_key(key);
  assert_non_null(o);
  return &s->origin[o - g3_options];
}

/* One bad configuration and the words it gets. */
typedef struct {
  const char *words, *message;
} bad_case;

#endif
