#include "parallel/flat.h"
#include "util/array.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* One parameter's place in the order in which the flat space is filled. */
typedef struct {
  bool sum_ends, sum_tp;
  int group, bucket, param;
} place;

/* Tied parameters last; groups as backward finishes them; the table's order inside. */
static int by_backward(const void *pa, const void *pb) {
  const place *a = pa, *b = pb;
  if (a->sum_ends != b->sum_ends) return a->sum_ends ? 1 : -1;
  if (a->group != b->group) return a->group > b->group ? -1 : 1;
  return (a->param > b->param) - (a->param < b->param);
}

/* Inside a bucket, what is summed over tp comes first. */
static int by_bucket(const void *pa, const void *pb) {
  const place *a = pa, *b = pb;
  if (a->bucket != b->bucket) return a->bucket > b->bucket ? 1 : -1;
  if (a->sum_tp != b->sum_tp) return a->sum_tp ? -1 : 1;
  return by_backward(a, b);
}

static void check_param(const g3_param *p) {
  G3_CHECK(p->group >= 0 && g3_slice_valid(&p->slice) && p->count >= g3_slice_count(&p->slice),
           "parameter %s: group %d, %lld elements held", p->name, p->group, (long long)p->count);
}

/* Gives every place its bucket; returns how many there are. */
static int choose_buckets(const g3_param *params, place *at, int n, int64_t bucket_elements) {
  int bucket = 0;
  int64_t elements = 0;
  for (int i = 0; i < n; i++) {
    if (i > 0) {
      const bool tied = at[i].sum_ends; /* of its own, also the head's copy on the same rank */
      const bool group_ends = at[i].group != at[i - 1].group && !at[i].sum_ends;
      if (tied || (group_ends && elements >= bucket_elements)) {
        bucket++;
        elements = 0;
      }
    }
    at[i].bucket = bucket;
    /* Saturates: beyond any bucket's size it does not matter by how much. */
    if (!g3_add_ok(elements, params[at[i].param].count, &elements)) elements = INT64_MAX;
  }
  return n > 0 ? bucket + 1 : 0;
}

/* x rounded up to a multiple of unit; false when that does not fit. */
static bool align(int64_t x, int64_t unit, int64_t *out) {
  int64_t room;
  if (!g3_add_ok(x, unit - 1, &room)) return false;
  *out = room / unit * unit;
  return true;
}

/* Lays the parameters of one bucket one behind the other from `offset` on. Returns how many places
 * it used, 0 when the sizes overflow. */
static int fill_bucket(g3_flat *f, const place *at, int n, int number, int64_t offset) {
  g3_bucket *b = &f->bucket[number];
  b->offset = offset;
  b->last_group = INT_MAX;
  b->sum_ends = at[0].sum_ends;
  int64_t end = offset;
  int used = 0;
  for (; used < n && at[used].bucket == number; used++) {
    g3_param *p = &f->param[at[used].param];
    p->offset = end;
    p->bucket = number;
    if (!g3_add_ok(end, p->count, &end) || !align(end, G3_FLAT_ALIGN, &end)) return 0;
    if (p->sum_tp) b->sum_tp = end - offset;
    if (p->group < b->last_group) b->last_group = p->group;
  }
  return align(end - offset, (int64_t)f->dp * G3_FLAT_ALIGN, &b->count) ? used : 0;
}

static g3_status lay_out(g3_flat *f, place *at, int64_t bucket_elements) {
  const int n = f->nparams;
  for (int i = 0; i < n; i++)
    at[i] = (place){.sum_ends = f->param[i].sum_ends,
                    .sum_tp = f->param[i].sum_tp,
                    .group = f->param[i].group,
                    .param = i};
  qsort(at, (size_t)n, sizeof *at, by_backward);
  f->nbuckets = choose_buckets(f->param, at, n, bucket_elements);
  qsort(at, (size_t)n, sizeof *at, by_bucket);
  G3_TRY(G3_NEW_ARRAY(f->nbuckets, &f->bucket));
  int done = 0;
  for (int b = 0; b < f->nbuckets; b++) {
    const int used = fill_bucket(f, at + done, n - done, b, f->count);
    if (used == 0 || !g3_add_ok(f->count, f->bucket[b].count, &f->count))
      return G3_FAIL(G3_EINVAL, "%d parameters, up to %s, have more elements than can be counted",
                     n, f->param[at[done].param].name);
    done += used;
  }
  return G3_OK;
}

