/* Typed views of memory. A view is copied by value, never owns and is never freed. C++-clean. */
#ifndef G3_TENSOR_TENSOR_H
#define G3_TENSOR_TENSOR_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum { G3_F32, G3_BF16, G3_F64, G3_I32, G3_U8, G3_DTYPE_COUNT } g3_dtype;

enum { G3_MAX_DIMS = 4 };

/* A view. Rows are the last dimension; strides may leave gaps between them. */
typedef struct {
  void *data; /* NULL: an absent operand. Host or device memory, as the owner knows */
  g3_dtype dtype;
  int ndim;
  int64_t dim[G3_MAX_DIMS]; /* elements, outermost first */
  int64_t stride[G3_MAX_DIMS]; /* elements, not bytes */
} g3_tensor;

/* Bytes of one element, and the name: "f32", "bf16". */
size_t g3_dtype_bytes(g3_dtype t);
const char *g3_dtype_name(g3_dtype t); /* "f32", "bf16", ... */

/* A dense row-major view of `data`. */
g3_tensor g3_tensor_1d(void *data, g3_dtype t, int64_t d0);
g3_tensor g3_tensor_2d(void *data, g3_dtype t, int64_t d0, int64_t d1);
g3_tensor g3_tensor_3d(void *data, g3_dtype t, int64_t d0, int64_t d1, int64_t d2);
g3_tensor g3_tensor_4d(void *data, g3_dtype t, int64_t d0, int64_t d1, int64_t d2, int64_t d3);

/* The absent operand. */
static inline g3_tensor g3_tensor_none(void) {
  g3_tensor t;
  t.data = NULL;
  t.dtype = G3_F32;
  t.ndim = 0;
  for (int i = 0; i < G3_MAX_DIMS; i++)
    t.dim[i] = t.stride[i] = 0;
  return t;
}

int64_t g3_tensor_count(g3_tensor t); /* elements; 0 for none */
size_t g3_tensor_bytes(g3_tensor t); /* of a dense tensor */
bool g3_tensor_dense(g3_tensor t); /* row-major without gaps */

/* The part [start, start + count) along dimension `d`. Ends the job when it is out of range. */
g3_tensor g3_tensor_part(g3_tensor t, int d, int64_t start, int64_t count);

/* A dense tensor seen with another shape of as many elements. */
g3_tensor g3_tensor_as_1d(g3_tensor t);
g3_tensor g3_tensor_as_2d(g3_tensor t, int64_t d0, int64_t d1);

/* The address of an element offset into `t`'s dtype. */
static inline void *g3_tensor_at(g3_tensor t, int64_t elements) {
  return (char *)t.data + (size_t)elements * g3_dtype_bytes(t.dtype);
}

#endif
