/* Attention in tiles (Dao et al., FlashAttention, 2022, algorithms 1 and 4). All sums are in f32,
 * bf16 is widened as it is read.
 *
 * Forward takes one tile of queries through the keys before it. Queries run along the vectors: with
 * S' = K Q' [keys, queries] and O' = V' P' [head_dim, queries], K and V are only broadcast, so that
 * any head_dim is fast, and each query's maximum and sum are plain vector operations.
 *
 * Backward takes one tile of keys through the queries after it, so that dk and dv are summed in one
 * place. Keys run along the vectors: S = Q K', dP = dO V' [queries, keys]; dV' += dO' P and dK' +=
 * Q' dS [head_dim, keys] stay in scratch, and dq += dS K goes to memory. When that is bf16, the
 * lower halves of the f32 sums of a query wait in the row of dk at its position, which is written
 * only after the last key that the query sees. */
#include "device/cpu/kernels/attention.h"
#include "device/cpu/isa.h"
#include "device/cpu/kernels/tile.h"
#include "util/philox.h"
#include <math.h>
#include <string.h>

/* Steps along the diagonal, where smaller tiles waste less on pairs that the mask hides. */
enum { DIAGONAL = 16 };

/* Philox blocks that are made at a time. */
enum { BLOCKS = 16 };

