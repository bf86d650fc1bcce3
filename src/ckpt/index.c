#include "ckpt/index.h"
#include "ckpt/files.h"
#include "util/array.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void g3_ckpt_index_free(g3_ckpt_index *ix) {
  if (!ix) return;
  if (ix->entry) free(ix->entry[0].piece); /* one array for all entries */
  free(ix->entry);
  free(ix->shard_bytes);
  free(ix->meta.attr);
  free(ix);
}

static int by_name(const void *key, const void *entry) {
  return strcmp(key, ((const g3_ckpt_entry *)entry)->name);
}

const g3_ckpt_entry *g3_ckpt_find(const g3_ckpt_index *ix, const char *name) {
  return bsearch(name, ix->entry, (size_t)ix->nentries, sizeof *ix->entry, by_name);
}

const char *g3_ckpt_attr_get(const g3_ckpt_meta *meta, const char *key) {
  for (int i = 0; i < meta->nattrs; i++)
    if (strcmp(meta->attr[i].key, key) == 0) return meta->attr[i].value;
  return NULL;
}

size_t g3_ckpt_index_stage_bytes(const g3_ckpt_index *ix) {
  int64_t most = 0;
  for (int e = 0; e < ix->nentries; e++)
    for (int p = 0; p < ix->entry[e].npieces; p++) {
      const int64_t count = g3_slice_count(&ix->entry[e].piece[p].slice);
      if (count > most) most = count;
    }
  return (size_t)most * sizeof(float);
}

g3_status g3_ckpt_shards_check(const g3_ckpt_index *ix) {
  for (int i = 0; i < ix->nshards; i++) {
    char path[G3_CKPT_PATH];
    G3_TRY(g3_ckpt_path(path, "%s/shard-%05d.h5", ix->path, i));
    struct stat st;
    if (stat(path, &st) != 0)
      return G3_FAIL(G3_EIO, "%s: the checkpoint has %d shards, and this one cannot be found: %s",
                     path, ix->nshards, strerror(errno));
    if ((int64_t)st.st_size != ix->shard_bytes[i])
      return G3_FAIL(G3_EFORMAT,
                     "%s has %lld bytes, but the index says %lld: it is cut short or "
                     "not the shard that was written",
                     path, (long long)st.st_size, (long long)ix->shard_bytes[i]);
  }
  return G3_OK;
}

static int by_name_and_start(const void *a, const void *b) {
  const g3_ckpt_row *x = a, *y = b;
  const int names = strcmp(x->name, y->name);
  return names ? names : g3_ckpt_by_start(&x->piece.slice, &y->piece.slice);
}

static int by_key(const void *a, const void *b) {
  return strcmp(((const g3_ckpt_attr *)a)->key, ((const g3_ckpt_attr *)b)->key);
}

static g3_status copy_meta(const g3_ckpt_meta *meta, g3_ckpt_meta *out) {
  g3_ckpt_attr *attr = NULL;
  G3_TRY(G3_NEW_ARRAY(meta->nattrs, &attr));
  if (meta->nattrs) {
    memcpy(attr, meta->attr, (size_t)meta->nattrs * sizeof *attr);
    qsort(attr, (size_t)meta->nattrs, sizeof *attr, by_key);
  }
  *out = *meta;
  out->attr = attr;
  return G3_OK;
}

static bool same_tensor(const g3_ckpt_row *a, const g3_ckpt_row *b) {
  const g3_slice *x = &a->piece.slice, *y = &b->piece.slice;
  return a->dtype == b->dtype && x->ndim == y->ndim &&
         memcmp(x->global, y->global, sizeof x->global) == 0;
}

static g3_status fill_entries(g3_ckpt_index *ix, const g3_ckpt_row *rows, int64_t nrows,
                              g3_ckpt_piece *piece) {
  g3_ckpt_entry *e = NULL;
  for (int64_t i = 0; i < nrows; i++) {
    const g3_ckpt_row *r = &rows[i];
    if (e && strcmp(e->name, r->name) == 0) {
      if (!same_tensor(r - 1, r))
        return G3_FAIL(G3_EINVAL, "ranks differ in the dtype or the whole shape of %s", r->name);
    } else {
      e = &ix->entry[ix->nentries++];
      memcpy(e->name, r->name, sizeof e->name);
      e->dtype = (g3_dtype)r->dtype;
      e->ndim = r->piece.slice.ndim;
      memcpy(e->global, r->piece.slice.global, sizeof e->global);
      e->piece = piece;
    }
    *piece++ = r->piece;
    e->npieces++;
  }
  return G3_OK;
}

static g3_status build(g3_ckpt_index *ix, const g3_ckpt_meta *meta, g3_ckpt_row *rows,
                       int64_t nrows, const int64_t *shard_bytes) {
  G3_TRY(copy_meta(meta, &ix->meta));
  G3_TRY(G3_NEW_ARRAY(ix->nshards, &ix->shard_bytes));
  memcpy(ix->shard_bytes, shard_bytes, (size_t)ix->nshards * sizeof *shard_bytes);
  if (nrows == 0) return G3_FAIL(G3_EINVAL, "%s: there is nothing to save", ix->path);
  qsort(rows, (size_t)nrows, sizeof *rows, by_name_and_start);
  int64_t names = 1;
  for (int64_t i = 1; i < nrows; i++)
    names += strcmp(rows[i - 1].name, rows[i].name) != 0;
  if (nrows > INT32_MAX)
    return G3_FAIL(G3_EINVAL, "%s: %lld pieces are too many for the index", ix->path,
                   (long long)nrows);
  g3_ckpt_piece *piece = NULL;
  G3_TRY(G3_NEW_ARRAY(nrows, &piece));
  const g3_status st = G3_NEW_ARRAY(names, &ix->entry);
  if (st != G3_OK) {
    free(piece);
    return st;
  }
  ix->entry[0].piece = piece;
  return fill_entries(ix, rows, nrows, piece);
}

g3_status g3_ckpt_index_build(const char *path, const g3_ckpt_meta *meta, g3_ckpt_row *rows,
                              int64_t nrows, const int64_t *shard_bytes, int nshards,
                              g3_ckpt_index **out) {
  g3_ckpt_index *ix = NULL;
  G3_TRY(G3_NEW_ARRAY(1, &ix));
  ix->nshards = nshards;
  g3_status st = g3_ckpt_path(ix->path, "%s", path);
  if (st == G3_OK) st = build(ix, meta, rows, nrows, shard_bytes);
  if (st != G3_OK) {
    g3_ckpt_index_free(ix);
    return g3_trace_up(st, __FILE__, __LINE__);
  }
  *out = ix;
  return G3_OK;
}
