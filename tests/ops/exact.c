/* Bits that do not depend on the layout: blocks of products in wider and narrower matrices, ops
 * that work element by element on any cut of their tensors, sums along trees and without rounding.
 */
#include "ops/groups.h"
#include "ops/harness.h"
#include "util/array.h"
#include "util/fixed.h"
#include "util/half.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 8 };

/* One of the products of a model, C [m, n], cut along a dimension. */
typedef struct {
  const char *name;
  g3_gemm_cut cut;
  bool trans_a, trans_b, accumulate, bias;
} product;

static const product products[] = {
    {"column", G3_CUT_N, false, true, false, true},
    {"row", G3_CUT_K, false, true, false, false},
    {"row, input's", G3_CUT_N, false, false, false, false},
    {"column, input's", G3_CUT_K, false, false, false, false},
    {"column, weight's", G3_CUT_M, true, false, true, false},
    {"row, weight's", G3_CUT_N, true, false, true, false},
};
enum { PRODUCTS = sizeof products / sizeof products[0] };

/* Which stored dimension of a matrix the cut runs along; -1: none. */
static int cut_of(const product *p, char matrix) {
  switch (matrix) {
  case 'a':
    return p->cut == G3_CUT_N ? -1 : (p->cut == G3_CUT_M) == p->trans_a;
  case 'b':
    return p->cut == G3_CUT_M ? -1 : (p->cut == G3_CUT_K) == p->trans_b;
  default:
    return p->cut == G3_CUT_K ? -1 : p->cut == G3_CUT_N;
  }
}

/* What a rank with blocks [first, first + n) holds of a matrix; `gap` between its rows. */
static ops_buf hold(const ops_buf *all, int cut, int64_t block, int64_t first, int64_t n,
                    int64_t gap) {
  const int64_t row = cut == 0 ? first * block : 0, col = cut == 1 ? first * block : 0;
  ops_buf b = ops_make(all->t.dtype, cut == 0 ? n * block : all->rows,
                       cut == 1 ? n * block : all->cols, cut == 1 ? gap : 0);
  for (int64_t r = 0; r < b.rows; r++)
    for (int64_t c = 0; c < b.cols; c++)
      ops_put(&b, r, c, ops_get(all, row + r, col + c));
  return b;
}

/* The same matrix as dense blocks of columns. */
static g3_tensor blocks_of_columns(const ops_buf *b, int64_t block, ops_buf *memory) {
  *memory = ops_vector(b->t.dtype, b->rows * b->cols);
  for (int64_t r = 0; r < b->rows; r++)
    for (int64_t c = 0; c < b->cols; c++)
      ops_put(memory, 0, (c / block * b->rows + r) * block + c % block, ops_get(b, r, c));
  return g3_tensor_3d(memory->t.data, b->t.dtype, b->cols / block, b->rows, block);
}

typedef struct {
  const product *p;
  int64_t m, n, k, block;
  g3_dtype type;
  ops_buf a, b, c, bias; /* whole; c: what was there before */
} trial;

static g3_dtype output_of(const trial *t) {
  return t->p->accumulate || t->p->cut == G3_CUT_K ? G3_F32 : t->type;
}

static trial trial_of(const product *p, int64_t m, int64_t n, int64_t k, g3_dtype type) {
  const int64_t along = p->cut == G3_CUT_M ? m : p->cut == G3_CUT_N ? n : k;
  trial t = {.p = p, .m = m, .n = n, .k = k, .block = along / BLOCKS, .type = type};
  t.a = ops_make(type, p->trans_a ? k : m, p->trans_a ? m : k, 0);
  t.b = ops_make(type, p->trans_b ? n : k, p->trans_b ? k : n, 0);
  t.c = ops_make(output_of(&t), m, n, 0);
  t.bias = ops_vector(type, n);
  ops_random(&t.a, 1, 0.1, 1);
  ops_random(&t.b, 2, -0.1, 1);
  ops_random(&t.c, 3, 0, 1);
  ops_random(&t.bias, 4, 0, 1);
  return t;
}

static void free_trial(trial *t) {
  ops_free(&t->a);
  ops_free(&t->b);
  ops_free(&t->c);
  ops_free(&t->bias);
}

