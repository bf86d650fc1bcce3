#include "comm/sum16.h"
#include "util/array.h"

enum { BLOCK = 256 };

int64_t g3_sum16_range(int64_t count, int size) {
  return size == 2 || count <= G3_SUM16_DIRECT ? count : g3_ceil_div(count, size);
}

/* acc (op)= x, exactly in f32. */
static void fold_block(float *acc, const g3_bf16 *x, int n, g3_redop op) {
  if (op == G3_SUM) {
    for (int i = 0; i < n; i++)
      acc[i] += g3_bf16_to_f32(x[i]);
  } else {
    for (int i = 0; i < n; i++) {
      const float f = g3_bf16_to_f32(x[i]);
      acc[i] = f > acc[i] ? f : acc[i];
    }
  }
}

void g3_sum16_fold(g3_bf16 *dst, int64_t n, const g3_bf16 *parts, int64_t step, const g3_bf16 *own,
                   int me, int size, g3_redop op) {
  float acc[BLOCK];
  for (int64_t at = 0; at < n; at += BLOCK) {
    const int len = n - at < BLOCK ? (int)(n - at) : BLOCK;
    for (int r = 0; r < size; r++) {
      const g3_bf16 *x = (r == me ? own : parts + (r - (r > me)) * step) + at;
      if (r > 0) {
        fold_block(acc, x, len, op);
      } else {
        for (int i = 0; i < len; i++)
          acc[i] = g3_bf16_to_f32(x[i]);
      }
    }
    for (int i = 0; i < len; i++)
      dst[at + i] = g3_f32_to_bf16(acc[i]);
  }
}
