/* Attention ops: checks and how the work is shared out. A task is a tile of queries of one head
 * (forward) or a whole head (backward, so that no two tasks add to one dk or dv); what a task
 * computes depends on its place alone, so results do not depend on the number of threads. */
#include "device/cpu/kernels/attention.h"
#include "device/cpu/cpu.h"
#include "device/cpu/isa.h"
#include <math.h>

enum { MAX_HEAD_DIM = 256 };

/* Scratch lies on the threads' stacks: at most 64 KiB, and 100 KiB in the backward pass of the
 * rare heads wider than WIDE. */
enum { WIDE = 128, SCRATCH = 16 * 1024, SCRATCH_WIDE = 25 * 1024 };

static const struct {
  int64_t max_head_dim;
  g3_attention_tiles tiles;
} tilings[] = {
    {32, {64, 64, 32, 64}}, {64, {64, 48, 40, 32}},  {80, {64, 32, 16, 32}},
    {96, {48, 40, 56, 16}}, {128, {32, 44, 32, 16}}, {MAX_HEAD_DIM, {16, 24, 16, 16}},
};

static const g3_attention_kernels *const kernels[G3_ISA_COUNT] = {
    [G3_ISA_V2] = &g3_attention_kernels_v2,
    [G3_ISA_V3] = &g3_attention_kernels_v3,
    [G3_ISA_V4] = &g3_attention_kernels_v4,
};

static void check_view(const char *op, const char *name, g3_tensor t, g3_tensor like) {
  bool fits = t.data && t.ndim == 4 && t.dtype == like.dtype && (t.dim[3] == 1 || t.stride[3] == 1);
  for (int i = 0; fits && i < 4; i++)
    fits = t.dim[i] == like.dim[i];
  G3_CHECK(fits, "%s: %s is not [%lld, %lld, %lld, %lld] of %s with a dense last dimension", op,
           name, (long long)like.dim[0], (long long)like.dim[1], (long long)like.dim[2],
           (long long)like.dim[3], g3_dtype_name(like.dtype));
}

static void check(const char *op, g3_tensor q, g3_tensor lse, const g3_attention_spec *spec) {
  G3_CHECK(q.data && q.ndim == 4 && (q.dtype == G3_F32 || q.dtype == G3_BF16) && q.dim[3] >= 1 &&
               q.dim[3] <= MAX_HEAD_DIM,
           "%s: q is not [batch, time, heads, head_dim] of f32 or bf16 with head_dim 1..%d", op,
           MAX_HEAD_DIM);
  G3_CHECK(lse.data && lse.ndim == 3 && lse.dtype == G3_F32 && lse.dim[0] == q.dim[0] &&
               lse.dim[1] == q.dim[2] && lse.dim[2] == q.dim[1] &&
               (lse.stride[2] == 1 || lse.dim[2] == 1),
           "%s: lse is not f32 [batch, heads, time]", op);
  G3_CHECK(spec->dropout >= 0 && spec->dropout < 1, "%s: dropout %g is not in [0, 1)", op,
           (double)spec->dropout);
}

static g3_rows rows_of(g3_tensor t, int64_t b, int64_t head) {
  return (g3_rows){g3_tensor_at(t, b * t.stride[0] + head * t.stride[2]), t.stride[1]};
}

static g3_attention_tiles tiles_for(int64_t head_dim) {
  int i = 0;
  while (tilings[i].max_head_dim < head_dim)
    i++;
  const g3_attention_tiles t = tilings[i].tiles;
  G3_CHECK(g3_attention_forward_floats(&t, head_dim) <= SCRATCH &&
               g3_attention_backward_floats(&t, head_dim) <=
                   (head_dim > WIDE ? SCRATCH_WIDE : SCRATCH),
           "attention: the tiles for head_dim %lld outgrow the scratch", (long long)head_dim);
  return t;
}

/* What all heads share. */
static g3_attention_head common(g3_tensor q, const g3_attention_spec *spec) {
  const double p = (double)spec->dropout;
  return (g3_attention_head){
      .time = q.dim[1],
      .head_dim = q.dim[3],
      .scale = spec->scale,
      .bf16 = q.dtype == G3_BF16,
      .drop = {.key = {(uint32_t)spec->key, (uint32_t)(spec->key >> 32)},
               .threshold = (uint32_t)ceil(p * 4294967296.0),
               .kept = (float)(1 / (1 - p))},
      .tiles = tiles_for(q.dim[3]),
  };
}

