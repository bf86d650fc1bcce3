#include "ckpt/runs.h"
#include "ckpt/shard.h"
#include "util/array.h"
#include <stdlib.h>
#include <string.h>

/* An item and the stored tensor that it wants. */
typedef struct {
  const g3_ckpt_entry *entry;
  const g3_ckpt_item *item;
} want;

/* A stored piece and the wants of its tensor, of which it meets one at least. */
typedef struct {
  const g3_ckpt_entry *entry;
  const g3_ckpt_piece *piece;
  const want *wants;
  int nwants;
} visit;

typedef struct {
  want *wants;
  int nwants;
  visit *visits;
  int64_t nvisits;
} itinerary;

static bool optional(const g3_ckpt_item *it, const char *prefix) {
  return prefix && strncmp(it->name, prefix, strlen(prefix)) == 0;
}

static g3_status check_shape(const g3_ckpt_index *ix, const g3_ckpt_entry *e, const g3_slice *s) {
  if (e->ndim == s->ndim &&
      memcmp(e->global, s->global, (size_t)s->ndim * sizeof s->global[0]) == 0)
    return G3_OK;
  char text[2][96] = {"", ""};
  const int ndim[2] = {e->ndim, s->ndim};
  const int64_t *dims[2] = {e->global, s->global};
  for (int k = 0; k < 2; k++)
    for (int d = 0; d < ndim[k]; d++) {
      const size_t used = strlen(text[k]);
      snprintf(text[k] + used, sizeof text[k] - used, d ? " x %lld" : "%lld",
               (long long)dims[k][d]);
    }
  return G3_FAIL(G3_EFORMAT,
                 "%s/index.h5: %s is %s, but the model wants %s: it belongs to another "
                 "model",
                 ix->path, e->name, text[0], text[1]);
}

static g3_status find_wants(const g3_ckpt_index *ix, const g3_ckpt_item *items, int n,
                            const char *optional_prefix, itinerary *it, bool *found) {
  for (int i = 0; i < n; i++) {
    const g3_ckpt_item *item = &items[i];
    G3_CHECK(memchr(item->name, '\0', sizeof item->name) && g3_slice_valid(&item->slice) &&
                 g3_tensor_dense(item->local) &&
                 g3_tensor_count(item->local) == g3_slice_count(&item->slice) &&
                 (item->local.dtype == G3_F32 || item->local.dtype == G3_BF16),
             "%.95s: the local tensor is not its slice, or not of f32 or bf16", item->name);
    const g3_ckpt_entry *e = g3_ckpt_find(ix, item->name);
    if (found) found[i] = e != NULL;
    if (!e && !optional(item, optional_prefix))
      return G3_FAIL(G3_EFORMAT,
                     "%s/index.h5 has no tensor %s among its %d (the first is %s): it "
                     "belongs to another model",
                     ix->path, item->name, ix->nentries, ix->entry[0].name);
    if (!e) continue;
    G3_TRY(check_shape(ix, e, &item->slice));
    it->wants[it->nwants++] = (want){e, item};
  }
  return G3_OK;
}

/* By tensor; within one, items of the stored dtype first, since conversion happens in place. */
static int by_entry(const void *a, const void *b) {
  const want *x = a, *y = b;
  if (x->entry != y->entry) return x->entry < y->entry ? -1 : 1;
  const int cx = x->item->local.dtype != x->entry->dtype;
  const int cy = y->item->local.dtype != y->entry->dtype;
  return cx != cy ? cx - cy : (x->item > y->item) - (x->item < y->item);
}

static int by_place(const void *a, const void *b) {
  return g3_ckpt_by_shard(((const visit *)a)->piece, ((const visit *)b)->piece);
}

static bool met(const want *wants, int n, const g3_ckpt_piece *p) {
  g3_slice both;
  for (int i = 0; i < n; i++)
    if (g3_slice_meet(&wants[i].item->slice, &p->slice, &both)) return true;
  return false;
}

/* The number of wants at the front that are of one tensor. */
static int group_of(const want *wants, int n) {
  int k = 1;
  while (k < n && wants[k].entry == wants[0].entry)
    k++;
  return k;
}

static g3_status plan_visits(itinerary *it) {
  qsort(it->wants, (size_t)it->nwants, sizeof *it->wants, by_entry);
  int64_t most = 0;
  for (int i = 0; i < it->nwants; i += group_of(it->wants + i, it->nwants - i))
    most += it->wants[i].entry->npieces;
  G3_TRY(G3_NEW_ARRAY(most, &it->visits));
  for (int i = 0, k; i < it->nwants; i += k) {
    const want *w = &it->wants[i];
    k = group_of(w, it->nwants - i);
    for (int p = 0; p < w->entry->npieces; p++)
      if (met(w, k, &w->entry->piece[p]))
        it->visits[it->nvisits++] = (visit){w->entry, &w->entry->piece[p], w, k};
  }
  qsort(it->visits, (size_t)it->nvisits, sizeof *it->visits, by_place);
  return G3_OK;
}

/* Copies what the piece, dense in `data`, and the item share. */
static g3_status scatter(g3_stream *s, const g3_ckpt_item *item, const g3_slice *piece,
                         g3_tensor data) {
  const g3_tensor local = g3_tensor_as_1d(item->local);
  g3_ckpt_runs r = g3_ckpt_runs_of(&item->slice, piece);
  while (g3_ckpt_run_next(&r))
    G3_TRY(s->dev->ops->copy(s, g3_tensor_part(local, 0, r.a, r.len),
                             g3_tensor_part(data, 0, r.b, r.len)));
  return G3_OK;
}

static g3_status pay_visit(g3_ckpt_reader *r, g3_stream *s, const visit *v, g3_tensor stage) {
  g3_tensor data;
  G3_TRY(g3_ckpt_reader_read(r, v->entry, v->piece, stage, &data));
  for (int i = 0; i < v->nwants; i++) {
    const g3_ckpt_item *item = v->wants[i].item;
    if (data.dtype != item->local.dtype) {
      G3_CHECK((size_t)g3_tensor_count(data) * sizeof(float) <= g3_tensor_bytes(stage),
               "%s: the staging is too small to convert", item->name);
      G3_TRY(s->dev->ops->sync(s));
      data = g3_ckpt_convert(data, item->local.dtype);
    }
    G3_TRY(scatter(s, item, &v->piece->slice, data));
  }
  return s->dev->ops->sync(s); /* the next piece overwrites the stage */
}

g3_status g3_ckpt_load(const g3_ckpt_index *ix, g3_stream *s, const g3_ckpt_item *items, int n,
                       const char *optional_prefix, g3_tensor stage, bool *found) {
  itinerary it = {0};
  g3_ckpt_reader r = g3_ckpt_reader_of(ix);
  g3_status st;
  G3_TRY_TO(done, st, G3_NEW_ARRAY(n, &it.wants));
  G3_TRY_TO(done, st, find_wants(ix, items, n, optional_prefix, &it, found));
  G3_TRY_TO(done, st, plan_visits(&it));
  for (int64_t i = 0; i < it.nvisits; i++)
    G3_TRY_TO(done, st, pay_visit(&r, s, &it.visits[i], stage));
done:
  g3_ckpt_reader_close(&r);
  free(it.visits);
  free(it.wants);
  return st;
}
