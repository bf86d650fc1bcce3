#include "data/bytes.h"
#include "data/data.h"
#include "data/idx.h"
#include "util/array.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file that gets its name only once it is complete. */
typedef struct {
  char *name, *temporary;
  FILE *file;
} draft;

static g3_status draft_open(const char *prefix, const char *end, draft *d) {
  if (asprintf(&d->name, "%s%s", prefix, end) < 0) d->name = NULL;
  if (asprintf(&d->temporary, "%s%s.tmp", prefix, end) < 0) d->temporary = NULL;
  if (!d->name || !d->temporary) return G3_FAIL(G3_ENOMEM, "no memory for a file's name");
  d->file = fopen(d->temporary, "wbe");
  if (!d->file) return G3_FAIL(G3_EIO, "%s: cannot be written: %s", d->temporary, strerror(errno));
  return G3_OK;
}

/* Everything on disk, under the temporary name. */
static g3_status draft_finish(draft *d) {
  const bool bad = ferror(d->file) || fflush(d->file) != 0 || fsync(fileno(d->file)) != 0;
  const int why = errno;
  const bool unclosed = fclose(d->file) != 0;
  d->file = NULL;
  if (bad || unclosed)
    return G3_FAIL(G3_EIO, "%s: cannot be written: %s", d->temporary, strerror(bad ? why : errno));
  return G3_OK;
}

static g3_status draft_publish(draft *d) {
  if (rename(d->temporary, d->name) != 0)
    return G3_FAIL(G3_EIO, "%s: cannot be renamed to %s: %s", d->temporary, d->name,
                   strerror(errno));
  return G3_OK;
}

/* What is still a draft goes away. */
static void draft_drop(draft *d) {
  if (d->file) fclose(d->file);
  if (d->temporary) unlink(d->temporary);
  free(d->temporary);
  free(d->name);
}

/* Bytes of the line at `from`, its newline included; -1 when an .idx cannot say so many. */
static int64_t line_bytes(const g3_map *text, int64_t from) {
  const int64_t left = text->size - from;
  const uint8_t *end = memchr(text->data + from, '\n', (size_t)left);
  const int64_t n = end ? end - (text->data + from) + 1 : left;
  return n <= INT32_MAX ? n : -1;
}

static void put(FILE *f, int size, int64_t value) {
  uint8_t bytes[8];
  g3_bytes_put(bytes, size, (uint64_t)value);
  fwrite(bytes, 1, (size_t)size, f); /* draft_finish looks at ferror */
}

static g3_status write_idx(FILE *f, const char *path, const g3_map *text) {
  int64_t lines = 0;
  for (int64_t at = 0, n; at < text->size; at += n, lines++)
    if ((n = line_bytes(text, at)) < 0)
      return G3_FAIL(G3_EFORMAT, "%s: line %lld is longer than 2^31 - 1 bytes", path,
                     (long long)lines + 1);
  fwrite(g3_idx_magic, 1, sizeof g3_idx_magic, f);
  put(f, 8, G3_IDX_VERSION);
  put(f, 1, g3_token_byte.code);
  put(f, 8, lines);
  put(f, 8, lines + 1);
  for (int64_t at = 0, n; at < text->size; at += n)
    put(f, 4, n = line_bytes(text, at));
  for (int64_t at = 0; at < text->size; at += line_bytes(text, at))
    put(f, 8, at);
  for (int64_t d = 0; d <= lines; d++)
    put(f, 8, d);
  return G3_OK;
}

/* True when `name` is the very file that is being read. */
static bool same_file(const char *text, const char *name) {
  struct stat a, b;
  return stat(text, &a) == 0 && stat(name, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static g3_status write_pair(const char *path, const g3_map *text, draft *bin, draft *idx) {
  if (same_file(path, bin->name) || same_file(path, idx->name))
    return G3_FAIL(G3_EINVAL, "%s: is the text itself and would be overwritten; use another prefix",
                   path);
  fwrite(text->data, 1, (size_t)text->size, bin->file);
  G3_TRY(write_idx(idx->file, path, text));
  G3_TRY(draft_finish(bin));
  G3_TRY(draft_finish(idx));
  /* Without .idx there is no pair: it goes first and comes back last. */
  if (unlink(idx->name) != 0 && errno != ENOENT)
    return G3_FAIL(G3_EIO, "%s: cannot be replaced: %s", idx->name, strerror(errno));
  G3_TRY(draft_publish(bin));
  const g3_status st = draft_publish(idx);
  if (st != G3_OK) unlink(bin->name);
  return st;
}

g3_status g3_tokenize_bytes(const char *text, const char *prefix) {
  g3_status st;
  g3_map map = {NULL, 0};
  draft bin = {NULL, NULL, NULL}, idx = bin;
  G3_TRY(g3_map_open(text, &map));
  if (map.size == 0) return G3_FAIL(G3_EFORMAT, "%s: no tokens: the file is empty", text);
  G3_TRY_TO(done, st, draft_open(prefix, ".bin", &bin));
  G3_TRY_TO(done, st, draft_open(prefix, ".idx", &idx));
  G3_TRY_TO(done, st, write_pair(text, &map, &bin, &idx));
done:
  draft_drop(&bin);
  draft_drop(&idx);
  g3_map_close(&map);
  return st;
}