/* The product as a rank with some of the blocks makes it; C, or for a cut along k [blocks m, n]. */
static ops_buf multiply(ops_bench *bench, int i, const trial *t, int64_t first, int64_t blocks,
                        int64_t gap, bool given_cut) {
  const product *p = t->p;
  ops_buf a = hold(&t->a, cut_of(p, 'a'), t->block, first, blocks, gap);
  ops_buf b = hold(&t->b, cut_of(p, 'b'), t->block, first, blocks, gap);
  const bool slabs = p->cut == G3_CUT_K;
  ops_buf c = slabs ? ops_make(G3_F32, blocks * t->m, t->n, 0)
                    : hold(&t->c, cut_of(p, 'c'), t->block, first, blocks, gap);
  if (!p->accumulate) ops_poison(&c);
  g3_tensor ta = a.t, tb = b.t, tc = c.t, bias = g3_tensor_none();
  ops_buf memory[2] = {{.base = NULL}, {.base = NULL}};
  if (given_cut && cut_of(p, 'a') == 1) ta = blocks_of_columns(&a, t->block, &memory[0]);
  if (given_cut && cut_of(p, 'b') == 1) tb = blocks_of_columns(&b, t->block, &memory[1]);
  if (slabs) tc = g3_tensor_3d(c.t.data, G3_F32, blocks, t->m, t->n);
  if (p->bias) bias = g3_tensor_part(t->bias.t, 0, first * t->block, blocks * t->block);
  const g3_gemm_spec spec = {.trans_a = p->trans_a,
                             .trans_b = p->trans_b,
                             .accumulate = p->accumulate,
                             .bias = bias,
                             .cut = p->cut,
                             .block = t->block};
  OPS_OK(bench->dev[i]->ops->gemm(bench->stream[i], tc, ta, tb, &spec));
  for (int k = 0; k < 2; k++)
    if (memory[k].base) ops_free(&memory[k]);
  ops_free(&a);
  ops_free(&b);
  return c;
}

/* float64, in the shape of the result. */
static void judge(const trial *t, const ops_buf *got) {
  const product *p = t->p;
  double *want = calloc((size_t)(got->rows * got->cols), sizeof *want);
  assert_non_null(want);
  const int64_t slabs = got->rows / t->m, depth = t->k / slabs;
  for (int64_t s = 0; s < slabs; s++)
    for (int64_t i = 0; i < t->m; i++)
      for (int64_t j = 0; j < t->n; j++) {
        double sum = p->accumulate ? ops_get(&t->c, i, j) : p->bias ? ops_get(&t->bias, 0, j) : 0;
        for (int64_t l = s * depth; l < (s + 1) * depth; l++)
          sum += ops_get(&t->a, p->trans_a ? l : i, p->trans_a ? i : l) *
                 ops_get(&t->b, p->trans_b ? j : l, p->trans_b ? l : j);
        want[(s * t->m + i) * t->n + j] = sum;
      }
  ops_judge("gemm in blocks", t->type, got, want, (double)depth);
  free(want);
}

/* Blocks [first, ...) of `all` must be those of `part`, bit by bit. */
static void compare(const trial *t, const ops_buf *all, const ops_buf *part, int64_t first,
                    int64_t blocks) {
  const bool slabs = t->p->cut == G3_CUT_K;
  const int cut = slabs ? 0 : cut_of(t->p, 'c');
  ops_buf want = hold(all, cut, slabs ? t->m : t->block, first, blocks, part->stride - part->cols);
  ops_same(t->p->name, &want, part);
  ops_free(&want);
}

static void same_in_all_widths(ops_bench *bench, const product *p, int64_t m, int64_t n, int64_t k,
                               g3_dtype type, bool against_doubles) {
  trial t = trial_of(p, m, n, k, type);
  ops_buf all = multiply(bench, 0, &t, 0, BLOCKS, 0, false);
  if (against_doubles) judge(&t, &all);
  for (int i = 0; i < OPS_STREAMS; i++)
    for (int64_t blocks = BLOCKS; blocks >= 1; blocks /= 2)
      for (int64_t first = 0; first < BLOCKS; first += blocks)
        for (int form = 0; form < 3; form++) { /* dense, with gaps, given in blocks */
          ops_buf part = multiply(bench, i, &t, first, blocks, form == 1 ? 5 : 0, form == 2);
          compare(&t, &all, &part, first, blocks);
          ops_free(&part);
        }
  ops_free(&all);
  free_trial(&t);
}

