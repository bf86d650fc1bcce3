#include "ckpt/json_file.h"
#include "util/array.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_BYTES = 16 << 20 };

static int by_name(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The parser takes a name twice as two members. */
static g3_status check_twice(const char *where, const cJSON *object) {
  const int n = cJSON_GetArraySize(object);
  const char **names;
  G3_TRY(G3_NEW_ARRAY(n, &names));
  int i = 0;
  for (const cJSON *m = object->child; m; m = m->next)
    names[i++] = m->string;
  qsort(names, (size_t)n, sizeof *names, by_name);
  g3_status st = G3_OK;
  for (i = 1; i < n && st == G3_OK; i++)
    if (strcmp(names[i - 1], names[i]) == 0)
      st = G3_FAIL(G3_EFORMAT, "%s: \"%.80s\" is there twice", where, names[i]);
  free(names);
  return st;
}

/* Either kind of NUL would end a name early once it is a string. */
static g3_status check_nul(const char *where, const char *text, size_t size) {
  const char *nul = memchr(text, '\0', size);
  if (nul)
    return G3_FAIL(G3_EFORMAT, "%s is not JSON: byte %lld is NUL", where, (long long)(nul - text));
  const char *escaped = strstr(text, "\\u0000");
  if (escaped)
    return G3_FAIL(G3_EFORMAT, "%s: the text at byte %lld holds a NUL", where,
                   (long long)(escaped - text));
  return G3_OK;
}

g3_status g3_json_parse(const char *where, const char *text, size_t size, cJSON **out) {
  G3_CHECK(text[size] == '\0', "%s: JSON to be parsed does not end with NUL", where);
  G3_TRY(check_nul(where, text, size));
  const char *end = text;
  /* With its NUL: the parser looks one byte beyond a number or a string. */
  cJSON *found = cJSON_ParseWithLengthOpts(text, size + 1, &end, 1);
  if (!found)
    return G3_FAIL(G3_EFORMAT, "%s is not JSON: it makes no sense at byte %lld of %lld", where,
                   (long long)(end - text), (long long)size);
  const g3_status st = cJSON_IsObject(found)
                           ? check_twice(where, found)
                           : G3_FAIL(G3_EFORMAT, "%s is JSON, but no object", where);
  if (st != G3_OK) {
    cJSON_Delete(found);
    return st;
  }
  *out = found;
  return G3_OK;
}

static g3_status read_all(FILE *file, const char *path, char **text, size_t *size) {
  struct stat info;
  if (fstat(fileno(file), &info) != 0 || !S_ISREG(info.st_mode))
    return G3_FAIL(G3_EIO, "%s is not a file", path);
  if (info.st_size > MOST_BYTES)
    return G3_FAIL(G3_EFORMAT, "%s has %lld bytes; at most %d are read", path,
                   (long long)info.st_size, (int)MOST_BYTES);
  *size = (size_t)info.st_size;
  G3_TRY(G3_NEW_ARRAY(info.st_size + 1, text));
  if (fread(*text, 1, *size, file) == *size) return G3_OK;
  free(*text);
  return G3_FAIL(G3_EIO, "%s cannot be read: %s", path, ferror(file) ? strerror(errno) : "cut");
}

g3_status g3_json_read(const char *path, cJSON **out) {
  char *text = NULL;
  size_t size = 0;
  FILE *file = fopen(path, "re");
  if (!file) return G3_FAIL(G3_EIO, "cannot open %s: %s", path, strerror(errno));
  g3_status st = read_all(file, path, &text, &size);
  fclose(file); /* read-only: nothing can be lost */
  G3_TRY(st);
  st = g3_json_parse(path, text, size, out);
  free(text);
  return st;
}
