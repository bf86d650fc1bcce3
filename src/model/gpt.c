/* Lays out a stage and shows it to the pipeline. */
#include "model/gpt.h"
#include "model/internal.h"
#include "util/array.h"
#include "util/fault.h"
#include <stdlib.h>

/* Logits of so many elements exist at once: 128 MiB of f32. */
static const int64_t logits_at_once = (int64_t)1 << 25;

static g3_tensor take(g3_arenas *a, g3_mem_class c, g3_dtype t, int64_t rows, int64_t columns) {
  return g3_arena_tensor(a, c, t, rows, columns);
}

static g3_tensor take_1d(g3_arenas *a, g3_mem_class c, g3_dtype t, int64_t n) {
  return g3_tensor_as_1d(g3_arena_tensor(a, c, t, n, 1));
}

/* Views into the flat space. Matrices are seen as [rows, columns] with all but the last dimension
 * joined. */
static g3_status bind_weights(g3_gpt *g) {
  const g3_gpt_spec *spec = &g->spec;
  g3_param *params;
  int n;
  G3_TRY(g3_gpt_params(&spec->model, &spec->part, &params, &g->place, &n));
  free(params); /* the flat space has its own, with offsets */
  G3_CHECK(n == spec->flat->nparams, "the flat space has %d parameters, the stage %d",
           spec->flat->nparams, n);
  for (int i = 0; i < n; i++) {
    const g3_param *p = &spec->flat->param[i];
    const bool in_block = (g3_gpt_rows[g->place[i].row].places & G3_AT_BLOCK) != 0;
    const int layer = in_block ? g->place[i].layer - spec->part.first_layer : 0;
    const g3_row_id row = p->copy ? G3_ROW_HEAD : g->place[i].row;
    g3_weight *w = &g->weight[layer * G3_ROWS + (int)row];
    w->matrices = p->slice.ndim == 3 ? p->slice.count[0] : 1;
    w->value = g3_tensor_part(spec->params, 0, p->offset, p->count);
    w->grad = g3_tensor_part(spec->grads, 0, p->offset, p->count);
    if (p->decay) { /* the rows that decay are the matrices */
      const int64_t columns = p->slice.count[p->slice.ndim - 1];
      w->value = g3_tensor_as_2d(w->value, p->count / columns, columns);
      w->grad = g3_tensor_as_2d(w->grad, p->count / columns, columns);
    }
  }
  return G3_OK;
}

static void lay_out_acts(g3_gpt *g, g3_arenas *arenas) {
  const g3_gpt_spec *spec = &g->spec;
  const int64_t tp = spec->part.tp, w = spec->model.width, f = spec->model.ffn / tp;
  const int64_t heads = spec->model.heads / tp;
  const g3_mem_class c = G3_MEM_ACTS;
  for (int slot = 0; slot < spec->slots; slot++) {
    for (int l = 0; l < spec->part.nlayers; l++) {
      g3_block_acts *a = &g->acts[slot * spec->part.nlayers + l];
      if (l > 0 || spec->part.first) a->x = take(arenas, c, spec->dtype, g->p, w);
      a->mean1 = take_1d(arenas, c, G3_F32, g->p);
      a->rstd1 = take_1d(arenas, c, G3_F32, g->p);
      a->ln1 = take(arenas, c, spec->dtype, g->p, w);
      a->qkv = take(arenas, c, spec->dtype, g->n, 3 * w / tp);
      a->att = take(arenas, c, spec->dtype, g->n, w / tp);
      const g3_tensor lse = take(arenas, c, G3_F32, spec->micro_batch * heads, spec->model.seq);
      a->lse = g3_tensor_3d(lse.data, G3_F32, spec->micro_batch, heads, spec->model.seq);
      a->mid = take(arenas, c, spec->dtype, g->p, w);
      a->mean2 = take_1d(arenas, c, G3_F32, g->p);
      a->rstd2 = take_1d(arenas, c, G3_F32, g->p);
      a->ln2 = take(arenas, c, spec->dtype, g->p, w);
      a->up = take(arenas, c, spec->dtype, g->n, f);
      a->act = take(arenas, c, spec->dtype, g->n, f);
    }
    if (spec->part.last) g->last_x[slot] = take(arenas, c, spec->dtype, g->p, w);
  }
}

