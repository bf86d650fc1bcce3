/* The parameter table: counts, numbers, and that the parts of any layout are the whole. */
#include "model/spec.h"
#include "unit/util/cm.h"
#include "util/array.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void ok(g3_status st) {
  if (st != G3_OK) fail_msg("%s", g3_last_error());
}

static const g3_model_config tiny = {
    .layers = 5, .heads = 4, .width = 12, .ffn = 20, .seq = 7, .vocab = 29, .tied = true};

static g3_gpt_part whole_part(const g3_model_config *c) {
  return (g3_gpt_part){
      .nlayers = (int)c->layers, .first = true, .last = true, .tp = 1, .tp_rank = 0};
}

/* Published: Radford et al., 2019 (as the released weights count); the others by the formula of
 * Narayanan et al., SC'21, without its approximations. */
static void counts(void **state) {
  (void)state;
  const g3_model_config small = {12, 12, 768, 3072, 1024, 50257, true, 0.0};
  const g3_model_config xl = {48, 25, 1600, 6400, 1024, 50257, true, 0.0};
  assert_int_equal(g3_gpt_count(&small), 124439808);
  assert_int_equal(g3_gpt_count(&xl), 1557611200);
  assert_int_equal(g3_gpt_tensors(&small), 2 + 12 * 12 + 2);
  g3_model_config untied = small;
  untied.tied = false;
  assert_int_equal(g3_gpt_count(&untied), 124439808 + 50257 * 768);
  assert_int_equal(g3_gpt_tensors(&untied), 2 + 12 * 12 + 3);
  /* 6 (12 layers x 12 w^2 + w v) + 6 layers w seq */
  const double flops = 6.0 * (12 * 12.0 * 768 * 768 + 768.0 * 50257) + 6.0 * 12 * 768 * 1024;
  assert_true(fabs(g3_gpt_flops_per_token(&small) / flops - 1.0) < 1e-12);
  assert_true(g3_gpt_flops_per_token(&untied) == g3_gpt_flops_per_token(&small));
}

static void vocabulary_parts(void **state) {
  (void)state;
  for (int64_t vocab = 2; vocab < 300; vocab += 7)
    for (int tp = 1; tp <= 16; tp++) {
      const int64_t part = g3_vocab_part(vocab, tp, 0);
      assert_true(part % 8 == 0 && part * tp >= vocab);
      assert_true((part - 8) * tp < vocab); /* no more padding than the alignment needs */
    }
}

static int number_of(const g3_param *params, int n, const char *name) {
  for (int i = 0; i < n; i++)
    if (strcmp(params[i].name, name) == 0) return i;
  return -1;
}

static void table_of_the_whole(void **state) {
  (void)state;
  for (int tied = 0; tied < 2; tied++) {
    g3_model_config c = tiny;
    c.tied = tied;
    const g3_gpt_part part = whole_part(&c);
    g3_param *params;
    g3_param_place *places;
    int n;
    int64_t elements = 0;
    ok(g3_gpt_params(&c, &part, &params, &places, &n));
    assert_int_equal(n, g3_gpt_tensors(&c));
    for (int i = 0; i < n; i++) {
      const g3_param *p = &params[i];
      const g3_param_row *row = &g3_gpt_rows[places[i].row];
      elements += g3_slice_count(&p->slice);
      assert_int_equal(p->number, i);
      assert_int_equal(number_of(params, n, p->name), i); /* no name twice */
      assert_int_equal(p->decay, p->slice.ndim > 1 && !strstr(p->name, "bias"));
      assert_false(p->copy || p->sum_ends || p->sum_tp);
      const int group = (row->places & G3_AT_BLOCK)        ? 1 + places[i].layer
                        : (row->places & G3_AT_FIRST) != 0 ? 0
                                                           : 1 + (int)c.layers;
      assert_int_equal(p->group, group);
      assert_true(i == 0 || params[i - 1].group <= p->group);
    }
    assert_int_equal(elements, g3_gpt_count(&c));
    assert_int_equal(number_of(params, n, "head.weight") >= 0, !tied);
    free(params);
    free(places);
  }
}

