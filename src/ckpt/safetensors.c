#include "ckpt/safetensors.h"
#include "ckpt/st_header.h"
#include "util/array.h"
#include "util/half.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the format is little-endian, as we are");

int g3_st_by_name(const void *a, const void *b) {
  return strcmp(((const g3_st_tensor *)a)->name, ((const g3_st_tensor *)b)->name);
}

g3_status g3_st_file_open(const char *path, g3_safetensors *set) {
  g3_st_file *file = &set->file[set->nfiles];
  G3_TRY(g3_ckpt_path(file->path, "%s", path));
  file->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file->fd < 0) return G3_FAIL(G3_EIO, "cannot open %s: %s", path, strerror(errno));
  return g3_st_header_read(file, set->nfiles++, set);
}

static g3_status open_one(const char *path, g3_safetensors *set) {
  G3_TRY(G3_NEW_ARRAY(1, &set->file));
  return g3_st_file_open(path, set);
}

/* A name in two shards; within one the header was checked. */
static g3_status sort_tensors(g3_safetensors *set) {
  qsort(set->tensor, (size_t)set->ntensors, sizeof *set->tensor, g3_st_by_name);
  for (int i = 1; i < set->ntensors; i++) {
    const g3_st_tensor *t = &set->tensor[i];
    if (strcmp(t[-1].name, t->name) == 0)
      return G3_FAIL(G3_EFORMAT, "%s is there twice: in %s and in %s", t->name,
                     g3_safetensors_path(set, t - 1), g3_safetensors_path(set, t));
  }
  return G3_OK;
}

static g3_status open_in(const char *dir, g3_safetensors *set) {
  char one[G3_CKPT_PATH], index[G3_CKPT_PATH];
  G3_TRY(g3_ckpt_path(one, "%s/model.safetensors", dir));
  G3_TRY(g3_ckpt_path(index, "%s/model.safetensors.index.json", dir));
  if (g3_ckpt_is(one, false))
    G3_TRY(open_one(one, set));
  else if (g3_ckpt_is(index, false))
    G3_TRY(g3_st_index_open(dir, index, set));
  else
    return G3_FAIL(
        G3_EIO,
        "%s has neither model.safetensors nor model.safetensors.index.json; transformers "
        "writes them by save_pretrained",
        dir);
  return sort_tensors(set);
}

g3_status g3_safetensors_open(const char *dir, g3_safetensors **out) {
  g3_safetensors *set;
  G3_TRY(G3_NEW_ARRAY(1, &set));
  const g3_status st = open_in(dir, set);
  if (st != G3_OK) {
    g3_safetensors_close(set);
    return st;
  }
  *out = set;
  return G3_OK;
}

void g3_safetensors_close(g3_safetensors *set) {
  if (!set) return;
  for (int i = 0; i < set->nfiles; i++)
    close(set->file[i].fd);
  free(set->file);
  free(set->tensor);
  free(set);
}

int g3_safetensors_count(const g3_safetensors *set) {
  return set->ntensors;
}

const g3_st_tensor *g3_safetensors_at(const g3_safetensors *set, int i) {
  return &set->tensor[i];
}

int g3_safetensors_find(const g3_safetensors *set, const char *name) {
  int low = 0, high = set->ntensors;
  while (low < high) {
    const int mid = low + (high - low) / 2;
    const int order = strcmp(set->tensor[mid].name, name);
    if (order == 0) return mid;
    if (order < 0)
      low = mid + 1;
    else
      high = mid;
  }
  return -1;
}

const char *g3_safetensors_path(const g3_safetensors *set, const g3_st_tensor *t) {
  return set->file[t->file].path;
}

/* The 16-bit elements stand in the upper half of out, and each is read before it is overwritten. */
static void widen(float *out, int64_t n, g3_st_dtype dtype) {
  const char *from = (const char *)out + (size_t)n * sizeof(uint16_t);
  for (int64_t i = 0; i < n; i++) {
    uint16_t half;
    memcpy(&half, from + (size_t)i * sizeof half, sizeof half);
    out[i] = dtype == G3_ST_F16 ? g3_f16_to_f32(half) : g3_bf16_to_f32(half);
  }
}

g3_status g3_safetensors_read(const g3_safetensors *set, const g3_st_tensor *t, float *out) {
  const g3_st_file *file = &set->file[t->file];
  G3_CHECK(t->dtype <= G3_ST_BF16, "%s of %s cannot be read as f32", t->name,
           g3_st_dtype_name(t->dtype));
  if (t->dtype == G3_ST_F32) return g3_st_pread(file, out, t->bytes, t->begin);
  G3_TRY(g3_st_pread(file, (char *)out + t->bytes, t->bytes, t->begin));
  widen(out, t->count, t->dtype);
  return G3_OK;
}
