/* Files in Hugging Face's safetensors format: a length, a JSON header, and the tensors' bytes one
 * after another. The bytes are in docs/formats.md. */
#ifndef G3_CKPT_SAFETENSORS_H
#define G3_CKPT_SAFETENSORS_H
#include "util/status.h"
#include <stdint.h>
#include <stdio.h>

enum { G3_ST_DIMS = 8, G3_ST_NAME = 256 };

/* Element types of which the size is known; the first three can be read. */
typedef enum {
  G3_ST_F32,
  G3_ST_F16,
  G3_ST_BF16,
  G3_ST_F64,
  G3_ST_I64,
  G3_ST_I32,
  G3_ST_I16,
  G3_ST_I8,
  G3_ST_U64,
  G3_ST_U32,
  G3_ST_U16,
  G3_ST_U8,
  G3_ST_BOOL,
  G3_ST_DTYPES
} g3_st_dtype;

/* One tensor of a file. */
typedef struct {
  char name[G3_ST_NAME]; /* printable ASCII */
  g3_st_dtype dtype;
  int ndim; /* 0: one number */
  int64_t dim[G3_ST_DIMS]; /* outermost first, all > 0 */
  int64_t count; /* elements */
  int64_t begin, bytes; /* place in the file, from its start; size */
  int file; /* number of the file in its set */
} g3_st_tensor;

typedef struct g3_safetensors g3_safetensors; /* one file, or the shards of a model */

/* Local. Opens DIR/model.safetensors, or the files that DIR/model.safetensors.index.json lists, and
 * checks their headers: G3_EFORMAT, by file, tensor and reason, for a header longer than its file
 * (or than 16 MiB) or not JSON, unknown types, dimensions of 0, sizes that overflow or are not
 * their shape's, tensors that overlap, leave holes or end beyond the file, names that are there
 * twice, shards with a path or that do not hold what the index says. */
G3_MUST_USE g3_status g3_safetensors_open(const char *dir, g3_safetensors **out);
void g3_safetensors_close(g3_safetensors *set); /* NULL is fine */

/* The tensors, ordered by name. */
int g3_safetensors_count(const g3_safetensors *set);
const g3_st_tensor *g3_safetensors_at(const g3_safetensors *set, int i);

/* The number of a tensor by its name, or -1. */
int g3_safetensors_find(const g3_safetensors *set, const char *name);

/* The path of the file that holds a tensor. */
const char *g3_safetensors_path(const g3_safetensors *set, const g3_st_tensor *t);

/* Local. The tensor's elements as f32 [count], all exactly. Its type must be F32, F16 or BF16. */
G3_MUST_USE g3_status g3_safetensors_read(const g3_safetensors *set, const g3_st_tensor *t,
                                          float *out);

/* "F32", ... as the format spells it. */
const char *g3_st_dtype_name(g3_st_dtype t);

/* The shape as "[50257, 768]". Returns `out`. */
enum { G3_ST_SHAPE_TEXT = 192 };
const char *g3_st_shape_text(int ndim, const int64_t *dim, char out[G3_ST_SHAPE_TEXT]);

/* A file being written: whole or absent. */
typedef struct {
  char path[1024], temp[1024];
  FILE *file;
  int64_t left; /* bytes of tensors still to come */
} g3_st_writer;

/* Local. Begins PATH with F32 tensors of these names and shapes (count, begin, bytes and file are
 * not looked at), whose elements follow in this order. On failure nothing is left. */
G3_MUST_USE g3_status g3_st_writer_begin(const char *path, const g3_st_tensor *tensors, int n,
                                         g3_st_writer *out);

/* Local. The next elements; a failure is followed by g3_st_writer_drop. */
G3_MUST_USE g3_status g3_st_writer_put(g3_st_writer *w, const float *data, int64_t count);

/* Local. Waits until all is on the disk and gives the file its name. On failure nothing is left. */
G3_MUST_USE g3_status g3_st_writer_end(g3_st_writer *w);
void g3_st_writer_drop(g3_st_writer *w);

#endif