static void test_products(void **state) {
  for (int p = 0; p < PRODUCTS; p++)
    for (int type = 0; type < OPS_TYPES; type++) {
      same_in_all_widths(*state, &products[p], 16, 24, 40, ops_types[type], true);
      same_in_all_widths(*state, &products[p], 40, 56, 32, ops_types[type], true);
    }
}

/* Where the library alone would give other bits: long sums and few columns. */
static void test_deep_products(void **state) {
  for (int p = 0; p < PRODUCTS; p++)
    for (int type = 0; type < OPS_TYPES; type++)
      same_in_all_widths(*state, &products[p], 64, 64, 1536, ops_types[type], false);
}

/* Ops on each element alone give it the same bits wherever tensors are cut: nothing may depend on
 * which elements fall to the end of a vector. */
typedef void (*each_fn)(ops_bench *bench, int i, g3_tensor out, g3_tensor x, g3_tensor y);

static void run_gelu(ops_bench *bench, int i, g3_tensor out, g3_tensor x, g3_tensor y) {
  (void)y;
  OPS_OK(bench->dev[i]->ops->gelu(bench->stream[i], out, x));
}
static void run_gelu_bwd(ops_bench *bench, int i, g3_tensor out, g3_tensor x, g3_tensor y) {
  OPS_OK(bench->dev[i]->ops->gelu_bwd(bench->stream[i], out, y, x));
}

static void cut_anywhere(ops_bench *bench, each_fn run, g3_dtype type, const char *name) {
  enum { N = 4096 + 200 };
  ops_buf x = ops_vector(type, N), y = ops_vector(type, N), whole = ops_vector(type, N);
  ops_random(&x, 5, 0, 6);
  ops_random(&y, 6, 0, 1);
  run(bench, 0, whole.t, x.t, y.t);
  for (int64_t at = 0; at < 40; at++)
    for (int64_t n = 1; n < 70; n++) {
      ops_buf part = ops_vector(type, n);
      const int64_t from = at * 103;
      run(bench, 1, part.t, g3_tensor_part(x.t, 0, from, n), g3_tensor_part(y.t, 0, from, n));
      if (memcmp(part.t.data, g3_tensor_at(whole.t, from), g3_tensor_bytes(part.t)) != 0)
        fail_msg("%s %s: elements [%lld, + %lld) differ when they stand alone", name,
                 g3_dtype_name(type), (long long)from, (long long)n);
      ops_free(&part);
    }
  ops_free(&x);
  ops_free(&y);
  ops_free(&whole);
}

static void test_elements(void **state) {
  for (int type = 0; type < OPS_TYPES; type++) {
    cut_anywhere(*state, run_gelu, ops_types[type], "gelu");
    cut_anywhere(*state, run_gelu_bwd, ops_types[type], "gelu_bwd");
  }
}

enum { PARAMS = 300 };

static void adamw_range(ops_bench *bench, int64_t from, int64_t n, float p[PARAMS],
                        uint16_t low[PARAMS], float m[PARAMS], float v[PARAMS], float g[PARAMS]) {
  g3_control control = {.norm = 1, .applied_steps = 3, .clip = 0.7f};
  const g3_adamw_spec spec = {1e-3f, 0.9f, 0.95f, 1e-8f, 0.1f};
  OPS_OK(bench->dev[1]->ops->adamw(
      bench->stream[1], g3_tensor_1d(p + from, G3_F32, n), g3_tensor_1d(low + from, G3_BF16, n),
      g3_tensor_1d(m + from, G3_F32, n), g3_tensor_1d(v + from, G3_F32, n),
      g3_tensor_1d(g + from, G3_F32, n), &spec, g3_tensor_1d(&control, G3_U8, sizeof control)));
}

