/* Products cut into blocks, one thread a block. What is cut along its stored rows is packed, so
 * that a block is the same call of the library, with the same distances between rows, however wide
 * the matrix around it is. */
#include "device/cpu/cpu.h"
#include "device/cpu/product.h"
#include <omp.h>
#include <stdatomic.h>
#include <string.h>

enum { LINE = 64, SLACK = 1 << 16 }; /* bytes: packed blocks begin on lines */
enum { PER_ELEMENT = 32 }; /* multiplications that take as long as touching an element */

/* Of A and B together with C no more than this is ever cut along its rows at once: a [tokens, cut]
 * and a [width, cut]. */
size_t g3_cpu_blocks_workspace(const g3_workload *w) {
  if (w->cut == 0) return 0;
  return (size_t)(w->tokens + w->width) * (size_t)w->cut * sizeof(float) + SLACK;
}

/* How one matrix meets the cut. */
typedef enum { WHOLE, BY_ROWS, BY_COLUMNS, BY_SLABS } manner;

typedef struct {
  g3_tensor t;
  manner how;
  int64_t block;
  char *packed; /* NULL: read and written where it lies */
  size_t each; /* bytes of a packed block */
} matrix;

static int64_t rows_of(const matrix *m) {
  return g3_gemm_rows(m->t);
}

/* Where the workspace is still free. */
typedef struct {
  char *at, *end;
} room;

static room room_of(g3_stream *s, g3_dtype input) {
  char *base = s->workspace.data;
  const size_t bytes = base ? g3_tensor_bytes(s->workspace) : 0;
  const size_t taken = input == G3_BF16 ? G3_CPU_WIDEN_BYTES : 0;
  if (bytes < taken) return (room){base, base};
  return (room){base + taken, base + bytes};
}

/* The matrix `t`, cut along its stored columns, its stored rows or not at all. */
static matrix matrix_of(g3_tensor t, manner how, int64_t block, int64_t blocks, room *free) {
  matrix m = {.t = t, .how = how, .block = block};
  if (how != BY_COLUMNS) {
    G3_CHECK(t.ndim == 2 + (how == BY_SLABS), "gemm: a matrix of %d dimensions is cut otherwise",
             t.ndim);
    return m;
  }
  if (t.ndim == 3) {
    G3_CHECK(g3_tensor_dense(t) && t.dim[2] == block && t.dim[0] == blocks,
             "gemm: a matrix cut into %lld blocks of %lld is wanted in %lld of %lld",
             (long long)t.dim[0], (long long)t.dim[2], (long long)blocks, (long long)block);
    return m;
  }
  m.each = (size_t)g3_round_up(t.dim[0] * block * (int64_t)g3_dtype_bytes(t.dtype), LINE);
  m.packed = free->at;
  G3_CHECK((size_t)(free->end - free->at) >= m.each * (size_t)blocks,
           "gemm: packing %lld blocks of %zu bytes wants more workspace than the %zu left",
           (long long)blocks, m.each, (size_t)(free->end - free->at));
  free->at += m.each * (size_t)blocks;
  return m;
}

/* Block `i` as the product reads or writes it. */
static g3_tensor block_of(const matrix *m, int64_t i) {
  switch (m->how) {
  case BY_ROWS:
    return g3_tensor_part(m->t, 0, i * m->block, m->block);
  case BY_SLABS:
    return g3_tensor_2d(g3_tensor_at(m->t, i * m->t.stride[0]), m->t.dtype, m->t.dim[1],
                        m->t.dim[2]);
  case BY_COLUMNS:
    return g3_tensor_2d(m->packed ? m->packed + (size_t)i * m->each
                                  : g3_tensor_at(m->t, i * m->t.stride[0]),
                        m->t.dtype, rows_of(m), m->block);
  case WHOLE:
    break;
  }
  return m->t;
}

/* Between block `i` where it lies and its packed form. */
static void move_block(const matrix *m, int64_t i, bool pack) {
  if (!m->packed) return;
  const size_t bytes = (size_t)m->block * g3_dtype_bytes(m->t.dtype);
  char *dense = m->packed + (size_t)i * m->each;
  for (int64_t r = 0; r < m->t.dim[0]; r++) {
    char *strided = g3_tensor_at(m->t, r * m->t.stride[0] + i * m->block);
    char *row = dense + (size_t)r * bytes;
    memcpy(pack ? row : strided, pack ? strided : row, bytes);
  }
}

typedef struct {
  matrix a, b, c;
  g3_tensor bias;
  const g3_gemm_spec *spec;
  int64_t blocks;
} job;

/* In the order of g3_gemm_cut; A and B by whether they are stored transposed. */
static const struct {
  manner a[2], b[2], c;
} manners[] = {
    [G3_CUT_M] = {{BY_ROWS, BY_COLUMNS}, {WHOLE, WHOLE}, BY_ROWS},
    [G3_CUT_N] = {{WHOLE, WHOLE}, {BY_COLUMNS, BY_ROWS}, BY_COLUMNS},
    [G3_CUT_K] = {{BY_COLUMNS, BY_ROWS}, {BY_ROWS, BY_COLUMNS}, BY_SLABS},
};

