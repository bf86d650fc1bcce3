/* Small dense products and transpositions of tiles in f32, the inner loops of attention. For files
 * of kernels/: vectors are as wide as the instruction set that the file is compiled for. */
#ifndef G3_DEVICE_CPU_KERNELS_TILE_H
#define G3_DEVICE_CPU_KERNELS_TILE_H
#include "device/cpu/kernels/vmath.h"

/* Floats in a vector, and how many vectors of a row of C a block keeps in registers. */
#if defined __AVX512F__
enum { G3_LANES = 16, G3_PANEL = 4 };
#elif defined __AVX2__
enum { G3_LANES = 8, G3_PANEL = 2 };
#else
enum { G3_LANES = 4, G3_PANEL = 2 };
#endif

typedef float g3_vec __attribute__((vector_size(4 * G3_LANES), aligned(4), may_alias));
typedef uint32_t g3_vec_bits __attribute__((vector_size(4 * G3_LANES)));
typedef g3_bf16 g3_vec_bf16 __attribute__((vector_size(2 * G3_LANES), aligned(2), may_alias));
typedef float g3_quad __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t g3_quad_pick __attribute__((vector_size(16)));

#define G3_INLINE static inline __attribute__((always_inline))

/* The vector at element i of f32 or bf16 memory. `bf16` is a constant where this is inlined. */
G3_INLINE g3_vec g3_load(const void *p, int64_t i, bool bf16) {
  if (!bf16) return *(const g3_vec *)((const float *)p + i);
  const g3_vec_bf16 half = *(const g3_vec_bf16 *)((const g3_bf16 *)p + i);
  return (g3_vec)(__builtin_convertvector(half, g3_vec_bits) << 16);
}

/* The sum of a vector's elements. */
G3_INLINE float g3_vec_sum(g3_vec x) {
  float part[G3_LANES];
  memcpy(part, &x, sizeof part);
  g3_quad sum = *(const g3_quad *)part;
  for (int i = 4; i < G3_LANES; i += 4)
    sum += *(const g3_quad *)(part + i);
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* The dot product of n elements of a with n of b. */
G3_INLINE float g3_dot(const float *a, const void *b, int64_t n, bool bf16) {
  g3_vec sum = {0};
  int64_t i = 0;
  for (; i + G3_LANES <= n; i += G3_LANES)
    sum += *(const g3_vec *)(a + i) * g3_load(b, i, bf16);
  float all = g3_vec_sum(sum);
  for (; i < n; i++)
    all += a[i] * g3_get(b, i, bf16);
  return all;
}

/* Rows of a block, by its vectors: enough sums in flight to hide the latency of a fused
 * multiply-add, few enough to stay in registers (32 with AVX-512, otherwise 16). */
G3_INLINE int g3_block_rows(int vectors) {
  if (vectors == 1) return 8;
  return G3_PANEL == 4 && vectors < 4 ? 8 : 4;
}

/* C [rows, vectors * G3_LANES] (+)= A [rows, depth] B [depth, ..]; A is stored [depth, rows] when
 * `trans`. Each row of A is broadcast, each row of B is loaded once a step. */
G3_INLINE void g3_block(int rows, int vectors, bool trans, float *c, int64_t ldc, const float *a,
                        int64_t lda, const float *b, int64_t ldb, int64_t depth, bool add) {
  g3_vec sum[8][4];
#pragma GCC unroll 8
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++)
      sum[r][v] = add ? *(const g3_vec *)(c + r * ldc + v * G3_LANES) : (g3_vec){0};
  for (int64_t k = 0; k < depth; k++) {
    g3_vec row[4];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++)
      row[v] = *(const g3_vec *)(b + k * ldb + v * G3_LANES);
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) {
      const float x = trans ? a[k * lda + r] : a[r * lda + k];
#pragma GCC unroll 4
      for (int v = 0; v < vectors; v++)
        sum[r][v] += x * row[v];
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
    for (int v = 0; v < vectors; v++)
      *(g3_vec *)(c + r * ldc + v * G3_LANES) = sum[r][v];
}