static g3_attention_head head_of(const g3_attention_head *all, int64_t b, int64_t head, g3_tensor o,
                                 g3_tensor lse, g3_tensor q, g3_tensor k, g3_tensor v,
                                 const g3_attention_spec *spec) {
  g3_attention_head h = *all;
  const uint64_t sample = (uint64_t)(spec->sample + b);
  h.q = rows_of(q, b, head);
  h.k = rows_of(k, b, head);
  h.v = rows_of(v, b, head);
  h.o = rows_of(o, b, head);
  h.lse = (float *)lse.data + b * lse.stride[0] + head * lse.stride[1];
  h.drop.sample = (uint32_t)sample;
  h.drop.head = (uint32_t)(spec->head + head) | (uint32_t)(sample >> 32) << 16;
  return h;
}

/* Multiplications and additions of the forward pass, about. */
static int64_t work_of(g3_tensor q) {
  return g3_tensor_count(q) * q.dim[1];
}

g3_status g3_cpu_attention(g3_stream *s, g3_tensor o, g3_tensor lse, g3_tensor q, g3_tensor k,
                           g3_tensor v, const g3_attention_spec *spec) {
  G3_TRY(g3_stream_drain(s));
  check("attention", q, lse, spec);
  check_view("attention", "k", k, q);
  check_view("attention", "v", v, q);
  check_view("attention", "o", o, q);
  const g3_attention_head all = common(q, spec);
  const g3_attention_kernels *run = kernels[g3_cpu_isa()];
  const int64_t heads = q.dim[2], tile = all.tiles.forward_queries;
  const int64_t tiles = g3_ceil_div(q.dim[1], tile), tasks = q.dim[0] * heads * tiles;
  /* Later tiles see more keys: threads take the next one when they are free. */
#pragma omp parallel for schedule(dynamic) num_threads(g3_cpu_threads(s, work_of(q)))
  for (int64_t task = 0; task < tasks; task++) {
    _Alignas(64) float scratch[SCRATCH];
    const int64_t which = task / tiles;
    const g3_attention_head h = head_of(&all, which / heads, which % heads, o, lse, q, k, v, spec);
    run->forward(&h, (tiles - 1 - task % tiles) * tile, scratch);
  }
  return G3_OK;
}

static void backward_narrow(const g3_attention_kernels *run, const g3_attention_grads *g) {
  _Alignas(64) float scratch[SCRATCH];
  run->backward(g, scratch);
}

static void backward_wide(const g3_attention_kernels *run, const g3_attention_grads *g) {
  _Alignas(64) float scratch[SCRATCH_WIDE];
  run->backward(g, scratch);
}

g3_status g3_cpu_attention_bwd(g3_stream *s, g3_tensor dq, g3_tensor dk, g3_tensor dv,
                               g3_tensor dout, g3_tensor o, g3_tensor lse, g3_tensor q, g3_tensor k,
                               g3_tensor v, const g3_attention_spec *spec) {
  G3_TRY(g3_stream_drain(s));
  const char *op = "attention_bwd";
  check(op, q, lse, spec);
  const g3_tensor views[] = {k, v, o, dout, dq, dk, dv};
  static const char *const names[] = {"k", "v", "o", "dout", "dq", "dk", "dv"};
  for (size_t i = 0; i < sizeof views / sizeof *views; i++)
    check_view(op, names[i], views[i], q);
  const g3_attention_head all = common(q, spec);
  const g3_attention_kernels *run = kernels[g3_cpu_isa()];
  const int64_t heads = q.dim[2], tasks = q.dim[0] * heads;
#pragma omp parallel for schedule(dynamic) num_threads(g3_cpu_threads(s, work_of(q)))
  for (int64_t task = 0; task < tasks; task++) {
    const int64_t b = task / heads, head = task % heads;
    const g3_attention_grads g = {.head = head_of(&all, b, head, o, lse, q, k, v, spec),
                                  .dout = rows_of(dout, b, head),
                                  .dq = rows_of(dq, b, head),
                                  .dk = rows_of(dk, b, head),
                                  .dv = rows_of(dv, b, head)};
    (all.head_dim > WIDE ? backward_wide : backward_narrow)(run, &g);
  }
  return G3_OK;
}
