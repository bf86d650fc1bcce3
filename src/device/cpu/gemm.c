/* The product op: checks, then oneDNN. Where the processor cannot multiply bf16, tiles are widened
 * to f32, multiplied there, and rounded once at the end: the same numbers as a bf16 unit that adds
 * in f32, but for the order of the sums. */
#include "device/cpu/cpu.h"
#include "device/cpu/isa.h"
#include "device/cpu/kernels/pointwise.h"
#include "device/cpu/product.h"

/* The edge of a widened tile: three of them are the workspace. Rows are a little further apart than
 * a power of two, so that a column does not fall into few sets of the cache. */
enum { EDGE = 512, PITCH = EDGE + 16, TILE = EDGE * PITCH };

_Static_assert(3 * TILE * sizeof(float) == G3_CPU_WIDEN_BYTES, "three tiles are the workspace");

size_t g3_cpu_workspace(const g3_workload *w) {
  return (w->dtype == G3_BF16 ? G3_CPU_WIDEN_BYTES : 0) + g3_cpu_blocks_workspace(w);
}

static bool is_matrix(g3_tensor t, int64_t rows, int64_t cols) {
  return t.data && t.ndim == 2 && t.dim[0] == rows && t.dim[1] == cols &&
         (t.stride[1] == 1 || cols == 1) && (t.stride[0] >= cols || rows == 1);
}

/* Elements between rows; of a single row that is anybody's guess, so one value for all. */
static int64_t leading(g3_tensor t) {
  return t.dim[0] == 1 ? t.dim[1] : t.stride[0];
}

static void check(g3_tensor c, g3_tensor a, g3_tensor b, const g3_gemm_spec *spec) {
  const int64_t k = spec->trans_a ? a.dim[0] : a.dim[1];
  const int64_t m = c.dim[0], n = c.dim[1];
  G3_CHECK(is_matrix(c, m, n) && is_matrix(a, spec->trans_a ? k : m, spec->trans_a ? m : k) &&
               is_matrix(b, spec->trans_b ? n : k, spec->trans_b ? k : n) && k > 0,
           "gemm: C [%lld, %lld] is not the product of A [%lld, %lld]%s and B [%lld, %lld]%s",
           (long long)m, (long long)n, (long long)a.dim[0], (long long)a.dim[1],
           spec->trans_a ? "^T" : "", (long long)b.dim[0], (long long)b.dim[1],
           spec->trans_b ? "^T" : "");
  G3_CHECK((a.dtype == G3_F32 || a.dtype == G3_BF16) && b.dtype == a.dtype &&
               (c.dtype == G3_F32 || c.dtype == a.dtype),
           "gemm: A %s, B %s, C %s", g3_dtype_name(a.dtype), g3_dtype_name(b.dtype),
           g3_dtype_name(c.dtype));
  G3_CHECK(!spec->accumulate || (c.dtype == G3_F32 && !spec->bias.data),
           "gemm: accumulate wants C in f32 and no bias");
  G3_CHECK(!spec->bias.data || (g3_tensor_count(spec->bias) == n && g3_tensor_dense(spec->bias) &&
                                spec->bias.dtype == a.dtype),
           "gemm: the bias is not %lld of %s", (long long)n, g3_dtype_name(a.dtype));
}

/* One product with everything in f32, or in bf16 where the processor can. */
static g3_status multiply(g3_products *table, g3_tensor c, g3_tensor a, g3_tensor b,
                          const g3_gemm_spec *spec, bool alone, bool *refused) {
  const g3_product_key key = {
      .m = c.dim[0],
      .n = c.dim[1],
      .k = spec->trans_a ? a.dim[0] : a.dim[1],
      .lda = leading(a),
      .ldb = leading(b),
      .ldc = leading(c),
      .alone = alone,
      .trans_a = spec->trans_a,
      .trans_b = spec->trans_b,
      .accumulate = spec->accumulate,
      .bias = spec->bias.data != NULL,
      .input = (int32_t)a.dtype,
      .output = (int32_t)c.dtype,
  };
  *refused = false;
  if (g3_product_is_plain(&key)) return g3_product_plain(table, &key, c.data, a.data, b.data);
  g3_product *p;
  G3_TRY(g3_products_get(table, &key, &p));
  *refused = p->primitive == NULL;
  if (*refused) return G3_OK;
  if (alone)
    return g3_product_run_alone(table, 0, &key, p, c.data, a.data, b.data, spec->bias.data);
  return g3_product_run(table, p, c.data, a.data, b.data, spec->bias.data);
}

static g3_tensor tile_at(float *p, int64_t rows, int64_t cols) {
  g3_tensor t = g3_tensor_2d(p, G3_F32, rows, cols);
  t.stride[0] = PITCH;
  return t;
}