/* One update of all parameters at once, and of the same in ranges of every length. */
static void test_adamw_ranges(void **state) {
  ops_buf rnd = ops_make(G3_F32, 4, PARAMS, 0);
  ops_random(&rnd, 7, 0, 1);
  for (int64_t length = 1; length <= PARAMS; length += length < 40 ? 1 : 53) {
    float p[2][PARAMS], m[2][PARAMS], v[2][PARAMS], g[PARAMS];
    uint16_t low[2][PARAMS] = {{0}};
    for (int k = 0; k < 2; k++)
      for (int64_t i = 0; i < PARAMS; i++) {
        p[k][i] = (float)ops_get(&rnd, 0, i);
        m[k][i] = (float)ops_get(&rnd, 1, i);
        v[k][i] = fabsf((float)ops_get(&rnd, 2, i));
        g[i] = (float)ops_get(&rnd, 3, i);
      }
    adamw_range(*state, 0, PARAMS, p[0], low[0], m[0], v[0], g);
    for (int64_t at = 0; at < PARAMS; at += length)
      adamw_range(*state, at, PARAMS - at < length ? PARAMS - at : length, p[1], low[1], m[1], v[1],
                  g);
    assert_memory_equal(p[0], p[1], sizeof p[0]);
    assert_memory_equal(m[0], m[1], sizeof m[0]);
    assert_memory_equal(v[0], v[1], sizeof v[0]);
    assert_memory_equal(low[0], low[1], sizeof low[0]);
  }
  ops_free(&rnd);
}

/* Column sums of some of the columns; layernorm's are never cut. */
static void test_columns(void **state) {
  ops_bench *bench = *state;
  enum { ROWS = 70, COLS = 200 };
  for (int type = 0; type < OPS_TYPES; type++) {
    ops_buf x = ops_make(ops_types[type], ROWS, COLS, 0), all = ops_vector(G3_F32, COLS);
    ops_random(&x, 8, 0.3, 1);
    OPS_OK(bench->dev[0]->ops->fill(bench->stream[0], all.t, 0));
    OPS_OK(bench->dev[0]->ops->column_sum(bench->stream[0], all.t, x.t));
    for (int64_t n = 1; n < COLS; n += 9)
      for (int64_t from = 0; from + n <= COLS; from += n) {
        ops_buf some = ops_vector(G3_F32, n);
        OPS_OK(bench->dev[1]->ops->fill(bench->stream[1], some.t, 0));
        OPS_OK(bench->dev[1]->ops->column_sum(bench->stream[1], some.t,
                                              g3_tensor_part(x.t, 1, from, n)));
        assert_memory_equal(some.t.data, g3_tensor_at(all.t, from), (size_t)n * sizeof(float));
        ops_free(&some);
      }
    ops_free(&x);
    ops_free(&all);
  }
}

