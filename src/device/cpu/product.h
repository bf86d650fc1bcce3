/* Products by oneDNN, one object a shape. The only file that knows oneDNN is product.c, where the
 * interfaces of versions 2 and 3 differ in a few lines. */
#ifndef G3_DEVICE_CPU_PRODUCT_H
#define G3_DEVICE_CPU_PRODUCT_H
#include "tensor/tensor.h"
#include "util/status.h"

/* What a product is made for. No padding bytes: it is hashed and compared as memory. */
typedef struct {
  int64_t m, n, k;
  int64_t lda, ldb, ldc; /* elements between stored rows */
  int64_t alone; /* 1: made for one thread, whatever the table's number */
  int32_t trans_a, trans_b, accumulate, bias;
  int32_t input; /* g3_dtype of A, B and bias: f32 or bf16 */
  int32_t output; /* g3_dtype of C */
} g3_product_key;

typedef struct {
  g3_product_key key;
  void *primitive; /* NULL: the library has no fast kernel for this on this processor */
  void *a, *b, *c, *bias; /* the library's memory objects, re-pointed for each call */
  void *scratch; /* what it works in beside them when made for one thread; NULL = nothing */
} g3_product;

typedef struct g3_products g3_products;

/* Local. An empty table of products that run on `threads` threads. The caller destroys it. */
G3_MUST_USE g3_status g3_products_create(int threads, g3_products **out);
void g3_products_destroy(g3_products *t);

/* Local. The product of this key, made when it is new (milliseconds, and the only time that the
 * table allocates); `*out` is valid until the next call. */
G3_MUST_USE g3_status g3_products_get(g3_products *t, const g3_product_key *key, g3_product **out);

/* Local. C = op(A) op(B) [+ C] [+ bias] by a product whose primitive is not NULL. */
G3_MUST_USE g3_status g3_product_run(g3_products *t, g3_product *p, void *c, const void *a,
                                     const void *b, const void *bias);

/* Local. C = op(A) op(B) [+ C] [+ bias] on the calling thread, number `thread` of at most the
 * table's, by a product of the table whose key says alone: p, or NULL where g3_product_is_plain.
 * Different threads may call it at once. */
G3_MUST_USE g3_status g3_product_run_alone(g3_products *t, int thread, const g3_product_key *key,
                                           const g3_product *p, void *c, const void *a,
                                           const void *b, const void *bias);

/* Local. The library's version and how it runs threads: "2.6.3, OpenMP"; `out` always ends with
 * NUL. */
void g3_products_version(char *out, size_t size);

/* Local. True when g3_product_plain does this product faster than an object of its own. */
bool g3_product_is_plain(const g3_product_key *key);

/* Local. C = op(A) op(B) [+ C] in f32 without bias, by the library's routine that needs no object.
 */
G3_MUST_USE g3_status g3_product_plain(g3_products *t, const g3_product_key *key, float *c,
                                       const float *a, const float *b);

#endif