/* Elements of the whole tensor that the slice holds, one more each. */
static void mark(uint8_t *seen, const g3_slice *s) {
  const int64_t n = g3_slice_count(s);
  for (int64_t i = 0; i < n; i++) {
    int64_t left = i, at = 0, unit = 1;
    for (int d = s->ndim - 1; d >= 0; d--) {
      at += (s->start[d] + left % s->count[d]) * unit;
      left /= s->count[d];
      unit *= s->global[d];
    }
    seen[at]++;
  }
}

typedef struct {
  const g3_model_config *c;
  const g3_param *whole; /* of one rank that has everything */
  int n;
  uint8_t **seen; /* [n][elements] how often each element is counted */
} tally;

static void check_flags(const g3_param *p, const g3_param *whole, const g3_gpt_part *part,
                        const g3_model_config *c) {
  const bool wte = strcmp(p->name, "embed.tokens.weight") == 0;
  const bool alone = part->first && part->last;
  const bool ends = wte && c->tied && (!alone || part->chunks > 0);
  assert_int_equal(p->number, whole->number);
  assert_int_equal(p->decay, whole->decay);
  assert_int_equal(p->sum_ends, ends);
  if (!alone) assert_int_equal(p->copy, ends && part->last);
  const bool cut = !p->whole_on_tp;
  assert_int_equal(cut, strstr(p->name, "qkv") || strstr(p->name, "up.") ||
                            strcmp(p->name, "head.weight") == 0 || wte ||
                            (strstr(p->name, ".weight") &&
                             (strstr(p->name, "proj") || strstr(p->name, "down"))));
  /* with chunks samples are summed over tp at once, but for positions, of which each has one owner
   */
  const bool later = part->chunks == 0 || strcmp(p->name, "embed.positions.weight") == 0;
  assert_int_equal(p->sum_tp, !cut && part->sequence_parallel && part->tp > 1 && later);
  assert_true(p->count >= g3_slice_count(&p->slice));
}

static void add_part(tally *t, const g3_gpt_part *part) {
  g3_param *params;
  int n;
  ok(g3_gpt_params(t->c, part, &params, NULL, &n));
  for (int i = 0; i < n; i++) {
    const int at = number_of(t->whole, t->n, params[i].name);
    assert_true(at >= 0);
    check_flags(&params[i], &t->whole[at], part, t->c);
    const bool elsewhere = params[i].copy || (params[i].whole_on_tp && part->tp_rank > 0);
    if (!elsewhere) mark(t->seen[at], &params[i].slice);
  }
  free(params);
}

/* All ranks of tp x pp together hold each element of each tensor once. */
static void check_grid(const g3_model_config *c, int tp, int pp, bool sequence, int64_t chunks) {
  const g3_gpt_part all = whole_part(c);
  g3_param *whole;
  tally t = {.c = c};
  ok(g3_gpt_params(c, &all, &whole, NULL, &t.n));
  t.whole = whole;
  ok(G3_NEW_ARRAY(t.n, &t.seen));
  for (int i = 0; i < t.n; i++)
    ok(G3_NEW_ARRAY(g3_slice_count(&whole[i].slice), &t.seen[i]));
  for (int stage = 0; stage < pp; stage++) {
    const int first = (int)c->layers * stage / pp, end = (int)c->layers * (stage + 1) / pp;
    for (int rank = 0; rank < tp; rank++) {
      const g3_gpt_part part = {.first_layer = first,
                                .nlayers = end - first,
                                .first = stage == 0,
                                .last = stage == pp - 1,
                                .tp = tp,
                                .tp_rank = rank,
                                .sequence_parallel = sequence,
                                .chunks = chunks};
      add_part(&t, &part);
    }
  }
  for (int i = 0; i < t.n; i++) {
    for (int64_t k = 0; k < g3_slice_count(&whole[i].slice); k++)
      if (t.seen[i][k] != 1)
        fail_msg("tp %d pp %d: element %lld of %s is held %d times", tp, pp, (long long)k,
                 whole[i].name, t.seen[i][k]);
    free(t.seen[i]);
  }
  free(t.seen);
  free(whole);
}

