/* Sums. A column belongs to one thread, and float64 sums are cut into blocks that depend on the
 * count alone: no result depends on the number of threads. */
#include "device/cpu/kernels/reduce.h"
#include "device/cpu/cpu.h"

enum { STRIPE = 64, MAX_BLOCKS = 256, MIN_BLOCK = 1 << 13 };

g3_status g3_cpu_column_sum(g3_stream *s, g3_tensor sum, g3_tensor x) {
  G3_TRY(g3_stream_drain(s));
  const int64_t m = x.dim[0], n = x.dim[1];
  G3_CHECK(x.ndim == 2 && (n <= 1 || x.stride[1] == 1) && g3_tensor_dense(sum) &&
               sum.dtype == G3_F32 && g3_tensor_count(sum) == n,
           "column_sum wants x [m, n] with dense rows and f32 sums [n]");
  const g3_reduce_kernels *k = g3_reduce();
  const int threads = g3_cpu_threads(s, m * n);
#pragma omp parallel for num_threads(threads)
  for (int64_t c = 0; c < n; c += STRIPE)
    k->columns((float *)sum.data + c, g3_tensor_at(x, c), x.stride[0], m,
               n - c < STRIPE ? n - c : STRIPE, x.dtype == G3_BF16);
  return G3_OK;
}

typedef double (*sum_kernel)(const void *x, int64_t n, bool bf16);

static g3_status sum_blocks(g3_stream *s, g3_tensor out, g3_tensor x, sum_kernel kernel) {
  G3_TRY(g3_stream_drain(s));
  const int64_t n = g3_tensor_count(x);
  G3_CHECK(out.dtype == G3_F64 && g3_tensor_count(out) == 1 && g3_tensor_dense(x) &&
               (x.dtype == G3_F32 || x.dtype == G3_BF16),
           "sums want a dense f32 or bf16 tensor and one float64");
  const int64_t even = g3_round_up(g3_ceil_div(n, MAX_BLOCKS), 64);
  const int64_t block = even < MIN_BLOCK ? MIN_BLOCK : even;
  const int64_t blocks = g3_ceil_div(n, block);
  double part[MAX_BLOCKS];
  const int threads = g3_cpu_threads(s, n);
#pragma omp parallel for num_threads(threads)
  for (int64_t i = 0; i < blocks; i++) {
    const int64_t left = n - i * block;
    part[i] = kernel(g3_tensor_at(x, i * block), left < block ? left : block, x.dtype == G3_BF16);
  }
  double total = 0;
  for (int64_t i = 0; i < blocks; i++)
    total += part[i];
  *(double *)out.data += total;
  return G3_OK;
}

g3_status g3_cpu_sum(g3_stream *s, g3_tensor out, g3_tensor x) {
  return sum_blocks(s, out, x, g3_reduce()->sum);
}

g3_status g3_cpu_sum_squares(g3_stream *s, g3_tensor out, g3_tensor x) {
  return sum_blocks(s, out, x, g3_reduce()->squares);
}