static job job_of(g3_stream *s, g3_tensor c, g3_tensor a, g3_tensor b, const g3_gemm_spec *spec) {
  const g3_gemm_shape shape = g3_gemm_shape_of(a, b, spec);
  const int64_t along = spec->cut == G3_CUT_M ? shape.m : spec->cut == G3_CUT_N ? shape.n : shape.k;
  G3_CHECK(spec->block > 0 && along % spec->block == 0, "gemm: %lld is not whole blocks of %lld",
           (long long)along, (long long)spec->block);
  G3_CHECK(spec->cut != G3_CUT_K || (c.ndim == 3 && c.dtype == G3_F32 && g3_tensor_dense(c) &&
                                     c.dim[0] == along / spec->block && !spec->bias.data),
           "gemm: cut along k, C is not f32 [%lld, m, n], or has a bias",
           (long long)(along / spec->block));
  room free = room_of(s, a.dtype);
  job j = {.spec = spec, .blocks = along / spec->block, .bias = spec->bias};
  j.a = matrix_of(a, manners[spec->cut].a[spec->trans_a], spec->block, j.blocks, &free);
  j.b = matrix_of(b, manners[spec->cut].b[spec->trans_b], spec->block, j.blocks, &free);
  j.c = matrix_of(c, manners[spec->cut].c, spec->block, j.blocks, &free);
  return j;
}

static g3_tensor bias_of(const job *j, int64_t i) {
  if (!j->bias.data || j->spec->cut != G3_CUT_N) return j->bias;
  return g3_tensor_part(j->bias, 0, i * j->spec->block, j->spec->block);
}

static void pack(const job *j, int64_t i) {
  move_block(&j->a, i, true);
  move_block(&j->b, i, true);
  if (j->spec->accumulate) move_block(&j->c, i, true);
}

/* Where the processor cannot multiply these types: block after block, each as gemm.c does it. */
static g3_status run_in_turn(g3_stream *s, const job *j) {
  for (int64_t i = 0; i < j->blocks; i++) {
    g3_gemm_spec spec = *j->spec;
    spec.bias = bias_of(j, i);
    pack(j, i);
    G3_TRY(g3_cpu_gemm_whole(s, block_of(&j->c, i), block_of(&j->a, i), block_of(&j->b, i), &spec,
                             true));
    move_block(&j->c, i, false);
  }
  return G3_OK;
}

/* The key that all blocks share. */
static g3_product_key key_of(const job *j) {
  const g3_tensor a = block_of(&j->a, 0), b = block_of(&j->b, 0), c = block_of(&j->c, 0);
  return (g3_product_key){
      .m = c.dim[0],
      .n = c.dim[1],
      .k = j->spec->trans_a ? a.dim[0] : a.dim[1],
      .lda = a.stride[0],
      .ldb = b.stride[0],
      .ldc = c.stride[0],
      .alone = 1,
      .trans_a = j->spec->trans_a,
      .trans_b = j->spec->trans_b,
      .accumulate = j->spec->accumulate,
      .bias = j->bias.data != NULL,
      .input = (int32_t)a.dtype,
      .output = (int32_t)c.dtype,
  };
}

g3_status g3_cpu_gemm_blocks(g3_stream *s, g3_tensor c, g3_tensor a, g3_tensor b,
                             const g3_gemm_spec *spec) {
  const job j = job_of(s, c, a, b, spec);
  const g3_product_key key = key_of(&j);
  g3_products *table = s->dev->impl;
  g3_product *p = NULL;
  if (!g3_product_is_plain(&key)) {
    G3_TRY(g3_products_get(table, &key, &p));
    if (!p->primitive) return run_in_turn(s, &j);
  }
  const int64_t work = key.m * key.n * key.k * j.blocks / PER_ELEMENT;
  const int threads = j.blocks > 1 ? g3_cpu_threads(s, work) : 1;
  atomic_int failed = G3_OK;
#pragma omp parallel for num_threads(threads) schedule(dynamic)
  for (int64_t i = 0; i < j.blocks; i++) {
    pack(&j, i);
    const g3_status st =
        g3_product_run_alone(table, omp_get_thread_num(), &key, p, block_of(&j.c, i).data,
                             block_of(&j.a, i).data, block_of(&j.b, i).data, bias_of(&j, i).data);
    if (st != G3_OK) atomic_store(&failed, (int)st);
    move_block(&j.c, i, false);
  }
  if (atomic_load(&failed) == G3_OK) return G3_OK;
  return G3_FAIL((g3_status)atomic_load(&failed),
                 "oneDNN could not multiply blocks of %lld x %lld x %lld", (long long)key.m,
                 (long long)key.n, (long long)key.k);
}