g3_status g3_flat_create(const g3_param *params, int n, int dp, int64_t bucket_elements,
                         g3_flat **out) {
  G3_CHECK(n >= 0 && dp >= 1 && bucket_elements >= 1,
           "a flat space of %d parameters for dp %d in buckets of %lld", n, dp,
           (long long)bucket_elements);
  for (int i = 0; i < n; i++)
    check_param(&params[i]);
  g3_status st;
  g3_flat *f = NULL;
  place *at = NULL;
  G3_TRY_TO(done, st, G3_NEW_ARRAY(1, &f));
  G3_TRY_TO(done, st, G3_NEW_ARRAY(n, &f->param));
  G3_TRY_TO(done, st, G3_NEW_ARRAY(n, &at));
  f->nparams = n;
  f->dp = dp;
  for (int i = 0; i < n; i++)
    f->param[i] = params[i];
  G3_TRY_TO(done, st, lay_out(f, at, bucket_elements));
  *out = f;
  f = NULL;
done:
  free(at);
  g3_flat_destroy(f);
  return st;
}

void g3_flat_destroy(g3_flat *f) {
  if (!f) return;
  free(f->param);
  free(f->bucket);
  free(f);
}

int g3_flat_finished(const g3_flat *f, int group) {
  for (int b = 0; b < f->nbuckets; b++)
    if (!f->bucket[b].sum_ends && f->bucket[b].last_group == group) return b;
  return -1;
}

static void check_parts(const g3_flat *f, int parts, int index) {
  G3_CHECK((parts == 1 || parts == f->dp) && index >= 0 && index < parts,
           "range %d of %d in a flat space for dp %d", index, parts, f->dp);
}

int64_t g3_flat_shard_count(const g3_flat *f, int parts) {
  check_parts(f, parts, 0);
  return f->count / parts;
}

static int by_offset(const void *pa, const void *pb) {
  const g3_segment *a = pa, *b = pb;
  return (a->flat > b->flat) - (a->flat < b->flat);
}

/* The real elements of parameter `number` inside range `index`; false when there are none. */
static bool segment_of(const g3_flat *f, int number, int parts, int index, g3_segment *out) {
  const g3_param *p = &f->param[number];
  const g3_bucket *b = &f->bucket[p->bucket];
  const int64_t range = b->count / parts, begin = b->offset + index * range;
  const int64_t real_end = p->offset + g3_slice_count(&p->slice);
  const int64_t from = p->offset > begin ? p->offset : begin;
  const int64_t to = real_end < begin + range ? real_end : begin + range;
  if (from >= to) return false;
  *out = (g3_segment){.param = number,
                      .start = from - p->offset,
                      .count = to - from,
                      .flat = from,
                      .shard = b->offset / parts + from - begin};
  return true;
}

g3_status g3_flat_segments(const g3_flat *f, int parts, int index, g3_segment **out, int *n) {
  check_parts(f, parts, index);
  g3_segment *seg = NULL;
  G3_TRY(G3_NEW_ARRAY(f->nparams, &seg)); /* a range meets a parameter once at most */
  int found = 0;
  for (int i = 0; i < f->nparams; i++)
    if (segment_of(f, i, parts, index, &seg[found])) found++;
  qsort(seg, (size_t)found, sizeof *seg, by_offset);
  *out = seg;
  *n = found;
  return G3_OK;
}