static void parts_are_the_whole(void **state) {
  (void)state;
  for (int tied = 0; tied < 2; tied++) {
    g3_model_config c = tiny;
    c.tied = tied;
    for (int tp = 1; tp <= 4; tp *= 2)
      for (int pp = 1; pp <= 5; pp++)
        for (int64_t chunks = 0; chunks <= 4; chunks += 4)
          check_grid(&c, tp, pp, tp > 1 && pp % 2 == 0, chunks);
  }
  /* a vocabulary so small that the last ranks hold padding alone */
  g3_model_config c = tiny;
  c.vocab = 9;
  check_grid(&c, 4, 1, false, 0);
  check_grid(&c, 4, 1, false, 4);
}

/* Exact: wherever tp cuts the vocabulary, blocks end at the same ids; a lone stage holds the tied
 * head's gradient apart, as the last of the parameters, with the end's group and slice. */
static void chunks_are_of_the_whole(void **state) {
  (void)state;
  static const int64_t vocabs[] = {9, 256, 257, 50257};
  for (int v = 0; v < 4; v++)
    for (int64_t chunks = 1; chunks <= 16; chunks *= 2)
      for (int tp = 1; tp <= chunks; tp *= 2) {
        const int64_t all = g3_vocab_part(vocabs[v], 1, chunks);
        assert_int_equal(g3_vocab_part(vocabs[v], tp, chunks) * tp, all);
        assert_true(all >= vocabs[v] && all % (8 * chunks) == 0 && all < vocabs[v] + 8 * chunks);
      }
  g3_model_config c = tiny;
  c.tied = true;
  g3_gpt_part part = whole_part(&c);
  part.chunks = 4;
  g3_param *params;
  g3_param_place *place;
  int n;
  ok(g3_gpt_params(&c, &part, &params, &place, &n));
  assert_int_equal(n, g3_gpt_tensors(&c) + 1);
  const g3_param *first = &params[0], *copy = &params[n - 1];
  assert_string_equal(copy->name, first->name);
  assert_int_equal(copy->number, first->number);
  assert_int_equal(copy->count, first->count);
  assert_int_equal(place[n - 1].row, G3_ROW_WTE);
  assert_true(copy->copy && copy->sum_ends && !first->copy && first->sum_ends);
  assert_int_equal(first->group, 0);
  assert_int_equal(copy->group, 1 + c.layers);
  g3_flat *flat;
  ok(g3_flat_create(params, n, 4, 1, &flat));
  /* a bucket each, alike, so that ZeRO's ranges of the two meet; the head's comes first */
  const g3_bucket *b = &flat->bucket[flat->nbuckets - 2];
  assert_true(b[0].sum_ends && b[1].sum_ends);
  assert_int_equal(b[0].count, b[1].count);
  assert_int_equal(flat->param[n - 1].bucket, flat->nbuckets - 2);
  assert_int_equal(flat->param[0].bucket, flat->nbuckets - 1);
  g3_flat_destroy(flat);
  free(params);
  free(place);
}

static void heads_stay_together(void **state) {
  (void)state;
  const g3_gpt_part part = {.nlayers = 1, .first = true, .tp = 4, .tp_rank = 2};
  g3_param *params;
  int n;
  ok(g3_gpt_params(&tiny, &part, &params, NULL, &n));
  const g3_param *qkv = &params[number_of(params, n, "blocks.0.attn.qkv.weight")];
  /* q, k and v of head 2 alone: rows 6 to 8 of each */
  assert_int_equal(qkv->slice.ndim, 3);
  assert_int_equal(qkv->slice.count[0], 3);
  assert_int_equal(qkv->slice.start[1], 6);
  assert_int_equal(qkv->slice.count[1], 3);
  assert_int_equal(qkv->slice.count[2], 12);
  const g3_param *proj = &params[number_of(params, n, "blocks.0.attn.proj.weight")];
  assert_int_equal(proj->slice.count[0], 12);
  assert_int_equal(proj->slice.start[1], 6);
  assert_int_equal(proj->slice.count[1], 3);
  free(params);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(counts),
                                     cmocka_unit_test(vocabulary_parts),
                                     cmocka_unit_test(table_of_the_whole),
                                     cmocka_unit_test(parts_are_the_whole),
                                     cmocka_unit_test(heads_stay_together),
                                     cmocka_unit_test(chunks_are_of_the_whole)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