/* Logits: rows by rows, or exact in blocks of columns. */
static g3_tensor take_logits(const g3_gpt *g, g3_arenas *arenas, g3_dtype t) {
  const g3_tensor all = take(arenas, G3_MEM_WORKSPACE, t, g->chunk, g->v);
  if (g->blocks == 0) return all;
  return g3_tensor_3d(all.data, t, g->blocks, g->chunk, g->v / g->blocks);
}

static void lay_out_head(g3_gpt *g, g3_arenas *arenas) {
  const g3_dtype t = g->spec.dtype;
  const g3_mem_class c = G3_MEM_WORKSPACE;
  const int64_t blocks = g->blocks > 0 ? g->blocks : 1;
  g->head_mean = take_1d(arenas, c, G3_F32, g->p);
  g->head_rstd = take_1d(arenas, c, G3_F32, g->p);
  g->logits = take_logits(g, arenas, G3_F32);
  g->dlogits = t == G3_F32 ? g->logits : take_logits(g, arenas, t);
  g->peak = take_1d(arenas, c, G3_F32, g->chunk);
  g->exps = take(arenas, c, G3_F32, 2 * blocks, g->chunk);
  if (g->blocks > 0) g->exps = g3_tensor_3d(g->exps.data, G3_F32, blocks, 2, g->chunk);
  g->loss = take_1d(arenas, c, G3_F32, g->chunk);
}

static void lay_out_exact(g3_gpt *g, g3_arenas *arenas) {
  const int64_t w = g->spec.model.width, tp = g->spec.part.tp;
  const int64_t rows = g->region.sequence ? g->blocks : g->spec.part.chunks;
  g->slabs = take(arenas, G3_MEM_WORKSPACE, G3_F32, g->blocks * g->n, w);
  g->slabs = g3_tensor_3d(g->slabs.data, G3_F32, g->blocks, g->n, w);
  g->vectors = take(arenas, G3_MEM_WORKSPACE, G3_F32, rows, 2 * w);
  /* half of the largest sum over tp: hidden states, or the two sums of the loss */
  if (tp > 1) g->halves = take_1d(arenas, G3_MEM_COMM, G3_F32, g->n * (w > 2 ? w : 2) / 2);
}

static void lay_out_temporaries(g3_gpt *g, g3_arenas *arenas) {
  const g3_gpt_spec *spec = &g->spec;
  const int64_t tp = spec->part.tp, w = spec->model.width;
  const g3_mem_class c = G3_MEM_WORKSPACE;
  if (g->region.sequence) g->whole_a = take(arenas, c, spec->dtype, g->n, w);
  g->whole_b = take(arenas, c, spec->dtype, g->n, w);
  g->part = take(arenas, c, spec->dtype, g->p, w);
  g->grad = take(arenas, c, spec->dtype, g->p, w);
  g->wide = take(arenas, c, spec->dtype, g->n, spec->model.ffn / tp);
  g->dqkv = take(arenas, c, spec->dtype, g->n, 3 * w / tp);
  g->datt = take(arenas, c, spec->dtype, g->n, w / tp);
  if (spec->part.last) lay_out_head(g, arenas);
  if (g->blocks > 0) lay_out_exact(g, arenas);
  if (spec->part.first || spec->part.last) {
    g->ids = take_1d(arenas, G3_MEM_STAGING, G3_I32, spec->micros * g->n);
    g->targets = take_1d(arenas, G3_MEM_STAGING, G3_I32, spec->micros * g->n);
  }
}

/* Rows of logits at once: even chunks of the micro-batch. */
static int64_t chunk_rows(int64_t n, int64_t v) {
  const int64_t most = logits_at_once / v > 1 ? logits_at_once / v : 1;
  const int64_t chunks = g3_ceil_div(n, most);
  return g3_ceil_div(n, chunks);
}

