/* Sums in one order whatever the layout: along trees, and without any rounding. */
#include "device/cpu/cpu.h"
#include "device/cpu/kernels/pointwise.h"
#include "util/fixed.h"
#include <math.h>
#include <string.h>

enum { BLOCK = 1 << 12 }; /* elements that a thread takes at a time */

static int64_t block_at(int64_t n, int64_t i) {
  return n - i < BLOCK ? n - i : BLOCK;
}

static bool is_f32(g3_tensor t) {
  return t.data && t.dtype == G3_F32 && g3_tensor_dense(t);
}

g3_status g3_cpu_add(g3_stream *s, g3_tensor y, g3_tensor x) {
  G3_TRY(g3_stream_drain(s));
  const int64_t n = g3_tensor_count(y);
  G3_CHECK(is_f32(y) && is_f32(x) && g3_tensor_count(x) == n,
           "add wants two dense f32 tensors of one count");
  const g3_pointwise_kernels *k = g3_pointwise();
  const int threads = g3_cpu_threads(s, n);
#pragma omp parallel for num_threads(threads)
  for (int64_t i = 0; i < n; i += BLOCK)
    k->add((float *)y.data + i, (const float *)x.data + i, block_at(n, i), false);
  return G3_OK;
}

/* Elements [i, i + n) of all parts, into those of the first. */
static void sum_parts(const g3_pointwise_kernels *k, float *first, int64_t parts, int64_t stride,
                      int64_t n) {
  for (int64_t step = 1; step < parts; step *= 2)
    for (int64_t p = 0; p < parts; p += 2 * step)
      k->add(first + p * stride, first + (p + step) * stride, n, false);
}

g3_status g3_cpu_tree_sum(g3_stream *s, g3_tensor out, g3_tensor parts) {
  G3_TRY(g3_stream_drain(s));
  const int64_t n = g3_tensor_count(out), count = parts.dim[0];
  G3_CHECK(
      is_f32(parts) && count > 0 && (count & (count - 1)) == 0 &&
          g3_tensor_count(parts) == count * n && g3_tensor_dense(out) &&
          (out.dtype == G3_F32 || out.dtype == G3_BF16),
      "tree_sum wants f32 parts [2^i, %lld] and a dense sum in f32 or bf16; found %lld of %lld",
      (long long)n, (long long)count, (long long)g3_tensor_count(parts));
  const g3_pointwise_kernels *k = g3_pointwise();
  float *first = parts.data;
  const int threads = g3_cpu_threads(s, n * count);
#pragma omp parallel for num_threads(threads)
  for (int64_t i = 0; i < n; i += BLOCK) {
    const int64_t here = block_at(n, i);
    sum_parts(k, first + i, count, n, here);
    if (out.dtype == G3_BF16)
      k->narrow(g3_tensor_at(out, i), first + i, here);
    else if (out.data != parts.data)
      memcpy(g3_tensor_at(out, i), first + i, (size_t)here * sizeof(float));
  }
  return G3_OK;
}

/* Significands are first added by exponent, as many as 63 bits hold whatever they are: 2^14
 * squares of 48 bits. Sets of bins take turns, since neighbours often share an exponent. */
enum { EXPONENTS = 256, SETS = 4, MOST = 1 << 14 };

static inline __attribute__((always_inline)) void
count_bins(const float *x, int64_t n, bool squares, int64_t bin[SETS][EXPONENTS]) {
  for (int64_t i = 0; i < n; i++) {
    uint32_t bits;
    memcpy(&bits, &x[i], sizeof bits);
    const uint32_t exponent = bits >> 23 & 255;
    const int64_t significand = (int64_t)((bits & 0x7fffff) | (uint32_t)(exponent != 0) << 23);
    /* what is not finite is only noticed, whatever its sign */
    const int64_t minus = -(int64_t)(bits >> 31 & (exponent != 255));
    const int64_t value = (significand ^ minus) - minus;
    bin[i % SETS][exponent] += squares ? significand * significand : value;
  }
}

/* x [n], n <= MOST; returns the sum of what is not finite, 0 when all is. */
static double add_block(g3_fixed *sum, const float *x, int64_t n, bool squares) {
  int64_t bin[SETS][EXPONENTS];
  double odd = 0;
  bool seen = false;
  memset(bin, 0, sizeof bin);
  if (squares)
    count_bins(x, n, true, bin);
  else
    count_bins(x, n, false, bin);
  for (int e = 0; e < EXPONENTS - 1; e++) {
    /* the significand's last bit counts 2^(e - 150), and 2^-149 below the normal range */
    const int place = (e ? e : 1) - 150;
    for (int set = 0; set < SETS; set++)
      if (bin[set][e])
        g3_fixed_add(sum, bin[set][e], (squares ? 2 * place : place) + G3_FIXED_UNIT);
  }
  for (int set = 0; set < SETS; set++)
    seen = seen || bin[set][EXPONENTS - 1];
  for (int64_t i = 0; seen && i < n; i++)
    if (!isfinite(x[i])) odd += squares ? (double)x[i] * (double)x[i] : (double)x[i];
  g3_fixed_carry(sum);
  return odd;
}

g3_status g3_cpu_exact_sum(g3_stream *s, g3_tensor sum, g3_tensor x, bool squares) {
  G3_TRY(g3_stream_drain(s));
  const int64_t n = g3_tensor_count(x);
  G3_CHECK(sum.dtype == G3_F64 && g3_tensor_dense(sum) && g3_tensor_count(sum) == G3_FIXED_SIZE &&
               (n == 0 || is_f32(x)),
           "exact_sum wants a dense f32 tensor and %d float64", (int)G3_FIXED_SIZE);
  double *memory = sum.data;
  g3_fixed all;
  g3_fixed_load(&all, memory);
  const int threads = g3_cpu_threads(s, n);
#pragma omp parallel num_threads(threads)
  {
    g3_fixed mine = {{0}};
    double odd = 0;
#pragma omp for
    for (int64_t i = 0; i < n; i += MOST)
      odd += add_block(&mine, (const float *)x.data + i, n - i < MOST ? n - i : MOST, squares);
#pragma omp critical(exact_sum)
    {
      for (int i = 0; i < G3_FIXED_LIMBS; i++)
        all.limb[i] += mine.limb[i];
      memory[G3_FIXED_LIMBS] += odd;
    }
  }
  g3_fixed_carry(&all);
  g3_fixed_store(&all, memory);
  return G3_OK;
}

g3_status g3_cpu_exact_value(g3_stream *s, g3_tensor out, g3_tensor sums) {
  G3_TRY(g3_stream_drain(s));
  const int64_t n = g3_tensor_count(out);
  G3_CHECK(out.dtype == G3_F64 && g3_tensor_dense(out) && sums.dtype == G3_F64 &&
               g3_tensor_dense(sums) && g3_tensor_count(sums) == n * G3_FIXED_SIZE,
           "exact_value wants float64 [n] and float64 [n, %d]", (int)G3_FIXED_SIZE);
  for (int64_t i = 0; i < n; i++) {
    const double *memory = (const double *)sums.data + i * G3_FIXED_SIZE;
    const double odd = memory[G3_FIXED_LIMBS];
    g3_fixed a;
    g3_fixed_load(&a, memory);
    ((double *)out.data)[i] = odd == 0 ? g3_fixed_value(&a) : odd;
  }
  return G3_OK;
}
