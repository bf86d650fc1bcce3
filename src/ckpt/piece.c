#include "ckpt/piece.h"
#include "util/array.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool g3_ckpt_name_ok(const char *name, size_t size) {
  const size_t n = strnlen(name, size);
  if (n == 0 || n == size || strchr(name, '%')) return false;
  if (strncmp(name, "index/", 6) == 0 || strncmp(name, "config/", 7) == 0) return false;
  if (strcmp(name, "index") == 0 || strcmp(name, "config") == 0) return false;
  for (const char *part = name;; part++) {
    const size_t len = strcspn(part, "/");
    if (len == 0 || (part[0] == '.' && (len == 1 || (len == 2 && part[1] == '.')))) return false;
    part += len;
    if (*part == '\0') return true;
  }
}

int g3_ckpt_by_start(const g3_slice *a, const g3_slice *b) {
  for (int d = 0; d < a->ndim && d < b->ndim; d++)
    if (a->start[d] != b->start[d]) return a->start[d] < b->start[d] ? -1 : 1;
  return 0;
}

size_t g3_ckpt_stage_bytes(const g3_ckpt_item *items, int n) {
  int64_t most = 0;
  for (int i = 0; i < n; i++) {
    const g3_slice whole = g3_slice_whole(items[i].slice.ndim, items[i].slice.global);
    const int64_t count = g3_slice_valid(&whole) ? g3_slice_count(&whole) : G3_CKPT_PIECE_ELEMENTS;
    if (count > most) most = count;
  }
  if (most > G3_CKPT_PIECE_ELEMENTS) most = G3_CKPT_PIECE_ELEMENTS;
  return (size_t)most * sizeof(float);
}

/* A piece is `part` neighbours along dimension `dim`, one place in the dimensions outside it. */
typedef struct {
  int dim;
  int64_t part, inner; /* inner: elements of one neighbour */
} cutting;

static cutting cut_of(const g3_slice *s) {
  cutting c = {s->ndim - 1, 0, 1};
  while (c.dim > 0 && c.inner * s->count[c.dim] <= G3_CKPT_PIECE_ELEMENTS)
    c.inner *= s->count[c.dim--];
  c.part = G3_CKPT_PIECE_ELEMENTS / c.inner;
  if (c.part > s->count[c.dim]) c.part = s->count[c.dim];
  return c;
}

static int64_t pieces_of(const g3_slice *s) {
  if (g3_slice_count(s) == 0) return 0;
  const cutting c = cut_of(s);
  int64_t n = g3_ceil_div(s->count[c.dim], c.part);
  for (int d = 0; d < c.dim; d++)
    n *= s->count[d];
  return n;
}

/* Piece k of the slice, in the order in which its elements lie. */
static g3_slice piece_of(const g3_slice *s, int64_t k) {
  const cutting c = cut_of(s);
  const int64_t along = g3_ceil_div(s->count[c.dim], c.part);
  g3_slice p = *s;
  const int64_t first = k % along * c.part;
  p.start[c.dim] += first;
  p.count[c.dim] = first + c.part > s->count[c.dim] ? s->count[c.dim] - first : c.part;
  k /= along;
  for (int d = c.dim - 1; d >= 0; d--) {
    p.start[d] += k % s->count[d];
    p.count[d] = 1;
    k /= s->count[d];
  }
  return p;
}

static g3_status name_piece(const g3_ckpt_item *item, g3_ckpt_piece *p) {
  size_t used = (size_t)snprintf(p->dataset, sizeof p->dataset, "%s", item->name);
  for (int d = 0; d < p->slice.ndim; d++) {
    const int n = snprintf(p->dataset + used, sizeof p->dataset - used, "%c%" PRId64, d ? ',' : '@',
                           p->slice.start[d]);
    used += (size_t)n;
    if (used >= sizeof p->dataset)
      return G3_FAIL(G3_EINVAL, "the name of a piece of %s is too long", item->name);
  }
  return G3_OK;
}

static g3_status check_item(const g3_ckpt_item *it) {
  if (!g3_ckpt_name_ok(it->name, sizeof it->name))
    return G3_FAIL(G3_EINVAL, "\"%.95s\" cannot name a tensor in a checkpoint", it->name);
  G3_CHECK(it->slice.ndim >= 1 && g3_slice_valid(&it->slice), "%s: the slice is not valid",
           it->name);
  G3_CHECK(it->local.dtype == G3_F32 || it->local.dtype == G3_BF16, "%s: dtype %s cannot be saved",
           it->name, g3_dtype_name(it->local.dtype));
  G3_CHECK(g3_tensor_dense(it->local) && g3_tensor_count(it->local) == g3_slice_count(&it->slice),
           "%s: the local tensor is not its slice", it->name);
  return G3_OK;
}

static g3_status fill_rows(const g3_ckpt_item *it, int32_t number, int64_t pieces,
                           g3_ckpt_row *rows) {
  int64_t offset = 0;
  for (int64_t k = 0; k < pieces; k++) {
    g3_ckpt_row *r = &rows[k];
    memcpy(r->name, it->name, strlen(it->name));
    r->dtype = (int32_t)it->local.dtype;
    r->item = number;
    r->offset = offset;
    const g3_slice p = piece_of(&it->slice, k);
    r->piece.slice.ndim = p.ndim;
    for (int d = 0; d < p.ndim; d++) {
      r->piece.slice.global[d] = p.global[d];
      r->piece.slice.start[d] = p.start[d];
      r->piece.slice.count[d] = p.count[d];
    }
    offset += g3_slice_count(&p);
    G3_TRY(name_piece(it, &r->piece));
  }
  return G3_OK;
}

g3_status g3_ckpt_cut(const g3_ckpt_item *items, int n, g3_ckpt_row **rows, int64_t *nrows) {
  int64_t total = 0;
  for (int i = 0; i < n; i++) {
    G3_TRY(check_item(&items[i]));
    total += pieces_of(&items[i].slice);
  }
  g3_ckpt_row *r = NULL;
  G3_TRY(G3_NEW_ARRAY(total, &r));
  int64_t used = 0;
  for (int i = 0; i < n; i++) {
    const int64_t pieces = pieces_of(&items[i].slice);
    const g3_status st = fill_rows(&items[i], i, pieces, r + used);
    if (st != G3_OK) {
      free(r);
      return g3_trace_up(st, __FILE__, __LINE__);
    }
    used += pieces;
  }
  *rows = r;
  *nrows = total;
  return G3_OK;
}
