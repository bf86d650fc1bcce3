/* What the tests of the ops share: tensors between canary bytes, float64 copies of what is in them,
 * judgement against a bound, and the matrix that is printed at the end. Every op is run with 1 and
 * with 3 threads, and must give the same bits. */
#ifndef G3_TESTS_OPS_HARNESS_H
#define G3_TESTS_OPS_HARNESS_H
#include "device/device.h"

/* cmocka wants these before its header. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { OPS_STREAMS = 2 };

/* Two devices, of 1 and of 3 threads, each with a stream and its workspace. */
typedef struct {
  g3_device *dev[OPS_STREAMS];
  g3_stream *stream[OPS_STREAMS];
  void *workspace[OPS_STREAMS];
} ops_bench;

int ops_setup(void **state); /* for cmocka_run_group_tests */
int ops_teardown(void **state);

/* What ops_judge has seen of all groups: a row for each op and type. */
void ops_print_matrix(void);

#define OPS_OK(call) assert_int_equal((call), G3_OK)

/* A matrix [rows, cols] whose rows are `gap` elements further apart than they are long. */
typedef struct {
  g3_tensor t;
  unsigned char *base; /* canaries, data with gaps, canaries */
  size_t bytes;
  int64_t rows, cols, stride;
} ops_buf;

ops_buf ops_make(g3_dtype dtype, int64_t rows, int64_t cols, int64_t gap);
ops_buf ops_vector(g3_dtype dtype, int64_t n); /* its tensor has one dimension */
void ops_free(ops_buf *b); /* fails when a canary or a gap was written */

/* Values uniform in [mid - spread, mid + spread), rounded to the dtype; a function of `seed`. */
void ops_random(ops_buf *b, uint64_t seed, double mid, double spread);
void ops_poison(ops_buf *b); /* NaN everywhere: for outputs that are overwritten */
void ops_copy(ops_buf *to, const ops_buf *from);

double ops_get(const ops_buf *b, int64_t row, int64_t col);
void ops_put(ops_buf *b, int64_t row, int64_t col, double value);
double *ops_doubles(const ops_buf *b); /* rows x cols of float64; freed by the caller */

/* Every element of `got` must be within the bound of `want`: for f32 8 * 2^-24 * sqrt(terms) *
 * scale, for bf16 2^-7 * scale, where scale is the largest magnitude of `want`. Enters the worst
 * share of the bound into the matrix under (op, type). An element of `want` that is NaN is not
 * judged. */
void ops_judge(const char *op, g3_dtype type, const ops_buf *got, const double *want, double terms);

/* The two must hold the same bits. */
void ops_same(const char *op, const ops_buf *a, const ops_buf *b);

/* d/dx of loss(ctx) at the element x, by central differences in float64, of fourth order. */
double ops_slope(double (*loss)(const void *ctx), const void *ctx, double *x);

static const g3_dtype ops_types[] = {G3_F32, G3_BF16};
enum { OPS_TYPES = 2 };

#endif
