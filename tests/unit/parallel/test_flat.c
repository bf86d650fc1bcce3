#include "parallel/flat.h"
#include "util/array.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* after those, which it needs */
#include <cmocka.h>

static uint64_t state;

static int below(int n) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (int)((state >> 33) % (uint64_t)n);
}

static g3_param param(int number, int group, int64_t count) {
  g3_param p;
  memset(&p, 0, sizeof p);
  snprintf(p.name, sizeof p.name, "p%d", number);
  p.number = number;
  p.group = group;
  p.slice = g3_slice_whole(1, &count);
  p.count = count;
  return p;
}

enum { MOST = 40 };

/* A model of random sizes: groups in forward order, some sums over tp, some padding; a tied
 * embedding first (as on the first stage) or, with the last group's number, as on the last. */
static int random_params(g3_param *p) {
  const int n = 1 + below(MOST), tied = below(3);
  int group = 0;
  for (int i = 0; i < n; i++) {
    if (i > 0 && below(3) == 0) group++;
    p[i] = param(i, group, 1 + below(below(2) ? 50 : 2000));
    p[i].sum_tp = below(3) == 0;
    if (below(4) == 0) p[i].count += below(300);
  }
  if (tied) {
    p[0].sum_ends = true;
    p[0].sum_tp = false;
    if (tied == 2) p[0].group = group + 1;
  }
  return n;
}

static void check_buckets(const g3_flat *f, int64_t bucket_elements) {
  int64_t end = 0;
  for (int b = 0; b < f->nbuckets; b++) {
    const g3_bucket *k = &f->bucket[b];
    assert_int_equal(k->offset, end);
    assert_int_equal(k->count % ((int64_t)f->dp * G3_FLAT_ALIGN), 0);
    assert_true(k->count > 0);
    end += k->count;
    /* Backward order, the tied one behind. */
    if (b > 0 && !k->sum_ends) assert_true(k->last_group < f->bucket[b - 1].last_group);
    if (b > 0) assert_false(f->bucket[b - 1].sum_ends);
    /* Closed at the first end of a group at which it was big enough: without its last group it is
     * smaller. */
    int64_t before = 0;
    int lowest = INT32_MAX;
    for (int i = 0; i < f->nparams; i++)
      if (f->param[i].bucket == b) {
        lowest = f->param[i].group < lowest ? f->param[i].group : lowest;
        if (f->param[i].group > k->last_group) before += f->param[i].count;
      }
    assert_int_equal(lowest, k->last_group);
    if (!k->sum_ends) assert_true(before < bucket_elements);
  }
  assert_int_equal(end, f->count);
}

/* Every tensor inside its bucket, aligned, overlapping none; sums over tp first and contiguous. */
static void check_params(const g3_flat *f) {
  char *taken = calloc((size_t)f->count + 1, 1);
  assert_non_null(taken);
  for (int i = 0; i < f->nparams; i++) {
    const g3_param *p = &f->param[i];
    const g3_bucket *b = &f->bucket[p->bucket];
    assert_int_equal(p->offset % G3_FLAT_ALIGN, 0);
    assert_true(p->offset >= b->offset && p->offset + p->count <= b->offset + b->count);
    assert_int_equal(p->sum_ends, b->sum_ends);
    if (p->sum_tp)
      assert_true(p->offset + p->count <= b->offset + b->sum_tp);
    else
      assert_true(p->offset >= b->offset + b->sum_tp);
    for (int64_t e = 0; e < p->count; e++)
      assert_int_equal(taken[p->offset + e]++, 0);
  }
  free(taken);
}

static void check_finished(const g3_flat *f) {
  for (int group = -1; group < MOST + 2; group++) {
    int want = -1;
    for (int b = 0; b < f->nbuckets; b++)
      if (!f->bucket[b].sum_ends && f->bucket[b].last_group == group) want = b;
    assert_int_equal(g3_flat_finished(f, group), want);
  }
  /* Backward over all groups finishes each bucket once, in order. */
  int next = 0;
  for (int group = MOST + 1; group >= 0; group--) {
    const int b = g3_flat_finished(f, group);
    if (b < 0) continue;
    assert_int_equal(b, next++);
    for (int i = 0; i < f->nparams; i++)
      if (f->param[i].bucket == b) assert_true(f->param[i].group >= group);
  }
  const bool tied = f->nbuckets > 0 && f->bucket[f->nbuckets - 1].sum_ends;
  assert_int_equal(next, f->nbuckets - tied);
}

static void check_segments(const g3_flat *f, int parts) {
  char *owned = calloc((size_t)f->count + 1, 1);
  assert_non_null(owned);
  int64_t total = 0;
  for (int index = 0; index < parts; index++) {
    g3_segment *seg;
    int n;
    int64_t shard_end = 0;
    assert_int_equal(g3_flat_segments(f, parts, index, &seg, &n), G3_OK);
    for (int i = 0; i < n; i++) {
      const g3_param *p = &f->param[seg[i].param];
      const g3_bucket *b = &f->bucket[p->bucket];
      const int64_t range = b->count / parts, begin = b->offset + index * range;
      assert_true(seg[i].count > 0);
      assert_true(seg[i].start >= 0 && seg[i].start + seg[i].count <= g3_slice_count(&p->slice));
      assert_int_equal(seg[i].flat, p->offset + seg[i].start);
      assert_true(seg[i].flat >= begin && seg[i].flat + seg[i].count <= begin + range);
      int64_t shard = seg[i].flat - begin;
      for (int k = 0; k < p->bucket; k++)
        shard += f->bucket[k].count / parts;
      assert_int_equal(seg[i].shard, shard);
      assert_true(seg[i].shard >= shard_end);
      shard_end = seg[i].shard + seg[i].count;
      for (int64_t e = 0; e < seg[i].count; e++)
        assert_int_equal(owned[seg[i].flat + e]++, 0);
      total += seg[i].count;
    }
    assert_true(shard_end <= g3_flat_shard_count(f, parts));
    free(seg);
  }
  int64_t real = 0;
  for (int i = 0; i < f->nparams; i++)
    real += g3_slice_count(&f->param[i].slice);
  assert_int_equal(total, real);
  assert_int_equal(g3_flat_shard_count(f, parts) * parts, f->count);
  free(owned);
}

