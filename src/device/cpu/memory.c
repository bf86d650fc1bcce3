/* Memory, and the ops that only move or set it. Work is cut into blocks of a fixed size, whatever
 * the number of threads. */
#include "device/cpu/cpu.h"
#include "device/cpu/isa.h"
#include "device/cpu/kernels/pointwise.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, HUGE = 2 << 20, BLOCK = 1 << 15 /* elements; for copies bytes x 4 */ };

static void zero(char *p, size_t bytes, int threads) {
  const int64_t blocks = (int64_t)((bytes + HUGE - 1) / HUGE);
#pragma omp parallel for num_threads(threads) if (blocks > 1)
  for (int64_t i = 0; i < blocks; i++) {
    const size_t at = (size_t)i * HUGE;
    memset(p + at, 0, bytes - at < HUGE ? bytes - at : HUGE);
  }
}

g3_status g3_cpu_alloc(g3_device *dev, size_t bytes, void **out) {
  const size_t unit = bytes >= HUGE ? HUGE : PAGE;
  const size_t rounded = bytes == 0 ? unit : (bytes + unit - 1) / unit * unit;
  void *p = rounded >= bytes ? aligned_alloc(unit, rounded) : NULL;
  if (!p)
    return G3_FAIL(G3_ENOMEM,
                   "wanted %zu bytes of memory and got none; use more ranks, a smaller "
                   "micro_batch or a smaller model",
                   bytes);
  /* Advice only: where the kernel has no huge pages, small ones do. */
  if (unit == HUGE) (void)madvise(p, rounded, MADV_HUGEPAGE);
  zero(p, rounded, dev->threads);
  *out = p;
  return G3_OK;
}

void g3_cpu_release(g3_device *dev, void *p) {
  (void)dev;
  free(p);
}

static void check_pair(const char *op, g3_tensor dst, g3_tensor src) {
  G3_CHECK(g3_tensor_dense(dst) && g3_tensor_dense(src) &&
               g3_tensor_count(dst) == g3_tensor_count(src),
           "%s wants two dense tensors of one count, found %lld and %lld elements", op,
           (long long)g3_tensor_count(dst), (long long)g3_tensor_count(src));
}

static int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

g3_status g3_cpu_copy(g3_stream *s, g3_tensor dst, g3_tensor src) {
  G3_TRY(g3_stream_drain(s));
  check_pair("copy", dst, src);
  G3_CHECK(dst.dtype == src.dtype, "copy from %s to %s: use cast", g3_dtype_name(src.dtype),
           g3_dtype_name(dst.dtype));
  const int64_t bytes = (int64_t)g3_tensor_bytes(src), block = 4 * BLOCK;
  const int threads = g3_cpu_threads(s, bytes / 4);
#pragma omp parallel for num_threads(threads)
  for (int64_t i = 0; i < bytes; i += block)
    memcpy((char *)dst.data + i, (const char *)src.data + i, (size_t)smaller(block, bytes - i));
  return G3_OK;
}

g3_status g3_cpu_fill(g3_stream *s, g3_tensor dst, float value) {
  G3_TRY(g3_stream_drain(s));
  G3_CHECK(g3_tensor_dense(dst) && (dst.dtype == G3_F32 || dst.dtype == G3_BF16 || value == 0),
           "fill wants a dense tensor of f32 or bf16, or the value 0; found %s",
           g3_dtype_name(dst.dtype));
  const g3_pointwise_kernels *k = g3_pointwise();
  const int64_t n = g3_tensor_count(dst);
  const int threads = g3_cpu_threads(s, n);
#pragma omp parallel for num_threads(threads)
  for (int64_t i = 0; i < n; i += BLOCK) {
    const int64_t count = smaller(BLOCK, n - i);
    if (value == 0 && !signbit(value))
      memset(g3_tensor_at(dst, i), 0, (size_t)count * g3_dtype_bytes(dst.dtype));
    else
      k->fill(g3_tensor_at(dst, i), value, count, dst.dtype == G3_BF16);
  }
  return G3_OK;
}

g3_status g3_cpu_cast(g3_stream *s, g3_tensor dst, g3_tensor src) {
  G3_TRY(g3_stream_drain(s));
  check_pair("cast", dst, src);
  const bool down = src.dtype == G3_F32 && dst.dtype == G3_BF16;
  G3_CHECK(down || (src.dtype == G3_BF16 && dst.dtype == G3_F32),
           "cast goes between f32 and bf16; found %s to %s", g3_dtype_name(src.dtype),
           g3_dtype_name(dst.dtype));
  const g3_pointwise_kernels *k = g3_pointwise();
  const int64_t n = g3_tensor_count(src);
  const int threads = g3_cpu_threads(s, n);
#pragma omp parallel for num_threads(threads)
  for (int64_t i = 0; i < n; i += BLOCK)
    (down ? k->narrow : k->widen)(g3_tensor_at(dst, i), g3_tensor_at(src, i),
                                  smaller(BLOCK, n - i));
  return G3_OK;
}
