#include "comm/sum16.h"
#include "util/array.h"
#include <string.h>

/* Of constant size: a compiler turns the loops over it into vector instructions. */
enum { BLOCK = 256 };

int64_t g3_sum16_range(int64_t count, int size) {
  return size == 2 || count <= G3_SUM16_DIRECT ? count : g3_ceil_div(count, size);
}

static void load_block(float *acc, const g3_bf16 *x) {
  for (int i = 0; i < BLOCK; i++)
    acc[i] = g3_bf16_to_f32(x[i]);
}

static void add_block(float *acc, const g3_bf16 *x) {
  for (int i = 0; i < BLOCK; i++)
    acc[i] += g3_bf16_to_f32(x[i]);
}

static void max_block(float *acc, const g3_bf16 *x) {
  for (int i = 0; i < BLOCK; i++) {
    const float f = g3_bf16_to_f32(x[i]);
    acc[i] = f > acc[i] ? f : acc[i];
  }
}

static void round_block(g3_bf16 *dst, const float *acc) {
  for (int i = 0; i < BLOCK; i++)
    dst[i] = g3_f32_to_bf16(acc[i]);
}

void g3_sum16_fold(g3_bf16 *dst, int64_t n, const g3_bf16 *parts, int64_t step, const g3_bf16 *own,
                   int me, int size, g3_redop op) {
  float acc[BLOCK];
  g3_bf16 block[BLOCK] = {0}; /* the last one is shorter: it is copied in and out */
  for (int64_t at = 0; at < n; at += BLOCK) {
    const size_t bytes = (size_t)(n - at < BLOCK ? n - at : BLOCK) * sizeof *block;
    for (int r = 0; r < size; r++) {
      const g3_bf16 *x = (r == me ? own : parts + (r - (r > me)) * step) + at;
      if (n - at < BLOCK) x = memcpy(block, x, bytes);
      if (r == 0)
        load_block(acc, x);
      else if (op == G3_SUM)
        add_block(acc, x);
      else
        max_block(acc, x);
    }
    round_block(block, acc);
    memcpy(dst + at, block, bytes);
  }
}