static int64_t min_of(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static int64_t lanes_up(int64_t n) {
  return (n + G3_LANES - 1) / G3_LANES * G3_LANES;
}

/* f32 rows that can only be read, `stride` apart. */
typedef struct {
  const float *data;
  int64_t stride;
} f32_rows;

/* Rows [first, first + n) as f32: where they lie, or widened into `buffer` [n, head_dim]. */
static f32_rows read_rows(g3_rows x, bool bf16, int64_t first, int64_t n, int64_t head_dim,
                          float *buffer) {
  if (!bf16) return (f32_rows){(const float *)x.data + first * x.stride, x.stride};
  for (int64_t i = 0; i < n; i++) {
    const g3_bf16 *from = (const g3_bf16 *)x.data + (first + i) * x.stride;
    float *to = buffer + i * head_dim;
    for (int64_t d = 0; d < head_dim; d++)
      to[d] = g3_bf16_to_f32(from[d]);
  }
  return (f32_rows){buffer, head_dim};
}

static void write_rows(g3_rows x, bool bf16, int64_t first, int64_t n, int64_t head_dim,
                       const float *from, int64_t stride) {
  for (int64_t i = 0; i < n; i++, from += stride) {
    if (bf16) {
      g3_bf16 *to = (g3_bf16 *)x.data + (first + i) * x.stride;
      for (int64_t d = 0; d < head_dim; d++)
        to[d] = g3_f32_to_bf16(from[d]);
    } else {
      float *to = (float *)x.data + (first + i) * x.stride;
      memcpy(to, from, (size_t)head_dim * sizeof *to);
    }
  }
}

/* word[w][b] is word w of the block with counter {c0[b], c1[b], sample, head}. */
static void random_words(const g3_attention_drop *drop, const uint32_t *c0, const uint32_t *c1,
                         uint32_t word[4][BLOCKS]) {
#pragma omp simd
  for (int b = 0; b < BLOCKS; b++) {
    const g3_philox_block x =
        g3_philox(drop->key[0], drop->key[1], c0[b], c1[b], drop->sample, drop->head);
    word[0][b] = x.w[0];
    word[1][b] = x.w[1];
    word[2][b] = x.w[2];
    word[3][b] = x.w[3];
  }
}

/* ---- forward ---- */

typedef struct {
  const g3_attention_head *h;
  int64_t first, lanes; /* first query; queries rounded up to whole vectors */
  float *q_t, *o_t; /* [head_dim, lanes] */
  float *kv, *p; /* [keys, head_dim]; [keys, lanes] */
  float *peak, *sum, *shrink; /* [lanes] */
} forward_tile;

/* Hides the keys after each query, for queries from `lane` on. */
static void mask_scores(const forward_tile *t, int64_t lane, int64_t key, int64_t nk) {
  for (int64_t j = 0; j < nk; j++) {
    const int64_t hidden = min_of(key + j - t->first, t->lanes);
    for (int64_t i = lane; i < hidden; i++)
      t->p[j * t->lanes + i] = -INFINITY;
  }
}

/* Turns scores into exp(score - peak) for queries from `lane` on, and makes what was summed before
 * relative to the new peak. */
static void soften(const forward_tile *t, int64_t lane, int64_t nk, bool begin) {
  const int64_t n = t->lanes, d = t->h->head_dim;
  float *peak = t->peak, *sum = t->sum, *shrink = t->shrink;
#pragma omp simd
  for (int64_t i = lane; i < n; i++)
    shrink[i] = peak[i];
  for (int64_t j = 0; j < nk; j++) {
    const float *row = t->p + j * n;
#pragma omp simd
    for (int64_t i = lane; i < n; i++)
      peak[i] = row[i] > peak[i] ? row[i] : peak[i];
  }
  int moved = 0;
#pragma omp simd reduction(| : moved)
  for (int64_t i = lane; i < n; i++) {
    moved |= shrink[i] != peak[i];
    shrink[i] = g3_expf(shrink[i] - peak[i]);
    sum[i] *= shrink[i];
  }
  for (int64_t j = 0; j < nk; j++) {
    float *row = t->p + j * n;
#pragma omp simd
    for (int64_t i = lane; i < n; i++) {
      row[i] = g3_expf(row[i] - peak[i]);
      sum[i] += row[i];
    }
  }
  if (begin || !moved) return;
  for (int64_t c = 0; c < d; c++) {
    float *row = t->o_t + c * n;
#pragma omp simd
    for (int64_t i = lane; i < n; i++)
      row[i] *= shrink[i];
  }
}

/* Zeroes the dropped probabilities. */
static void drop_forward(const forward_tile *t, int64_t lane, int64_t key, int64_t nk) {
  const g3_attention_drop *drop = &t->h->drop;
  uint32_t c0[BLOCKS], c1[BLOCKS], word[4][BLOCKS];
  for (int64_t j = 0; j < nk; j += 4)
    for (int64_t i = lane; i < t->lanes; i += BLOCKS) {
      for (int b = 0; b < BLOCKS; b++) {
        c0[b] = (uint32_t)((key + j) / 4);
        c1[b] = (uint32_t)(t->first + i + b);
      }
      random_words(drop, c0, c1, word);
      const int64_t n = min_of(BLOCKS, t->lanes - i);
      for (int64_t w = 0; w < min_of(4, nk - j); w++) {
        float *row = t->p + (j + w) * t->lanes + i;
        for (int64_t b = 0; b < n; b++)
          row[b] = word[w][b] >= drop->threshold ? row[b] : 0;
      }
    }
}

/* Adds the keys [key, key + nk). */
static void forward_keys(const forward_tile *t, int64_t key, int64_t nk) {
  const g3_attention_head *h = t->h;
  const int64_t d = h->head_dim, n = t->lanes;
  const bool diagonal = key + nk - 1 > t->first;
  const int64_t lane = diagonal ? (key - t->first) / G3_LANES * G3_LANES : 0;
  const f32_rows k = read_rows(h->k, h->bf16, key, nk, d, t->kv);
  g3_product(t->p + lane, n, k.data, k.stride, t->q_t + lane, n, nk, n - lane, d, false);
  if (diagonal) mask_scores(t, lane, key, nk);
  soften(t, lane, nk, key == 0);
  if (h->drop.threshold) drop_forward(t, lane, key, nk);
  const f32_rows v = read_rows(h->v, h->bf16, key, nk, d, t->kv);
  g3_product_t(t->o_t + lane, n, v.data, v.stride, t->p + lane, n, d, n - lane, nk, key > 0);
}

static void forward_end(const forward_tile *t, int64_t nq) {
  const g3_attention_head *h = t->h;
  const int64_t d = h->head_dim, n = t->lanes;
  for (int64_t i = 0; i < nq; i++)
    h->lse[t->first + i] = t->peak[i] + logf(t->sum[i]);
  for (int64_t i = 0; i < n; i++)
    t->shrink[i] = h->drop.kept / t->sum[i];
  for (int64_t c = 0; c < d; c++)
    for (int64_t i = 0; i < n; i++)
      t->o_t[c * n + i] *= t->shrink[i];
  float *rows = t->q_t; /* no longer needed */
  g3_transpose(rows, d, t->o_t, n, d, nq, 1);
  write_rows(h->o, h->bf16, t->first, nq, d, rows, d);
}

static void forward(const g3_attention_head *h, int64_t first, float *scratch) {
  const int64_t d = h->head_dim, nq = min_of(h->tiles.forward_queries, h->time - first);
  const int64_t n = lanes_up(nq), end = first + nq;
  forward_tile t = {.h = h, .first = first, .lanes = n, .q_t = scratch};
  t.o_t = t.q_t + d * n;
  t.p = t.o_t + d * n;
  t.peak = t.p + h->tiles.forward_keys * n;
  t.sum = t.peak + n;
  t.shrink = t.sum + n;
  t.kv = t.shrink + n;
  const f32_rows q = read_rows(h->q, h->bf16, first, nq, d, t.o_t);
  g3_transpose(t.q_t, n, q.data, q.stride, nq, d, h->scale);
  for (int64_t i = 0; i < n; i++) {
    t.peak[i] = -INFINITY;
    t.sum[i] = 0;
    for (int64_t c = 0; i >= nq && c < d; c++)
      t.q_t[c * n + i] = 0;
  }
  int64_t nk;
  for (int64_t key = 0; key < end; key += nk) {
    nk = key < first ? min_of(h->tiles.forward_keys, first - key) : min_of(DIAGONAL, end - key);
    forward_keys(&t, key, nk);
  }
  forward_end(&t, nq);
}

/* ---- backward ---- */

typedef struct {
  const g3_attention_grads *g;
  int64_t key, nk, tile; /* the keys [key, key + nk) of a tile of `tile` */
  int64_t wide; /* head_dim rounded up to whole vectors */
  float *k; /* scale * K [tile, wide] */
  float *k_t, *v_t; /* scale * K', V' [head_dim, tile], zero from key nk on */
  float *dk_t, *dv_t; /* [head_dim, tile] */
  float *p, *dp; /* [queries, n] */
  float *rows; /* [queries, wide] */
  float *delta; /* [queries] */
} backward_tile;

/* P = exp(scores - lse), 0 for keys after the query. */
static void probabilities(const backward_tile *t, int64_t first, int64_t nq, int64_t n) {
  for (int64_t i = 0; i < nq; i++) {
    const float lse = t->g->head.lse[first + i];
    float *row = t->p + i * n;
#pragma omp simd
    for (int64_t j = 0; j < n; j++)
      row[j] = g3_expf(row[j] - lse);
    for (int64_t j = first + i + 1 - t->key; j < n; j++)
      row[j] = 0;
  }
}

/* Drops gradients of dropped probabilities, and turns the sign of those probabilities. */
static void drop_backward(const backward_tile *t, int64_t first, int64_t nq, int64_t n) {
  const g3_attention_drop *drop = &t->g->head.drop;
  uint32_t c0[BLOCKS], c1[BLOCKS], word[4][BLOCKS];
  const int64_t in_row = n / 4, all = nq * in_row;
  for (int64_t at = 0; at < all; at += BLOCKS) {
    for (int b = 0; b < BLOCKS; b++) {
      c0[b] = (uint32_t)(t->key / 4 + (at + b) % in_row);
      c1[b] = (uint32_t)(first + (at + b) / in_row);
    }
    random_words(drop, c0, c1, word);
    const int64_t blocks = min_of(BLOCKS, all - at);
    for (int64_t b = 0; b < blocks; b++)
      for (int w = 0; w < 4; w++) {
        const int64_t e = 4 * (at + b) + w;
        const bool keep = word[w][b] >= drop->threshold;
        t->dp[e] = keep ? t->dp[e] * drop->kept : 0;
        t->p[e] = keep ? t->p[e] : -t->p[e];
      }
  }
}

/* delta = dout . o of each query, which is also the sum of P dP over its keys. Made anew for each
 * tile of keys: that costs a few percent and no memory that grows with time. */
static void make_delta(const backward_tile *t, f32_rows dout, int64_t first, int64_t nq) {
  const g3_attention_head *h = &t->g->head;
  for (int64_t i = 0; i < nq; i++) {
    const float *a = dout.data + i * dout.stride;
    const int64_t at = (first + i) * h->o.stride;
    t->delta[i] = h->bf16 ? g3_dot(a, (const g3_bf16 *)h->o.data + at, h->head_dim, true)
                          : g3_dot(a, (const float *)h->o.data + at, h->head_dim, false);
  }
}

/* dP becomes dS = P (dP - delta), and P what the forward pass multiplied V with. */
static void score_gradients(const backward_tile *t, int64_t first, int64_t nq, int64_t n) {
  const float kept = t->g->head.drop.kept;
  for (int64_t i = 0; i < nq; i++) {
    const float delta = t->delta[i];
    float *p = t->p + i * n, *dp = t->dp + i * n;
#pragma omp simd
    for (int64_t j = 0; j < n; j++) {
      dp[j] = fabsf(p[j]) * (dp[j] - delta);
      p[j] = p[j] < 0 ? 0 : p[j] * kept;
    }
    for (int64_t j = first + i + 1 - t->key; j < n; j++)
      dp[j] = 0;
  }
}

/* Adds t->rows to dq. */
static void add_dq(const backward_tile *t, int64_t first, int64_t nq) {
  const g3_attention_grads *g = t->g;
  const bool begin = t->key == 0;
  for (int64_t i = 0; i < nq; i++) {
    const float *from = t->rows + i * t->wide;
    if (g->head.bf16) {
      g3_bf16 *high = (g3_bf16 *)g->dq.data + (first + i) * g->dq.stride;
      g3_bf16 *low = (g3_bf16 *)g->dk.data + (first + i) * g->dk.stride;
      for (int64_t c = 0; c < g->head.head_dim; c++) {
        const float sum = begin ? 0 : g3_float_of_bits((uint32_t)high[c] << 16 | low[c]);
        const uint32_t bits = g3_bits_of_float(sum + from[c]);
        high[c] = (g3_bf16)(bits >> 16);
        low[c] = (g3_bf16)bits;
      }
    } else {
      float *to = (float *)g->dq.data + (first + i) * g->dq.stride;
      for (int64_t c = 0; c < g->head.head_dim; c++)
        to[c] = (begin ? 0 : to[c]) + from[c];
    }
  }
}

/* Rounds the sums of dq at the tile's own positions: no later key gives to them. */
static void round_dq(const backward_tile *t) {
  const g3_attention_grads *g = t->g;
  for (int64_t j = t->key; j < t->key + t->nk; j++) {
    g3_bf16 *high = (g3_bf16 *)g->dq.data + j * g->dq.stride;
    const g3_bf16 *low = (const g3_bf16 *)g->dk.data + j * g->dk.stride;
    for (int64_t c = 0; c < g->head.head_dim; c++)
      high[c] = g3_f32_to_bf16(g3_float_of_bits((uint32_t)high[c] << 16 | low[c]));
  }
}

/* Adds what the queries [first, first + nq) give to dk, dv and dq. */
static void backward_queries(const backward_tile *t, int64_t first, int64_t nq) {
  const g3_attention_head *h = &t->g->head;
  const int64_t d = h->head_dim, ld = t->tile;
  const int64_t n = min_of(ld, lanes_up(first + nq - t->key)); /* the rest is hidden */
  f32_rows q = read_rows(h->q, h->bf16, first, nq, d, t->rows);
  g3_product(t->p, n, q.data, q.stride, t->k_t, ld, nq, n, d, false);
  probabilities(t, first, nq, n);
  const f32_rows dout = read_rows(t->g->dout, h->bf16, first, nq, d, t->rows);
  g3_product(t->dp, n, dout.data, dout.stride, t->v_t, ld, nq, n, d, false);
  make_delta(t, dout, first, nq);
  if (h->drop.threshold) drop_backward(t, first, nq, n);
  score_gradients(t, first, nq, n);
  g3_product_t(t->dv_t, ld, dout.data, dout.stride, t->p, n, d, n, nq, true);
  q = read_rows(h->q, h->bf16, first, nq, d, t->rows);
  g3_product_t(t->dk_t, ld, q.data, q.stride, t->dp, n, d, n, nq, true);
  g3_product(t->rows, t->wide, t->dp, n, t->k, t->wide, nq, t->wide, min_of(n, t->nk), false);
  add_dq(t, first, nq);
}

static void backward_begin(const backward_tile *t) {
  const g3_attention_head *h = &t->g->head;
  const int64_t d = h->head_dim, ld = t->tile, all = ld * d;
  float *buffer = t->dk_t; /* not yet needed */
  memset(t->k_t, 0, (size_t)all * sizeof(float));
  memset(t->v_t, 0, (size_t)all * sizeof(float));
  memset(t->k, 0, (size_t)(ld * t->wide) * sizeof(float));
  const f32_rows k = read_rows(h->k, h->bf16, t->key, t->nk, d, buffer);
  g3_transpose(t->k_t, ld, k.data, k.stride, t->nk, d, h->scale);
  for (int64_t j = 0; j < t->nk; j++)
    for (int64_t c = 0; c < d; c++)
      t->k[j * t->wide + c] = h->scale * k.data[j * k.stride + c];
  const f32_rows v = read_rows(h->v, h->bf16, t->key, t->nk, d, buffer);
  g3_transpose(t->v_t, ld, v.data, v.stride, t->nk, d, 1);
  memset(t->dk_t, 0, (size_t)all * sizeof(float));
  memset(t->dv_t, 0, (size_t)all * sizeof(float));
}

static void backward_end(const backward_tile *t) {
  const g3_attention_grads *g = t->g;
  const int64_t d = g->head.head_dim;
  float *rows = t->k; /* no longer needed */
  if (g->head.bf16) round_dq(t);
  g3_transpose(rows, d, t->dk_t, t->tile, d, t->nk, g->head.scale);
  write_rows(g->dk, g->head.bf16, t->key, t->nk, d, rows, d);
  g3_transpose(rows, d, t->dv_t, t->tile, d, t->nk, 1);
  write_rows(g->dv, g->head.bf16, t->key, t->nk, d, rows, d);
}

static void backward(const g3_attention_grads *g, float *scratch) {
  const g3_attention_head *h = &g->head;
  const int64_t tile = h->tiles.backward_keys, queries = h->tiles.backward_queries;
  const int64_t wide = lanes_up(h->head_dim), part = tile * wide;
  backward_tile t = {.g = g, .tile = tile, .wide = wide, .k = scratch};
  t.k_t = t.k + part;
  t.v_t = t.k_t + part;
  t.dk_t = t.v_t + part;
  t.dv_t = t.dk_t + part;
  t.p = t.dv_t + part;
  t.dp = t.p + queries * tile;
  t.rows = t.dp + queries * tile;
  t.delta = t.rows + queries * wide;
  for (t.key = 0; t.key < h->time; t.key += tile) {
    t.nk = min_of(tile, h->time - t.key);
    backward_begin(&t);
    int64_t nq;
    for (int64_t first = t.key; first < h->time; first += nq) {
      const bool diagonal = first < t.key + t.nk - 1;
      nq = min_of(diagonal ? min_of(DIAGONAL, queries) : queries, h->time - first);
      backward_queries(&t, first, nq);
    }
    backward_end(&t);
  }
}

extern const g3_attention_kernels G3_KERNEL(g3_attention_kernels);
const g3_attention_kernels G3_KERNEL(g3_attention_kernels) = {.forward = forward,
                                                              .backward = backward};