static void random_models_keep_all_promises(void **unused) {
  (void)unused;
  state = 1;
  g3_param p[MOST];
  for (int trial = 0; trial < 300; trial++) {
    const int n = random_params(p), dp = 1 + below(6);
    const int64_t bucket = 1 + below(4000);
    g3_flat *f;
    assert_int_equal(g3_flat_create(p, n, dp, bucket, &f), G3_OK);
    assert_int_equal(f->nparams, n);
    assert_int_equal(f->dp, dp);
    for (int i = 0; i < n; i++)
      assert_string_equal(f->param[i].name, p[i].name);
    check_buckets(f, bucket);
    check_params(f);
    check_finished(f);
    check_segments(f, 1);
    check_segments(f, dp);
    g3_flat_destroy(f);
  }
}

/* A first stage as the model lays it out: embeddings, then two blocks. */
static void a_first_stage_by_hand(void **unused) {
  (void)unused;
  g3_param p[] = {param(0, 0, 1000), param(1, 0, 300), param(2, 1, 100),
                  param(3, 1, 500),  param(4, 2, 100), param(5, 2, 500)};
  p[0].sum_ends = true;
  p[2].sum_tp = p[4].sum_tp = true;
  g3_flat *f;
  assert_int_equal(g3_flat_create(p, 6, 2, 600, &f), G3_OK);
  assert_int_equal(f->nbuckets, 4);
  /* Block 1 (group 2): 128 for the summed one, 512, rounded up to 2 x 128. */
  assert_int_equal(f->param[4].offset, 0);
  assert_int_equal(f->param[5].offset, 128);
  assert_int_equal(f->bucket[0].sum_tp, 128);
  assert_int_equal(f->bucket[0].count, 768);
  /* Block 0, positions, and the tied embedding behind them. */
  assert_int_equal(f->param[2].offset, 768);
  assert_int_equal(f->param[3].offset, 896);
  assert_int_equal(f->param[1].offset, 1536);
  assert_int_equal(f->bucket[2].count, 512);
  assert_int_equal(f->param[0].offset, 2048);
  assert_true(f->bucket[3].sum_ends);
  assert_int_equal(f->bucket[3].count, 1024);
  assert_int_equal(f->count, 3072);
  assert_int_equal(g3_flat_finished(f, 2), 0);
  assert_int_equal(g3_flat_finished(f, 1), 1);
  assert_int_equal(g3_flat_finished(f, 0), 2);
  g3_flat_destroy(f);
}

static void one_large_bucket_takes_all_but_the_tied(void **unused) {
  (void)unused;
  g3_param p[] = {param(0, 0, 10), param(1, 0, 10), param(2, 1, 10)};
  p[0].sum_ends = true;
  g3_flat *f;
  assert_int_equal(g3_flat_create(p, 3, 1, INT64_MAX, &f), G3_OK);
  assert_int_equal(f->nbuckets, 2);
  assert_int_equal(g3_flat_finished(f, 1), -1);
  assert_int_equal(g3_flat_finished(f, 0), 0);
  g3_flat_destroy(f);
}

static void nothing_at_all_is_possible(void **unused) {
  (void)unused;
  g3_flat *f;
  g3_segment *seg;
  int n = -1;
  assert_int_equal(g3_flat_create(NULL, 0, 3, 1, &f), G3_OK);
  assert_int_equal(f->nbuckets, 0);
  assert_int_equal(f->count, 0);
  assert_int_equal(g3_flat_segments(f, 3, 2, &seg, &n), G3_OK);
  assert_int_equal(n, 0);
  free(seg);
  g3_flat_destroy(f);
  g3_flat_destroy(NULL);
}

static void sizes_that_overflow_are_refused(void **unused) {
  (void)unused;
  g3_flat *f = NULL;
  g3_param two[] = {param(0, 0, INT64_MAX / 2), param(1, 1, INT64_MAX / 2 + 1)};
  assert_int_equal(g3_flat_create(two, 2, 1, 1, &f), G3_EINVAL);
  assert_int_equal(g3_flat_create(two, 2, 1, INT64_MAX, &f), G3_EINVAL);
  g3_param one[] = {param(0, 0, INT64_MAX - 200)};
  assert_int_equal(g3_flat_create(one, 1, 1, 1, &f), G3_OK);
  g3_flat_destroy(f);
  f = NULL;
  assert_int_equal(g3_flat_create(one, 1, 1024, 1, &f), G3_EINVAL);
  assert_non_null(strstr(g3_last_error(), "p0"));
  assert_null(f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_models_keep_all_promises),
      cmocka_unit_test(a_first_stage_by_hand),
      cmocka_unit_test(one_large_bucket_takes_all_but_the_tied),
      cmocka_unit_test(nothing_at_all_is_possible),
      cmocka_unit_test(sizes_that_overflow_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
