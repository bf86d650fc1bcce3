#include "ckpt/st_header.h"
#include "ckpt/json_file.h"
#include "util/array.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LENGTH_BYTES = 8, MOST_HEADER = 16 << 20 };

static const struct {
  const char *name;
  int bytes;
} dtypes[G3_ST_DTYPES] = {
    [G3_ST_F32] = {"F32", 4},  [G3_ST_F16] = {"F16", 2}, [G3_ST_BF16] = {"BF16", 2},
    [G3_ST_F64] = {"F64", 8},  [G3_ST_I64] = {"I64", 8}, [G3_ST_I32] = {"I32", 4},
    [G3_ST_I16] = {"I16", 2},  [G3_ST_I8] = {"I8", 1},   [G3_ST_U64] = {"U64", 8},
    [G3_ST_U32] = {"U32", 4},  [G3_ST_U16] = {"U16", 2}, [G3_ST_U8] = {"U8", 1},
    [G3_ST_BOOL] = {"BOOL", 1}};

const char *g3_st_dtype_name(g3_st_dtype t) {
  return dtypes[t].name;
}

const char *g3_st_shape_text(int ndim, const int64_t *dim, char out[G3_ST_SHAPE_TEXT]) {
  size_t used = 0;
  out[0] = '\0';
  for (int d = 0; d < ndim && used < G3_ST_SHAPE_TEXT; d++)
    used +=
        (size_t)snprintf(out + used, G3_ST_SHAPE_TEXT - used, "%s%" PRId64, d ? ", " : "[", dim[d]);
  if (used < G3_ST_SHAPE_TEXT)
    snprintf(out + used, G3_ST_SHAPE_TEXT - used, "%s", ndim ? "]" : "[]");
  return out;
}

