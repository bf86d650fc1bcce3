#include "train/gather.h"
#include "util/array.h"
#include "util/half.h"
#include <stdlib.h>
#include <string.h>

/* What stands before each piece's floats. */
typedef struct {
  g3_slice slice;
  int32_t tp; /* the sender's */
  bool copy, whole_on_tp;
} piece_head;

typedef struct {
  char *data;
  size_t used, room;
} bytes;

static g3_status put(bytes *b, const void *what, size_t n) {
  if (b->used + n > b->room) {
    const size_t room = 2 * (b->used + n);
    char *bigger;
    G3_TRY(g3_alloc_array((int64_t)room, 1, (void **)&bigger));
    if (b->used) memcpy(bigger, b->data, b->used);
    free(b->data);
    b->data = bigger;
    b->room = room;
  }
  memcpy(b->data + b->used, what, n);
  b->used += n;
  return G3_OK;
}

static float element(g3_tensor flat, int64_t i) {
  return flat.dtype == G3_BF16 ? g3_bf16_to_f32(((const g3_bf16 *)flat.data)[i])
                               : ((const float *)flat.data)[i];
}

static g3_status pack_segment(bytes *b, const g3_job *job, g3_tensor flat, const g3_segment *seg) {
  const g3_param *p = &job->rank->flat->param[seg->param];
  g3_slice slices[G3_SLICES_OF_RANGE];
  const int n = g3_slice_range(&p->slice, seg->start, seg->count, slices);
  int64_t at = seg->flat;
  for (int i = 0; i < n; i++) {
    piece_head head;
    memset(&head, 0, sizeof head);
    head.slice = slices[i];
    head.tp = job->mesh->me.at[G3_TP];
    head.copy = p->copy;
    head.whole_on_tp = p->whole_on_tp;
    G3_TRY(put(b, &head, sizeof head));
    for (int64_t e = g3_slice_count(&slices[i]); e > 0; e--, at++) {
      const float x = element(flat, at);
      G3_TRY(put(b, &x, sizeof x));
    }
  }
  return G3_OK;
}

static g3_status pack(bytes *b, const g3_job *job, g3_tensor flat, int number) {
  g3_segment *seg;
  int n;
  G3_TRY(g3_flat_segments(job->rank->flat, job->mesh->grid.size[G3_DP], job->mesh->me.at[G3_DP],
                          &seg, &n));
  g3_status st = G3_OK;
  for (int i = 0; i < n && st == G3_OK; i++)
    if (job->rank->flat->param[seg[i].param].number == number)
      st = pack_segment(b, job, flat, &seg[i]);
  free(seg);
  return st;
}

/* Adds one piece to the place that it has in the whole. */
static g3_status add_piece(const g3_slice *part, const float *data, float *whole) {
  const g3_slice all = g3_slice_whole(part->ndim, part->global);
  const int64_t n = g3_slice_count(&all);
  float *spread;
  G3_TRY(G3_NEW_ARRAY(n, &spread));
  g3_slice_copy(&all, spread, part, data, sizeof *data);
  for (int64_t i = 0; i < n; i++)
    whole[i] += spread[i];
  free(spread);
  return G3_OK;
}

/* Calls for each piece that came. */
typedef g3_status (*piece_fn)(const piece_head *, const float *, g3_whole *);

static bool counts(const piece_head *h) {
  return !h->copy && (!h->whole_on_tp || h->tp == 0);
}

static g3_status merge(const piece_head *h, const float *data, g3_whole *out) {
  const g3_slice all = g3_slice_whole(h->slice.ndim, h->slice.global);
  if (counts(h)) g3_slice_copy(&all, out->value, &h->slice, data, sizeof *data);
  return h->whole_on_tp ? add_piece(&h->slice, data, out->tp_sum) : G3_OK;
}

static g3_status compare(const piece_head *h, const float *data, g3_whole *out) {
  if (counts(h)) return G3_OK;
  const g3_slice all = g3_slice_whole(h->slice.ndim, h->slice.global);
  const int64_t n = g3_slice_count(&h->slice);
  float *mine;
  G3_TRY(G3_NEW_ARRAY(n, &mine));
  g3_slice_copy(&h->slice, mine, &all, out->value, sizeof *mine);
  if (memcmp(mine, data, (size_t)n * sizeof *mine) != 0) out->agree = false;
  free(mine);
  return G3_OK;
}

static g3_status each_piece(const char *all, size_t size, piece_fn fn, g3_whole *out) {
  size_t at = 0;
  while (at < size) {
    piece_head head;
    memcpy(&head, all + at, sizeof head);
    at += sizeof head;
    const int64_t n = g3_slice_count(&head.slice);
    float *data;
    G3_TRY(G3_NEW_ARRAY(n, &data));
    memcpy(data, all + at, (size_t)n * sizeof *data);
    at += (size_t)n * sizeof *data;
    const g3_status st = fn(&head, data, out);
    free(data);
    if (st != G3_OK) return st;
  }
  return G3_OK;
}

g3_status g3_gather_whole(g3_job *job, g3_tensor flat, int number, g3_whole *out) {
  bytes mine = {NULL, 0, 0};
  void *all = NULL;
  size_t *sizes = NULL, size = 0;
  g3_status st = g3_comm_agree(job->world, pack(&mine, job, flat, number));
  if (st == G3_OK)
    st = job->world->ops->host_gather(job->world, mine.data, mine.used, 0, &all, &sizes);
  if (st == G3_OK && job->world->rank == 0) {
    for (int r = 0; r < job->world->size; r++)
      size += sizes[r];
    out->agree = true;
    memset(out->value, 0, (size_t)out->count * sizeof *out->value);
    memset(out->tp_sum, 0, (size_t)out->count * sizeof *out->tp_sum);
    st = each_piece(all, size, merge, out);
    if (st == G3_OK) st = each_piece(all, size, compare, out);
  }
  free(mine.data);
  free(all);
  free(sizes);
  return g3_comm_agree(job->world, st);
}