/* Cross-entropy over blocks: the same bits for any number of them at once, wherever they lie. */
static void test_xent_blocks(void **state) {
  ops_bench *bench = *state;
  enum { ROWS = 13, EACH = 40, VOCAB = 257 };
  for (int type = 0; type < OPS_TYPES; type++) {
    ops_buf x = ops_vector(G3_F32, BLOCKS * ROWS * EACH);
    ops_random(&x, 9, 0, 9);
    int32_t target[ROWS];
    float peak[ROWS], sums[BLOCKS][2][ROWS], total[2][ROWS], loss[ROWS];
    for (int r = 0; r < ROWS; r++)
      target[r] = r == 3 ? -1 : (r * 71) % VOCAB;
    const g3_tensor all = g3_tensor_3d(x.t.data, G3_F32, BLOCKS, ROWS, EACH);
    const g3_tensor targets = g3_tensor_1d(target, G3_I32, ROWS),
                    peaks = g3_tensor_1d(peak, G3_F32, ROWS);
    ops_buf grad = ops_vector(ops_types[type], BLOCKS * ROWS * EACH);
    ops_poison(&grad);
    g3_tensor grads = g3_tensor_3d(grad.t.data, ops_types[type], BLOCKS, ROWS, EACH);
    const g3_device_ops *ops = bench->dev[0]->ops;
    OPS_OK(ops->xent_peak(bench->stream[0], peaks, all, VOCAB));
    OPS_OK(ops->xent_sums(bench->stream[0], g3_tensor_3d(sums, G3_F32, BLOCKS, 2, ROWS), all, peaks,
                          targets, 0, VOCAB));
    for (int r = 0; r < ROWS; r++) {
      total[0][r] = total[1][r] = 0;
      for (int b = 0; b < BLOCKS; b++)
        for (int k = 0; k < 2; k++)
          total[k][r] += sums[b][k][r];
    }
    const g3_tensor totals = g3_tensor_2d(total, G3_F32, 2, ROWS);
    OPS_OK(ops->xent_loss(bench->stream[0], g3_tensor_1d(loss, G3_F32, ROWS), grads, all, peaks,
                          totals, targets, 0, VOCAB, 0.125f));
    /* against the plain formula in float64 */
    for (int r = 0; r < ROWS; r++) {
      double sum = 0, top = -INFINITY, slope = 0;
      for (int c = 0; c < VOCAB; c++)
        top = fmax(top, ops_get(&x, 0, (c / EACH * ROWS + r) * EACH + c % EACH));
      for (int c = 0; c < VOCAB; c++)
        sum += exp(ops_get(&x, 0, (c / EACH * ROWS + r) * EACH + c % EACH) - top);
      const int64_t hit =
          target[r] < 0 ? 0 : (target[r] / EACH * ROWS + r) * EACH + target[r] % EACH;
      const double want = target[r] < 0 ? 0 : log(sum) + top - ops_get(&x, 0, hit);
      assert_true(fabs((double)loss[r] - want) < 1e-5);
      for (int c = 0; c < BLOCKS * EACH; c++)
        slope += ops_get(&grad, 0, (c / EACH * ROWS + r) * EACH + c % EACH);
      assert_true(fabs(slope) < (type == 0 ? 1e-6 : 1e-2)); /* softmax - onehot sums to 0 */
    }
    for (int64_t n = 1; n < BLOCKS; n *= 2)
      for (int64_t from = 0; from < BLOCKS; from += n) {
        const int64_t first = from * EACH, left = VOCAB - first;
        const int64_t valid = left < 0 ? 0 : left < n * EACH ? left : n * EACH;
        ops_buf part = ops_vector(G3_F32, n * ROWS * EACH + 1),
                out = ops_vector(ops_types[type], n * ROWS * EACH);
        float some[BLOCKS][2][ROWS], again[ROWS];
        float *odd = (float *)part.t.data + 1; /* another place within a line */
        memcpy(odd, g3_tensor_at(all, from * ROWS * EACH), (size_t)(n * ROWS * EACH) * sizeof *odd);
        const g3_tensor logits = g3_tensor_3d(odd, G3_F32, n, ROWS, EACH);
        OPS_OK(bench->dev[1]->ops->xent_sums(bench->stream[1],
                                             g3_tensor_3d(some, G3_F32, n, 2, ROWS), logits, peaks,
                                             targets, first, valid));
        assert_memory_equal(some, sums[from], (size_t)n * sizeof some[0]);
        OPS_OK(
            bench->dev[1]->ops->xent_loss(bench->stream[1], g3_tensor_1d(again, G3_F32, ROWS),
                                          g3_tensor_3d(out.t.data, ops_types[type], n, ROWS, EACH),
                                          logits, peaks, totals, targets, first, valid, 0.125f));
        assert_memory_equal(again, loss, sizeof loss);
        assert_memory_equal(out.t.data, g3_tensor_at(grads, from * ROWS * EACH),
                            g3_tensor_bytes(out.t));
        ops_free(&part);
        ops_free(&out);
      }
    ops_free(&x);
    ops_free(&grad);
  }
}