/* A fault for gpt3d verify: the first layer of a later stage does nothing. */
static bool dropped(const g3_gpt *g, int layer) {
  return g3_fault("layer-dropped") && layer == 0 && !g->spec.part.first;
}

static g3_status forward(g3_stage *stage, g3_stream *s, int micro, int slot, g3_tensor in,
                         g3_tensor out, bool keep) {
  g3_gpt *g = stage->impl;
  const int layers = g->spec.part.nlayers;
  g3_block_acts *acts = &g->acts[slot * layers];
  if (g->spec.part.first) {
    G3_TRY(g3_gpt_embed(g, s, micro, acts[0].x));
    G3_TRY(g3_gpt_see(g, s, G3_SEEN_EMBED, micro, 0, acts[0].x));
  } else {
    acts[0].x = in;
  }
  const g3_tensor end = g->spec.part.last ? g->last_x[slot] : out;
  for (int l = 0; l < layers; l++) {
    const g3_tensor y = l + 1 < layers ? acts[l + 1].x : end;
    if (dropped(g, l)) {
      G3_TRY(g->dev->ops->copy(s, y, acts[l].x));
      continue;
    }
    G3_TRY(g3_gpt_block(g, s, micro, l, &acts[l], y));
    G3_TRY(g3_gpt_see(g, s, G3_SEEN_OUT, micro, l, y));
  }
  if (g->spec.part.last && !keep) return g3_gpt_head(g, s, micro, end, g3_tensor_none());
  return G3_OK;
}

/* What there is to do when a micro-batch's backward has finished a group: nothing, unless its
 * bucket is complete. */
static g3_status report(const g3_gpt *g, int micro, int group, g3_bucket_done done, void *ctx,
                        g3_stream *s) {
  const int bucket = done || g->spec.fold ? g3_flat_finished(g->spec.flat, group) : -1;
  if (bucket < 0) return G3_OK;
  if (g->spec.fold) G3_TRY(g3_fold_bucket(g->spec.fold, s, bucket, micro));
  return done ? done(ctx, bucket, s) : G3_OK;
}

/* The buckets of tied parameters are complete at the end alone. */
static g3_status fold_tied(const g3_gpt *g, g3_stream *s, int micro) {
  const g3_flat *f = g->spec.flat;
  if (!g->spec.fold) return G3_OK;
  for (int b = 0; b < f->nbuckets; b++)
    if (f->bucket[b].sum_ends) G3_TRY(g3_fold_bucket(g->spec.fold, s, b, micro));
  return G3_OK;
}

static g3_status backward(g3_stage *stage, g3_stream *s, int micro, int slot, g3_tensor dout,
                          g3_tensor din, g3_bwd_part part, g3_bucket_done done, void *ctx) {
  g3_gpt *g = stage->impl;
  const g3_gpt_part *p = &g->spec.part;
  const g3_block_acts *acts = &g->acts[slot * p->nlayers];
  G3_CHECK(part == G3_BWD_BOTH, "this stage makes both halves of a backward at once");
  g3_tensor dy = dout;
  if (p->last) {
    dy = g->grad;
    G3_TRY(g3_gpt_head(g, s, micro, g->last_x[slot], dy));
    G3_TRY(g3_gpt_see(g, s, G3_SEEN_D_FINAL, micro, p->nlayers - 1, dy));
    G3_TRY(report(g, micro, 1 + (int)g->spec.model.layers, done, ctx, s));
  }
  for (int l = p->nlayers - 1; l >= 0; l--) {
    const g3_tensor dx = l == 0 && !p->first ? din : g->grad;
    if (dropped(g, l))
      G3_TRY(g->dev->ops->copy(s, dx, dy));
    else
      G3_TRY(g3_gpt_block_bwd(g, s, micro, l, &acts[l], dx, dy));
    G3_TRY(g3_gpt_see(g, s, G3_SEEN_D_IN, micro, l, dx));
    G3_TRY(report(g, micro, 1 + p->first_layer + l, done, ctx, s));
    dy = dx;
  }
  if (p->first) {
    G3_TRY(g3_gpt_embed_bwd(g, s, micro, dy));
    G3_TRY(report(g, micro, 0, done, ctx, s));
  }
  return fold_tied(g, s, micro);
}