/* dst, f32, = the tile of src with this corner and dst's shape. */
static void widen_tile(g3_stream *s, g3_tensor dst, g3_tensor src, int64_t row, int64_t col) {
  const g3_pointwise_kernels *k = g3_pointwise();
  const int threads = g3_cpu_threads(s, g3_tensor_count(dst));
#pragma omp parallel for num_threads(threads)
  for (int64_t r = 0; r < dst.dim[0]; r++)
    k->widen(g3_tensor_at(dst, r * dst.stride[0]),
             g3_tensor_at(src, (row + r) * src.stride[0] + col), dst.dim[1]);
}

static void narrow_tile(g3_stream *s, g3_tensor dst, g3_tensor src) {
  const g3_pointwise_kernels *k = g3_pointwise();
  const int threads = g3_cpu_threads(s, g3_tensor_count(dst));
#pragma omp parallel for num_threads(threads)
  for (int64_t r = 0; r < dst.dim[0]; r++)
    k->narrow(g3_tensor_at(dst, r * dst.stride[0]), g3_tensor_at(src, r * src.stride[0]),
              dst.dim[1]);
}

static int64_t edge(int64_t total, int64_t at) {
  return total - at < EDGE ? total - at : EDGE;
}

/* One tile of C [rows, cols] at (i, j): the sum over tiles of k. */
static g3_status multiply_tile(g3_stream *s, g3_tensor c, g3_tensor a, g3_tensor b,
                               const g3_gemm_spec *spec, bool alone, int64_t i, int64_t j) {
  float *wide_a = s->workspace.data, *wide_b = wide_a + TILE, *wide_c = wide_b + TILE;
  float wide_bias[EDGE];
  const int64_t k = spec->trans_a ? a.dim[0] : a.dim[1];
  const g3_tensor tile =
      g3_tensor_part(g3_tensor_part(c, 0, i, edge(c.dim[0], i)), 1, j, edge(c.dim[1], j));
  const int64_t rows = tile.dim[0], cols = tile.dim[1];
  const g3_tensor sum = c.dtype == G3_F32 ? tile : tile_at(wide_c, rows, cols);
  g3_gemm_spec part = *spec;
  if (spec->bias.data) {
    part.bias = g3_tensor_1d(wide_bias, G3_F32, cols);
    g3_pointwise()->widen(wide_bias, g3_tensor_at(spec->bias, j), cols);
  }
  for (int64_t l = 0; l < k; l += EDGE) {
    const int64_t depth = edge(k, l);
    const g3_tensor ta =
        spec->trans_a ? tile_at(wide_a, depth, rows) : tile_at(wide_a, rows, depth);
    const g3_tensor tb =
        spec->trans_b ? tile_at(wide_b, cols, depth) : tile_at(wide_b, depth, cols);
    widen_tile(s, ta, a, spec->trans_a ? l : i, spec->trans_a ? i : l);
    widen_tile(s, tb, b, spec->trans_b ? j : l, spec->trans_b ? l : j);
    bool refused;
    G3_TRY(multiply(s->dev->impl, sum, ta, tb, &part, alone, &refused));
    part.accumulate = true;
    part.bias = g3_tensor_none();
  }
  if (c.dtype == G3_BF16) narrow_tile(s, tile, sum);
  return G3_OK;
}

static g3_status multiply_widened(g3_stream *s, g3_tensor c, g3_tensor a, g3_tensor b,
                                  const g3_gemm_spec *spec, bool alone) {
  const size_t have = s->workspace.data ? g3_tensor_bytes(s->workspace) : 0;
  G3_CHECK(have >= 3 * TILE * sizeof(float),
           "gemm: this processor multiplies bf16 in a workspace of %zu bytes, and the stream has "
           "%zu",
           3 * TILE * sizeof(float), have);
  for (int64_t i = 0; i < c.dim[0]; i += EDGE)
    for (int64_t j = 0; j < c.dim[1]; j += EDGE)
      G3_TRY(multiply_tile(s, c, a, b, spec, alone, i, j));
  return G3_OK;
}

g3_status g3_cpu_gemm_whole(g3_stream *s, g3_tensor c, g3_tensor a, g3_tensor b,
                            const g3_gemm_spec *spec, bool alone) {
  check(c, a, b, spec);
  if (c.dim[0] == 0 || c.dim[1] == 0) return G3_OK;
  bool refused;
  G3_TRY(multiply(s->dev->impl, c, a, b, spec, alone, &refused));
  return refused ? multiply_widened(s, c, a, b, spec, alone) : G3_OK;
}

g3_status g3_cpu_gemm(g3_stream *s, g3_tensor c, g3_tensor a, g3_tensor b,
                      const g3_gemm_spec *spec) {
  G3_TRY(g3_stream_drain(s));
  return spec->cut == G3_CUT_NONE ? g3_cpu_gemm_whole(s, c, a, b, spec, false)
                                  : g3_cpu_gemm_blocks(s, c, a, b, spec);
}