/* The same for any number of rows of a strip that is `vectors` wide. */
G3_INLINE void g3_strip(int vectors, bool trans, float *c, int64_t ldc, const float *a, int64_t lda,
                        const float *b, int64_t ldb, int64_t m, int64_t depth, bool add) {
  const int rows = g3_block_rows(vectors);
  const int64_t step = trans ? 1 : lda;
  int64_t i = 0;
  for (; i + rows <= m; i += rows)
    g3_block(rows, vectors, trans, c + i * ldc, ldc, a + i * step, lda, b, ldb, depth, add);
  for (; i < m; i++)
    g3_block(1, vectors, trans, c + i * ldc, ldc, a + i * step, lda, b, ldb, depth, add);
}

G3_INLINE void g3_strips(bool trans, float *c, int64_t ldc, const float *a, int64_t lda,
                         const float *b, int64_t ldb, int64_t m, int64_t n, int64_t depth,
                         bool add) {
  for (int64_t j = 0; j < n;) {
    const int64_t left = (n - j) / G3_LANES;
    /* Five vectors are better cut into 3 + 2 than into 4 + 1. */
    const int64_t vectors = left > G3_PANEL && left < 2 * G3_PANEL
                                ? (left + 1) / 2
                                : (left < G3_PANEL ? left : G3_PANEL);
    float *cj = c + j;
    const float *bj = b + j;
    if (vectors == 1)
      g3_strip(1, trans, cj, ldc, a, lda, bj, ldb, m, depth, add);
    else if (vectors == 2)
      g3_strip(2, trans, cj, ldc, a, lda, bj, ldb, m, depth, add);
    else if (G3_PANEL == 4 && vectors == 3)
      g3_strip(3, trans, cj, ldc, a, lda, bj, ldb, m, depth, add);
    else if (G3_PANEL == 4)
      g3_strip(4, trans, cj, ldc, a, lda, bj, ldb, m, depth, add);
    j += vectors * G3_LANES;
  }
}

/* C [m, n] (+)= A [m, depth] B [depth, n]; n is a multiple of G3_LANES. */
__attribute__((noinline)) static void g3_product(float *c, int64_t ldc, const float *a, int64_t lda,
                                                 const float *b, int64_t ldb, int64_t m, int64_t n,
                                                 int64_t depth, bool add) {
  g3_strips(false, c, ldc, a, lda, b, ldb, m, n, depth, add);
}

/* C [m, n] (+)= A' B with A stored [depth, m]; n is a multiple of G3_LANES. */
__attribute__((noinline)) static void g3_product_t(float *c, int64_t ldc, const float *a,
                                                   int64_t lda, const float *b, int64_t ldb,
                                                   int64_t m, int64_t n, int64_t depth, bool add) {
  g3_strips(true, c, ldc, a, lda, b, ldb, m, n, depth, add);
}

/* dst [cols, rows] = factor * the transpose of src [rows, cols]. */
static inline void g3_transpose(float *dst, int64_t ldd, const float *src, int64_t lds,
                                int64_t rows, int64_t cols, float factor) {
  const int64_t rows4 = rows & ~INT64_C(3), cols4 = cols & ~INT64_C(3);
  const g3_quad_pick lo = {0, 4, 1, 5}, hi = {2, 6, 3, 7};
  for (int64_t r = 0; r < rows4; r += 4)
    for (int64_t c = 0; c < cols4; c += 4) {
      const float *s = src + r * lds + c;
      const g3_quad x0 = *(const g3_quad *)s * factor;
      const g3_quad x1 = *(const g3_quad *)(s + lds) * factor;
      const g3_quad x2 = *(const g3_quad *)(s + 2 * lds) * factor;
      const g3_quad x3 = *(const g3_quad *)(s + 3 * lds) * factor;
      const g3_quad a = __builtin_shuffle(x0, x2, lo), b = __builtin_shuffle(x1, x3, lo);
      const g3_quad e = __builtin_shuffle(x0, x2, hi), f = __builtin_shuffle(x1, x3, hi);
      float *d = dst + c * ldd + r;
      *(g3_quad *)d = __builtin_shuffle(a, b, lo);
      *(g3_quad *)(d + ldd) = __builtin_shuffle(a, b, hi);
      *(g3_quad *)(d + 2 * ldd) = __builtin_shuffle(e, f, lo);
      *(g3_quad *)(d + 3 * ldd) = __builtin_shuffle(e, f, hi);
    }
  for (int64_t r = 0; r < rows; r++)
    for (int64_t c = r < rows4 ? cols4 : 0; c < cols; c++)
      dst[c * ldd + r] = src[r * lds + c] * factor;
}

#endif