static const g3_stage_ops stage_ops = {.forward = forward, .backward = backward};

static void size_up(g3_gpt *g) {
  const g3_gpt_spec *spec = &g->spec;
  const int64_t vocab = spec->model.vocab;
  g->region.sequence = spec->part.sequence_parallel && spec->part.tp > 1;
  g->n = spec->micro_batch * spec->model.seq;
  g->p = g->region.sequence ? g->n / spec->part.tp : g->n;
  g->v = g3_vocab_part(vocab, spec->part.tp, spec->part.chunks);
  g->blocks = spec->part.chunks / spec->part.tp;
  g->vocab_first = g->v * spec->part.tp_rank;
  const int64_t left = vocab - g->vocab_first;
  g->vocab_valid = left < 0 ? 0 : left < g->v ? left : g->v;
  if (g3_fault("padding-leaks")) g->vocab_valid = g->v;
  g->chunk = g->blocks > 0 ? g->n : chunk_rows(g->n, g->v);
}

g3_status g3_gpt_create(const g3_gpt_spec *spec, g3_arenas *arenas, g3_gpt **out) {
  G3_CHECK(spec->part.nlayers > 0 && spec->slots > 0, "a stage has layers and slots");
  g3_gpt *g;
  g3_status st = G3_OK;
  G3_TRY(G3_NEW_ARRAY(1, &g));
  g->spec = *spec;
  g->stage = (g3_stage){.ops = &stage_ops, .index = spec->stage, .impl = g};
  g->sums = spec->part.chunks > 0 ? &g3_gpt_exact_sums : &g3_gpt_fast_sums;
  G3_CHECK((spec->fold != NULL) == (spec->part.chunks > 0) &&
               (!spec->fold || spec->micro_batch == 1),
           "a stage that is exact sums up samples one by one");
  size_up(g);
  G3_TRY_TO(failed, st, G3_NEW_ARRAY((int64_t)spec->part.nlayers * G3_ROWS, &g->weight));
  G3_TRY_TO(failed, st, G3_NEW_ARRAY((int64_t)spec->slots * spec->part.nlayers, &g->acts));
  G3_TRY_TO(failed, st, G3_NEW_ARRAY(spec->slots, &g->last_x));
  G3_TRY_TO(failed, st, bind_weights(g));
  lay_out_acts(g, arenas);
  lay_out_temporaries(g, arenas);
  *out = g;
  return G3_OK;
failed:
  g3_gpt_destroy(g);
  return st;
}

void g3_gpt_destroy(g3_gpt *g) {
  if (!g) return;
  free(g->place);
  free(g->weight);
  free(g->acts);
  free(g->last_x);
  free(g);
}

void g3_gpt_attach(g3_gpt *g, g3_device *dev, g3_comm *tp, g3_tensor loss_sum) {
  g->dev = dev;
  g->region.tp = tp;
  g->loss_sum = loss_sum;
}

g3_stage *g3_gpt_stage(g3_gpt *g) {
  return &g->stage;
}

void g3_gpt_batch(g3_gpt *g, const int32_t *tokens, int64_t first_sample, bool train) {
  g->first_sample = first_sample;
  g->train = train;
  if (!g->ids.data) return;
  const int64_t seq = g->spec.model.seq, samples = g->spec.micros * g->spec.micro_batch;
  int32_t *ids = g->ids.data, *targets = g->targets.data;
  for (int64_t i = 0; i < samples; i++)
    for (int64_t t = 0; t < seq; t++) {
      ids[i * seq + t] = tokens[i * (seq + 1) + t];
      targets[i * seq + t] = tokens[i * (seq + 1) + t + 1];
    }
}