static void test_tree_sum(void **state) {
  ops_bench *bench = *state;
  for (int i = 0; i < OPS_STREAMS; i++)
    for (int64_t parts = 1; parts <= 16; parts *= 2)
      for (int64_t n = 1; n < 20000; n = 13 * n + 4) {
        const g3_device_ops *ops = bench->dev[i]->ops;
        ops_buf x = ops_make(G3_F32, parts, n, 0), y = ops_make(G3_F32, parts, n, 0);
        ops_buf out = ops_vector(G3_F32, n), low = ops_vector(G3_BF16, n);
        ops_random(&x, 11, 0, 1);
        ops_copy(&y, &x);
        ops_poison(&out);
        float *want = calloc((size_t)(parts * n), sizeof *want);
        assert_non_null(want);
        memcpy(want, x.t.data, (size_t)(parts * n) * sizeof *want);
        for (int64_t left = parts; left > 1; left /= 2)
          for (int64_t p = 0; p < left / 2; p++)
            for (int64_t k = 0; k < n; k++)
              want[p * n + k] = want[2 * p * n + k] + want[(2 * p + 1) * n + k];
        OPS_OK(ops->tree_sum(bench->stream[i], out.t, x.t));
        assert_memory_equal(out.t.data, want, (size_t)n * sizeof *want);
        OPS_OK(ops->tree_sum(bench->stream[i], low.t, y.t));
        for (int64_t k = 0; k < n; k++)
          assert_int_equal(((const g3_bf16 *)low.t.data)[k], g3_f32_to_bf16(want[k]));
        OPS_OK(ops->add(bench->stream[i], out.t, out.t));
        for (int64_t k = 0; k < n; k++)
          assert_true(ops_get(&out, 0, k) == 2 * (double)want[k]);
        free(want);
        ops_free(&x);
        ops_free(&y);
        ops_free(&out);
        ops_free(&low);
      }
}

/* The sum of all at once and of any cuts, bit by bit; and what is not finite is seen. */
static void test_exact_sums(void **state) {
  ops_bench *bench = *state;
  enum { N = 50000 };
  ops_buf x = ops_vector(G3_F32, N);
  ops_random(&x, 12, 0, 1);
  for (int64_t i = 0; i < N; i++)
    ops_put(&x, 0, i, ldexp(ops_get(&x, 0, i), (int)(i * 7919 % 200) - 120));
  for (int squares = 0; squares < 2; squares++) {
    double whole[G3_FIXED_SIZE] = {0}, value;
    const g3_tensor sum = g3_tensor_1d(whole, G3_F64, G3_FIXED_SIZE);
    const g3_tensor out = g3_tensor_1d(&value, G3_F64, 1);
    OPS_OK(bench->dev[0]->ops->exact_sum(bench->stream[0], sum, x.t, squares));
    long double want = 0;
    for (int64_t i = 0; i < N; i++) {
      const long double v = (long double)ops_get(&x, 0, i);
      want += squares ? v * v : v;
    }
    OPS_OK(bench->dev[0]->ops->exact_value(bench->stream[0], out, sum));
    assert_true(fabsl((long double)value - want) <= 1e-15L * fabsl(want));
    for (int64_t each = 1000; each < N; each = 3 * each + 1) {
      double cut[G3_FIXED_SIZE] = {0};
      for (int64_t at = 0; at < N; at += each)
        OPS_OK(bench->dev[1]->ops->exact_sum(
            bench->stream[1], g3_tensor_1d(cut, G3_F64, G3_FIXED_SIZE),
            g3_tensor_part(x.t, 0, at, N - at < each ? N - at : each), squares));
      assert_memory_equal(cut, whole, sizeof cut);
    }
    float odd[4] = {1, INFINITY, 2, -INFINITY};
    OPS_OK(bench->dev[0]->ops->exact_sum(bench->stream[0], sum, g3_tensor_1d(odd, G3_F32, 4),
                                         squares));
    OPS_OK(bench->dev[0]->ops->exact_value(bench->stream[0], out, sum));
    assert_true(squares ? isinf(value) : isnan(value));
  }
  ops_free(&x);
}

int ops_group_exact(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_products), cmocka_unit_test(test_deep_products),
      cmocka_unit_test(test_elements), cmocka_unit_test(test_adamw_ranges),
      cmocka_unit_test(test_columns),  cmocka_unit_test(test_xent_blocks),
      cmocka_unit_test(test_tree_sum), cmocka_unit_test(test_exact_sums),
  };
  return cmocka_run_group_tests(tests, ops_setup, ops_teardown);
}
