/* Writing one safetensors file. */
#include "ckpt/files.h"
#include "ckpt/st_header.h"
#include "util/array.h"
#include "util/json.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LENGTH_BYTES = 8, TENSOR_TEXT = G3_ST_NAME + 320 /* numbers and words of one entry */ };

static void put_tensor(g3_json *j, const g3_st_tensor *t, int64_t begin, int64_t end) {
  g3_json_key(j, t->name);
  g3_json_object(j);
  g3_json_key(j, "dtype");
  g3_json_string(j, g3_st_dtype_name(G3_ST_F32));
  g3_json_key(j, "shape");
  g3_json_array(j);
  for (int d = 0; d < t->ndim; d++)
    g3_json_int(j, t->dim[d]);
  g3_json_array_end(j);
  g3_json_key(j, "data_offsets");
  g3_json_array(j);
  g3_json_int(j, begin);
  g3_json_int(j, end);
  g3_json_array_end(j);
  g3_json_object_end(j);
}

/* The header into text [size], filled with spaces to whole 8 bytes; *data gets the bytes that
 * follow. transformers looks for the format among the metadata. */
static g3_status make_header(const g3_st_tensor *tensors, int n, char *text, size_t size,
                             size_t *length, int64_t *data) {
  g3_json j = g3_json_begin(text, size - LENGTH_BYTES);
  int64_t at = 0;
  g3_json_object(&j);
  g3_json_key(&j, "__metadata__");
  g3_json_object(&j);
  g3_json_key(&j, "format");
  g3_json_string(&j, "pt");
  g3_json_object_end(&j);
  for (int i = 0; i < n; i++) {
    int64_t bytes = (int64_t)sizeof(float);
    for (int d = 0; d < tensors[i].ndim; d++)
      G3_CHECK(g3_mul_ok(bytes, tensors[i].dim[d], &bytes), "%s is too large", tensors[i].name);
    put_tensor(&j, &tensors[i], at, at + bytes);
    G3_CHECK(g3_add_ok(at, bytes, &at), "the tensors are too large together");
  }
  g3_json_object_end(&j);
  G3_TRY(g3_json_end(&j));
  *length = (size_t)g3_round_up((int64_t)j.used, LENGTH_BYTES);
  memset(text + j.used, ' ', *length - j.used);
  *data = at;
  return G3_OK;
}

static g3_status put_bytes(g3_st_writer *w, const void *bytes, size_t n) {
  if (fwrite(bytes, 1, n, w->file) == n) return G3_OK;
  return G3_FAIL(G3_EIO, "cannot write %s: %s", w->temp, strerror(errno));
}

static g3_status put_header(g3_st_writer *w, const g3_st_tensor *tensors, int n) {
  char *text;
  size_t length = 0;
  const int64_t size = (int64_t)(n + 1) * TENSOR_TEXT;
  G3_TRY(G3_NEW_ARRAY(size, &text));
  g3_status st = make_header(tensors, n, text, (size_t)size, &length, &w->left);
  if (st == G3_OK) {
    uint8_t raw[LENGTH_BYTES];
    for (int i = 0; i < LENGTH_BYTES; i++)
      raw[i] = (uint8_t)((uint64_t)length >> (8 * i));
    st = put_bytes(w, raw, sizeof raw);
    if (st == G3_OK) st = put_bytes(w, text, length);
  }
  free(text);
  return st;
}

g3_status g3_st_writer_begin(const char *path, const g3_st_tensor *tensors, int n,
                             g3_st_writer *out) {
  g3_st_writer w = {.file = NULL};
  G3_TRY(g3_ckpt_path(w.path, "%s", path));
  G3_TRY(g3_ckpt_path(w.temp, "%s.tmp", path));
  w.file = fopen(w.temp, "we");
  if (!w.file) return G3_FAIL(G3_EIO, "cannot write %s: %s", w.temp, strerror(errno));
  const g3_status st = put_header(&w, tensors, n);
  if (st != G3_OK) {
    g3_st_writer_drop(&w);
    return st;
  }
  *out = w;
  return G3_OK;
}

g3_status g3_st_writer_put(g3_st_writer *w, const float *data, int64_t count) {
  const int64_t bytes = count * (int64_t)sizeof *data;
  G3_CHECK(bytes <= w->left, "%s: more elements than its header has", w->path);
  w->left -= bytes;
  return put_bytes(w, data, (size_t)bytes);
}

/* The folder of a path, for syncing it. */
static g3_status sync_folder(const char *path) {
  char folder[G3_CKPT_PATH];
  G3_TRY(g3_ckpt_path(folder, "%s", path));
  char *slash = strrchr(folder, '/');
  if (!slash) return g3_ckpt_sync(".", NULL);
  slash[slash == folder ? 1 : 0] = '\0';
  return g3_ckpt_sync(folder, NULL);
}

static g3_status finish(g3_st_writer *w) {
  FILE *file = w->file;
  w->file = NULL;
  if (fclose(file) != 0) return G3_FAIL(G3_EIO, "cannot write %s: %s", w->temp, strerror(errno));
  G3_TRY(g3_ckpt_sync(w->temp, NULL));
  if (rename(w->temp, w->path) != 0)
    return G3_FAIL(G3_EIO, "cannot move %s to %s: %s", w->temp, w->path, strerror(errno));
  return sync_folder(w->path);
}

g3_status g3_st_writer_end(g3_st_writer *w) {
  G3_CHECK(w->left == 0, "%s: %lld bytes of its tensors are missing", w->path, (long long)w->left);
  const g3_status st = finish(w);
  if (st != G3_OK) g3_st_writer_drop(w);
  return st;
}

void g3_st_writer_drop(g3_st_writer *w) {
  if (w->file) fclose(w->file);
  w->file = NULL;
  unlink(w->temp);
}
