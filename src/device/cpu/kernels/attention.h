/* Causal attention of one head in tiles; see attention.c of the folder above for what is shared
 * out and how. */
#ifndef G3_DEVICE_CPU_KERNELS_ATTENTION_H
#define G3_DEVICE_CPU_KERNELS_ATTENTION_H
#include <stdbool.h>
#include <stdint.h>

/* [time, head_dim] of f32 or bf16: rows `stride` elements apart, each dense. */
typedef struct {
  void *data;
  int64_t stride;
} g3_rows;

/* Tile sizes. Each is a multiple of 4; those along which vectors run (forward queries, backward
 * keys) are multiples of 16. */
typedef struct {
  int64_t forward_queries, forward_keys;
  int64_t backward_queries, backward_keys;
} g3_attention_tiles;

/* Dropout of the probabilities: key and the last two counter words of the head's Philox blocks. A
 * probability is kept when its word is >= threshold. */
typedef struct {
  uint32_t key[2], sample, head;
  uint32_t threshold; /* 0 = no dropout */
  float kept; /* 1 / (1 - p) */
} g3_attention_drop;

/* One head of one sample. */
typedef struct {
  g3_rows q, k, v, o;
  float *lse; /* [time] */
  int64_t time, head_dim;
  float scale;
  bool bf16; /* what q, k, v, o and gradients are made of */
  g3_attention_drop drop;
  g3_attention_tiles tiles;
} g3_attention_head;

/* What the backward pass of one head reads and writes besides. */
typedef struct {
  g3_attention_head head;
  g3_rows dout, dq, dk, dv;
} g3_attention_grads;

/* The functions of one instruction set. */
typedef struct {
  /* o and lse of the queries [first, first + tiles.forward_queries) that exist. Scratch: see
   * g3_attention_forward_floats. */
  void (*forward)(const g3_attention_head *h, int64_t first, float *scratch);
  /* dq, dk, dv of all positions. Scratch: see g3_attention_backward_floats. */
  void (*backward)(const g3_attention_grads *g, float *scratch);
} g3_attention_kernels;

/* Floats of scratch that a call needs, aligned to 64 bytes. */
static inline int64_t g3_attention_forward_floats(const g3_attention_tiles *t, int64_t head_dim) {
  const int64_t q = t->forward_queries, k = t->forward_keys;
  return 2 * head_dim * q + k * (head_dim + q) + 3 * q;
}
static inline int64_t g3_attention_backward_floats(const g3_attention_tiles *t, int64_t head_dim) {
  const int64_t q = t->backward_queries, k = t->backward_keys, d = (head_dim + 15) / 16 * 16;
  return 5 * k * d + q * (2 * k + d + 1);
}

/* One table for each instruction set; the caller picks by g3_cpu_isa(). */
extern const g3_attention_kernels g3_attention_kernels_v2, g3_attention_kernels_v3,
    g3_attention_kernels_v4;

#endif
