#include "ops/harness.h"
#include "util/half.h"
#include "util/philox.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 256, CELLS = 64, CANARY = 0xA5 };

static struct {
  const char *op;
  g3_dtype type;
  int tensors;
  double terms, bound, worst; /* bound: over scale, the widest; worst: error over its own bound */
} cells[CELLS];
static int ncells;

int ops_setup(void **state) {
  static const int threads[OPS_STREAMS] = {1, 3};
  ops_bench *b = calloc(1, sizeof *b);
  if (!b) return -1;
  const g3_workload w = {.tokens = 64,
                         .width = 64,
                         .ffn = 256,
                         .vocab = 256,
                         .head_dim = 16,
                         .cut = 4096,
                         .dtype = G3_BF16};
  for (int i = 0; i < OPS_STREAMS; i++) {
    if (g3_device_open("cpu", threads[i], &b->dev[i]) != G3_OK) return -1;
    const size_t bytes = b->dev[i]->ops->workspace(&w);
    if (b->dev[i]->ops->alloc(b->dev[i], bytes, &b->workspace[i]) != G3_OK) return -1;
    const g3_tensor space = g3_tensor_1d(b->workspace[i], G3_U8, (int64_t)bytes);
    if (b->dev[i]->ops->stream_create(b->dev[i], false, space, &b->stream[i]) != G3_OK) return -1;
  }
  *state = b;
  return 0;
}

int ops_teardown(void **state) {
  ops_bench *b = *state;
  for (int i = 0; i < OPS_STREAMS; i++) {
    b->dev[i]->ops->stream_destroy(b->stream[i]);
    b->dev[i]->ops->release(b->dev[i], b->workspace[i]);
    g3_device_close(b->dev[i]);
  }
  free(b);
  return 0;
}

void ops_print_matrix(void) {
  printf("%-24s %-5s %8s %10s %14s %20s\n", "op", "type", "tensors", "max terms", "bound / scale",
         "worst error / bound");
  for (int i = 0; i < ncells; i++)
    printf("%-24s %-5s %8d %10.0f %14.1e %20.3f\n", cells[i].op, g3_dtype_name(cells[i].type),
           cells[i].tensors, cells[i].terms, cells[i].bound, cells[i].worst);
}

ops_buf ops_make(g3_dtype dtype, int64_t rows, int64_t cols, int64_t gap) {
  ops_buf b = {.rows = rows, .cols = cols, .stride = cols + gap};
  b.bytes = 2 * GUARD + (size_t)(rows * b.stride) * g3_dtype_bytes(dtype);
  b.base = malloc(b.bytes);
  assert_non_null(b.base);
  memset(b.base, CANARY, b.bytes);
  b.t = g3_tensor_2d(b.base + GUARD, dtype, rows, cols);
  b.t.stride[0] = b.stride;
  return b;
}

ops_buf ops_vector(g3_dtype dtype, int64_t n) {
  ops_buf b = ops_make(dtype, 1, n, 0);
  b.t = g3_tensor_as_1d(b.t);
  return b;
}

static void check_canary(const ops_buf *b, size_t from, size_t to) {
  for (size_t i = from; i < to; i++)
    if (b->base[i] != CANARY)
      fail_msg("byte %zd around a tensor [%lld, %lld] was written", (ssize_t)i - GUARD,
               (long long)b->rows, (long long)b->cols);
}

void ops_free(ops_buf *b) {
  const size_t one = g3_dtype_bytes(b->t.dtype);
  check_canary(b, 0, GUARD);
  for (int64_t r = 0; r < b->rows; r++) {
    const size_t row = GUARD + (size_t)(r * b->stride) * one;
    check_canary(b, row + (size_t)b->cols * one, row + (size_t)b->stride * one);
  }
  check_canary(b, b->bytes - GUARD, b->bytes);
  free(b->base);
  b->base = NULL;
}

double ops_get(const ops_buf *b, int64_t row, int64_t col) {
  const void *p = g3_tensor_at(b->t, row * b->stride + col);
  switch (b->t.dtype) {
  case G3_F32:
    return (double)*(const float *)p;
  case G3_BF16:
    return (double)g3_bf16_to_f32(*(const g3_bf16 *)p);
  case G3_F64:
    return *(const double *)p;
  default:
    return (double)*(const int32_t *)p;
  }
}