g3_status g3_st_pread(const g3_st_file *file, void *out, int64_t n, int64_t at) {
  char *to = out;
  while (n > 0) {
    const ssize_t got = pread(file->fd, to, (size_t)n, (off_t)at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return G3_FAIL(G3_EIO, "%s cannot be read: %s", file->path, strerror(errno));
    if (got == 0)
      return G3_FAIL(G3_EFORMAT, "%s is cut: it ends at byte %" PRId64 ", %" PRId64 " too early",
                     file->path, at, n);
    to += got;
    at += got;
    n -= got;
  }
  return G3_OK;
}

/* A whole number in [0, 2^53], which a double holds exactly. */
static bool whole(const cJSON *m, int64_t *out) {
  if (!cJSON_IsNumber(m) || !(m->valuedouble >= 0.0) || m->valuedouble > 0x1p53) return false;
  *out = (int64_t)m->valuedouble;
  return (double)*out == m->valuedouble;
}

static g3_status take_name(const char *path, const char *name, g3_st_tensor *t) {
  const size_t length = strlen(name);
  bool printable = length > 0 && length < sizeof t->name;
  for (size_t i = 0; i < length && printable; i++)
    printable = name[i] > ' ' && name[i] <= '~';
  if (!printable)
    return G3_FAIL(G3_EFORMAT,
                   "%s: the name of a tensor has %zu bytes; wanted 1 to %zu, all of printable "
                   "ASCII",
                   path, length, sizeof t->name - 1);
  memcpy(t->name, name, length + 1);
  return G3_OK;
}

static g3_status take_dtype(const char *path, const cJSON *m, g3_st_tensor *t) {
  const char *name = cJSON_IsString(m) ? m->valuestring : "";
  for (int i = 0; i < G3_ST_DTYPES; i++)
    if (strcmp(name, dtypes[i].name) == 0) {
      t->dtype = (g3_st_dtype)i;
      return G3_OK;
    }
  return G3_FAIL(G3_EFORMAT, "%s: %s has no type that is known, such as F32, F16 or BF16", path,
                 t->name);
}

static g3_status take_shape(const char *path, const cJSON *m, g3_st_tensor *t) {
  const int ndim = cJSON_IsArray(m) ? cJSON_GetArraySize(m) : -1;
  if (ndim < 0 || ndim > G3_ST_DIMS)
    return G3_FAIL(G3_EFORMAT, "%s: %s wants a shape, a list of at most %d dimensions", path,
                   t->name, (int)G3_ST_DIMS);
  t->count = 1;
  for (const cJSON *d = m->child; d; d = d->next) {
    int64_t *dim = &t->dim[t->ndim++];
    if (!whole(d, dim) || *dim == 0)
      return G3_FAIL(G3_EFORMAT, "%s: dimension %d of %s is not a whole number above 0", path,
                     t->ndim - 1, t->name);
    if (!g3_mul_ok(t->count, *dim, &t->count))
      return G3_FAIL(G3_EFORMAT, "%s: the shape of %s has more elements than can be counted", path,
                     t->name);
  }
  return G3_OK;
}

/* `data` is where the tensors begin in the file, `size` how many bytes they have together. */
static g3_status take_place(const char *path, const cJSON *m, int64_t data, int64_t size,
                            g3_st_tensor *t) {
  int64_t begin, end, bytes;
  if (!cJSON_IsArray(m) || cJSON_GetArraySize(m) != 2 || !whole(m->child, &begin) ||
      !whole(m->child->next, &end))
    return G3_FAIL(G3_EFORMAT, "%s: %s wants data_offsets, two whole numbers", path, t->name);
  if (begin > end || end > size)
    return G3_FAIL(G3_EFORMAT,
                   "%s: %s lies in bytes %" PRId64 " to %" PRId64 " of the data, which has %" PRId64
                   " bytes",
                   path, t->name, begin, end, size);
  if (!g3_mul_ok(t->count, dtypes[t->dtype].bytes, &bytes) || bytes != end - begin) {
    char shape[G3_ST_SHAPE_TEXT];
    return G3_FAIL(G3_EFORMAT, "%s: %s has %" PRId64 " bytes, but %s of %s needs another size",
                   path, t->name, end - begin, g3_st_shape_text(t->ndim, t->dim, shape),
                   dtypes[t->dtype].name);
  }
  t->begin = data + begin;
  t->bytes = bytes;
  return G3_OK;
}

/* The three members that a tensor has. */
static g3_status take_tensor(const char *path, const cJSON *m, int64_t data, int64_t size,
                             g3_st_tensor *t) {
  G3_TRY(take_name(path, m->string, t));
  const cJSON *dtype = cJSON_GetObjectItemCaseSensitive(m, "dtype");
  const cJSON *shape = cJSON_GetObjectItemCaseSensitive(m, "shape");
  const cJSON *place = cJSON_GetObjectItemCaseSensitive(m, "data_offsets");
  if (!cJSON_IsObject(m) || cJSON_GetArraySize(m) != 3 || !dtype || !shape || !place)
    return G3_FAIL(G3_EFORMAT, "%s: %s wants dtype, shape and data_offsets, once each, alone", path,
                   t->name);
  G3_TRY(take_dtype(path, dtype, t));
  G3_TRY(take_shape(path, shape, t));
  return take_place(path, place, data, size, t);
}

static int by_place(const void *a, const void *b) {
  const g3_st_tensor *x = a, *y = b;
  return (x->begin > y->begin) - (x->begin < y->begin);
}

/* The format wants each byte of the data in exactly one tensor. */
static g3_status check_tiling(const char *path, g3_st_tensor *t, int n, int64_t data,
                              int64_t size) {
  int64_t at = data;
  qsort(t, (size_t)n, sizeof *t, by_place);
  for (int i = 0; i < n; i++) {
    if (t[i].begin < at)
      return G3_FAIL(G3_EFORMAT, "%s: %s and %s overlap", path, t[i - 1].name, t[i].name);
    if (t[i].begin > at)
      return G3_FAIL(G3_EFORMAT, "%s: %" PRId64 " bytes before %s belong to no tensor", path,
                     t[i].begin - at, t[i].name);
    at += t[i].bytes;
  }
  if (at == data + size) return G3_OK;
  return G3_FAIL(G3_EFORMAT, "%s: the last %" PRId64 " bytes belong to no tensor", path,
                 data + size - at);
}

/* Room for n more tensors at the end of the set's. */
static g3_status make_room(g3_safetensors *set, int n) {
  g3_st_tensor *more;
  G3_TRY(G3_NEW_ARRAY((int64_t)set->ntensors + n, &more));
  for (int i = 0; i < set->ntensors; i++)
    more[i] = set->tensor[i];
  free(set->tensor);
  set->tensor = more;
  return G3_OK;
}

static const char metadata[] = "__metadata__";

static g3_status take_header(const g3_st_file *file, int number, const cJSON *header, int64_t data,
                             int64_t size, g3_safetensors *set) {
  G3_TRY(make_room(set, cJSON_GetArraySize(header)));
  g3_st_tensor *first = &set->tensor[set->ntensors];
  int n = 0;
  for (const cJSON *m = header->child; m; m = m->next) {
    if (strcmp(m->string, metadata) == 0 && cJSON_IsObject(m)) continue;
    first[n].file = number;
    G3_TRY(take_tensor(file->path, m, data, size, &first[n++]));
  }
  if (n == 0) return G3_FAIL(G3_EFORMAT, "%s holds no tensors", file->path);
  G3_TRY(check_tiling(file->path, first, n, data, size));
  set->ntensors += n;
  return G3_OK;
}

static g3_status header_length(const g3_st_file *file, int64_t bytes, int64_t *out) {
  uint8_t raw[LENGTH_BYTES];
  uint64_t length = 0;
  if (bytes < LENGTH_BYTES)
    return G3_FAIL(G3_EFORMAT, "%s has %" PRId64 " bytes, and no room for a header's length",
                   file->path, bytes);
  G3_TRY(g3_st_pread(file, raw, LENGTH_BYTES, 0));
  for (int i = 0; i < LENGTH_BYTES; i++)
    length |= (uint64_t)raw[i] << (8 * i);
  if (length > MOST_HEADER || (int64_t)length > bytes - LENGTH_BYTES)
    return G3_FAIL(G3_EFORMAT,
                   "%s: its header would have %" PRIu64 " bytes, in a file of %" PRId64
                   "; at most %d are read",
                   file->path, length, bytes, (int)MOST_HEADER);
  *out = (int64_t)length;
  return G3_OK;
}

g3_status g3_st_header_read(const g3_st_file *file, int number, g3_safetensors *set) {
  struct stat info;
  int64_t length = 0;
  char *text, where[G3_CKPT_PATH + 32];
  cJSON *header = NULL;
  if (fstat(file->fd, &info) != 0 || !S_ISREG(info.st_mode))
    return G3_FAIL(G3_EIO, "%s is not a file", file->path);
  const int64_t bytes = info.st_size;
  G3_TRY(header_length(file, bytes, &length));
  G3_TRY(G3_NEW_ARRAY(length + 1, &text));
  snprintf(where, sizeof where, "the header of %s", file->path);
  g3_status st = g3_st_pread(file, text, length, LENGTH_BYTES);
  if (st == G3_OK) st = g3_json_parse(where, text, (size_t)length, &header);
  const int64_t data = LENGTH_BYTES + length;
  if (st == G3_OK) st = take_header(file, number, header, data, bytes - data, set);
  cJSON_Delete(header);
  free(text);
  return st;
}
