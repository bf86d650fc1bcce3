#include "ckpt/index.h"
#include <string.h>

static g3_status check_tensor(const g3_ckpt_entry *e, const char *where) {
  if (!g3_ckpt_name_ok(e->name, sizeof e->name))
    return G3_FAIL(G3_EFORMAT, "%s: \"%.95s\" cannot name a tensor", where, e->name);
  if (e->dtype != G3_F32 && e->dtype != G3_BF16)
    return G3_FAIL(G3_EFORMAT, "%s: %s has an unknown dtype; f32 and bf16 are known", where,
                   e->name);
  if (e->ndim < 1 || e->ndim > G3_MAX_DIMS)
    return G3_FAIL(G3_EFORMAT, "%s: %s has %d dimensions; 1 to %d are possible", where, e->name,
                   e->ndim, G3_MAX_DIMS);
  const g3_slice whole = g3_slice_whole(e->ndim, e->global);
  if (!g3_slice_valid(&whole) || g3_slice_count(&whole) < 1 ||
      g3_slice_count(&whole) > INT64_MAX / (int64_t)sizeof(double))
    return G3_FAIL(G3_EFORMAT, "%s: the shape of %s is impossible", where, e->name);
  return G3_OK;
}

static g3_status check_piece(const g3_ckpt_index *ix, const g3_ckpt_entry *e,
                             const g3_ckpt_piece *p, const char *where) {
  const size_t name = strnlen(p->dataset, sizeof p->dataset);
  if (name == 0 || name == sizeof p->dataset)
    return G3_FAIL(G3_EFORMAT, "%s: a piece of %s has no name", where, e->name);
  if (p->shard < 0 || p->shard >= ix->nshards)
    return G3_FAIL(G3_EFORMAT, "%s: %s lies in shard %d, but there are %d", where, p->dataset,
                   p->shard, ix->nshards);
  if (p->slice.ndim != e->ndim ||
      memcmp(p->slice.global, e->global, (size_t)e->ndim * sizeof e->global[0]) != 0 ||
      !g3_slice_valid(&p->slice) || g3_slice_count(&p->slice) < 1)
    return G3_FAIL(G3_EFORMAT, "%s: %s lies outside its tensor", where, p->dataset);
  if (g3_slice_count(&p->slice) > G3_CKPT_PIECE_ELEMENTS)
    return G3_FAIL(G3_EFORMAT, "%s: %s has %lld elements; a piece has at most %lld", where,
                   p->dataset, (long long)g3_slice_count(&p->slice),
                   (long long)G3_CKPT_PIECE_ELEMENTS);
  return G3_OK;
}

/* Pieces stand in the order of their starts, so only those that begin before this one ends in the
 * first dimension can meet it. */
static g3_status check_overlap(const g3_ckpt_entry *e, int i, const char *where) {
  const g3_ckpt_piece *p = &e->piece[i];
  if (i > 0 && g3_ckpt_by_start(&e->piece[i - 1].slice, &p->slice) > 0)
    return G3_FAIL(G3_EFORMAT, "%s: the pieces of %s are not in order", where, e->name);
  for (int j = i + 1; j < e->npieces; j++) {
    const g3_ckpt_piece *q = &e->piece[j];
    if (q->slice.start[0] >= p->slice.start[0] + p->slice.count[0]) break;
    g3_slice both;
    if (g3_slice_meet(&p->slice, &q->slice, &both))
      return G3_FAIL(G3_EFORMAT, "%s: %s of shard %d and %s of shard %d hold the same elements",
                     where, p->dataset, p->shard, q->dataset, q->shard);
  }
  return G3_OK;
}

static g3_status check_tiling(const g3_ckpt_entry *e, const char *where) {
  const g3_slice whole = g3_slice_whole(e->ndim, e->global);
  int64_t held = 0;
  for (int i = 0; i < e->npieces; i++) {
    G3_TRY(check_overlap(e, i, where));
    held += g3_slice_count(&e->piece[i].slice);
  }
  if (held != g3_slice_count(&whole))
    return G3_FAIL(G3_EFORMAT, "%s: the %d pieces of %s hold %lld of its %lld elements", where,
                   e->npieces, e->name, (long long)held, (long long)g3_slice_count(&whole));
  return G3_OK;
}

g3_status g3_ckpt_index_check(const g3_ckpt_index *ix, const char *where) {
  if (ix->nentries == 0) return G3_FAIL(G3_EFORMAT, "%s: no tensors are listed", where);
  if (ix->meta.step < 0 || ix->meta.consumed_samples < 0 || ix->meta.applied_steps < 0)
    return G3_FAIL(G3_EFORMAT,
                   "%s: step %lld, consumed_samples %lld or applied_steps %lld is "
                   "negative",
                   where, (long long)ix->meta.step, (long long)ix->meta.consumed_samples,
                   (long long)ix->meta.applied_steps);
  for (int i = 0; i < ix->nentries; i++) {
    const g3_ckpt_entry *e = &ix->entry[i];
    G3_TRY(check_tensor(e, where));
    if (i > 0 && strcmp(e[-1].name, e->name) >= 0)
      return G3_FAIL(G3_EFORMAT, "%s: the tensors are not in order at %s", where, e->name);
    for (int p = 0; p < e->npieces; p++)
      G3_TRY(check_piece(ix, e, &e->piece[p], where));
    G3_TRY(check_tiling(e, where));
  }
  return G3_OK;
}