void ops_put(ops_buf *b, int64_t row, int64_t col, double value) {
  void *p = g3_tensor_at(b->t, row * b->stride + col);
  switch (b->t.dtype) {
  case G3_F32:
    *(float *)p = (float)value;
    break;
  case G3_BF16:
    *(g3_bf16 *)p = g3_f32_to_bf16((float)value);
    break;
  case G3_F64:
    *(double *)p = value;
    break;
  default:
    *(int32_t *)p = (int32_t)value;
  }
}

void ops_random(ops_buf *b, uint64_t seed, double mid, double spread) {
  for (int64_t r = 0; r < b->rows; r++)
    for (int64_t c = 0; c < b->cols; c++) {
      const g3_philox_block w =
          g3_philox((uint32_t)seed, (uint32_t)(seed >> 32), (uint32_t)r, (uint32_t)c, 0, 0);
      ops_put(b, r, c, mid + spread * (2 * (double)g3_unit(w.w[0]) - 1));
    }
}

void ops_poison(ops_buf *b) {
  for (int64_t r = 0; r < b->rows; r++)
    for (int64_t c = 0; c < b->cols; c++)
      ops_put(b, r, c, (double)NAN);
}

void ops_copy(ops_buf *to, const ops_buf *from) {
  for (int64_t r = 0; r < from->rows; r++)
    for (int64_t c = 0; c < from->cols; c++)
      ops_put(to, r, c, ops_get(from, r, c));
}

double *ops_doubles(const ops_buf *b) {
  double *d = malloc((size_t)(b->rows * b->cols + 1) * sizeof *d);
  assert_non_null(d);
  for (int64_t r = 0; r < b->rows; r++)
    for (int64_t c = 0; c < b->cols; c++)
      d[r * b->cols + c] = ops_get(b, r, c);
  return d;
}

static void enter(const char *op, g3_dtype type, double terms, double bound, double worst) {
  int i = 0;
  while (i < ncells && (strcmp(cells[i].op, op) != 0 || cells[i].type != type))
    i++;
  assert_true(i < CELLS);
  if (i == ncells) {
    cells[ncells].op = op;
    cells[ncells++].type = type;
  }
  cells[i].tensors++;
  cells[i].terms = fmax(cells[i].terms, terms);
  cells[i].bound = fmax(cells[i].bound, bound);
  cells[i].worst = fmax(cells[i].worst, worst);
}

void ops_judge(const char *op, g3_dtype type, const ops_buf *got, const double *want,
               double terms) {
  double scale = 0;
  for (int64_t i = 0; i < got->rows * got->cols; i++)
    scale = fmax(scale, fabs(want[i])); /* fmax skips NaN */
  const bool coarse = got->t.dtype == G3_BF16;
  const double share = coarse ? 1.0 / 128 : 8 * sqrt(terms) / 16777216;
  assert_true(coarse || share < 1e-3); /* so that an error of 0.1 % would be seen */
  double worst = 0;
  for (int64_t r = 0; r < got->rows; r++)
    for (int64_t c = 0; c < got->cols; c++) {
      const double w = want[r * got->cols + c], g = ops_get(got, r, c);
      if (isnan(w)) continue;
      const double error = fabs(g - w);
      if (!(error <= share * scale))
        fail_msg("%s %s [%lld, %lld]: element (%lld, %lld) is %.9g, wanted %.9g within %.3g", op,
                 g3_dtype_name(type), (long long)got->rows, (long long)got->cols, (long long)r,
                 (long long)c, g, w, share * scale);
      if (error > 0) worst = fmax(worst, error / (share * scale));
    }
  enter(op, type, terms, share, worst);
}

void ops_same(const char *op, const ops_buf *a, const ops_buf *b) {
  assert_int_equal(a->bytes, b->bytes);
  if (memcmp(a->base, b->base, a->bytes) != 0)
    fail_msg("%s [%lld, %lld] differs between 1 and 3 threads", op, (long long)a->rows,
             (long long)a->cols);
}

double ops_slope(double (*loss)(const void *ctx), const void *ctx, double *x) {
  static const double weight[4] = {1.0 / 12, -2.0 / 3, 2.0 / 3, -1.0 / 12};
  static const double at[4] = {-2, -1, 1, 2};
  const double here = *x, h = 1e-3;
  double sum = 0;
  for (int i = 0; i < 4; i++) {
    *x = here + at[i] * h;
    sum += weight[i] * loss(ctx);
  }
  *x = here;
  return sum / h;
}
