#include "parallel/slice.h"
#include "util/array.h"
#include <string.h>

static int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b) {
  return a > b ? a : b;
}

static void check_dims(int ndim) {
  G3_CHECK(ndim >= 1 && ndim <= G3_MAX_DIMS, "a slice of %d dimensions; 1 to %d are possible", ndim,
           (int)G3_MAX_DIMS);
}

g3_slice g3_slice_whole(int ndim, const int64_t *global) {
  check_dims(ndim);
  g3_slice s;
  memset(&s, 0, sizeof s);
  s.ndim = ndim;
  for (int d = 0; d < ndim; d++)
    s.global[d] = s.count[d] = global[d];
  return s;
}

int64_t g3_slice_count(const g3_slice *s) {
  check_dims(s->ndim);
  int64_t n = 1;
  for (int d = 0; d < s->ndim; d++)
    n *= s->count[d];
  return n;
}

/* Zeros must not hide what the other dimensions would overflow to: strides are products of them. */
static bool product_fits(int ndim, const int64_t *dim) {
  int64_t n = 1;
  for (int d = 0; d < ndim; d++)
    if (!g3_mul_ok(n, larger(dim[d], 1), &n)) return false;
  return true;
}

bool g3_slice_valid(const g3_slice *s) {
  if (s->ndim < 1 || s->ndim > G3_MAX_DIMS) return false;
  for (int d = 0; d < s->ndim; d++) {
    int64_t end;
    if (s->global[d] < 0 || s->start[d] < 0 || s->count[d] < 0) return false;
    if (!g3_add_ok(s->start[d], s->count[d], &end) || end > s->global[d]) return false;
  }
  return product_fits(s->ndim, s->global);
}

bool g3_slice_meet(const g3_slice *a, const g3_slice *b, g3_slice *out) {
  check_dims(a->ndim);
  G3_CHECK(a->ndim == b->ndim, "slices of tensors with %d and %d dimensions", a->ndim, b->ndim);
  g3_slice both = *a;
  for (int d = 0; d < a->ndim; d++) {
    G3_CHECK(a->global[d] == b->global[d],
             "slices of tensors with %lld and %lld elements in dimension %d",
             (long long)a->global[d], (long long)b->global[d], d);
    both.start[d] = larger(a->start[d], b->start[d]);
    both.count[d] = smaller(a->start[d] + a->count[d], b->start[d] + b->count[d]) - both.start[d];
    if (both.count[d] <= 0) return false;
  }
  *out = both;
  return true;
}

g3_slice g3_slice_cut(const g3_slice *s, int d, int64_t part, int64_t index) {
  G3_CHECK(d >= 0 && d < s->ndim && part >= 0 && index >= 0,
           "cutting dimension %d of %d into ranges of %lld, number %lld", d, s->ndim,
           (long long)part, (long long)index);
  int64_t from;
  if (!g3_mul_ok(part, index, &from)) from = s->count[d];
  from = smaller(from, s->count[d]);
  g3_slice cut = *s;
  cut.start[d] = s->start[d] + from;
  cut.count[d] = smaller(part, s->count[d] - from);
  return cut;
}

/* The longest run from position `pos` that is one slice and ends before `end`: whole blocks of the
 * outermost dimension on which pos lies at a block's beginning. Returns its elements. */
static int64_t longest(const g3_slice *s, int64_t pos, int64_t end, g3_slice *out) {
  int64_t block = g3_slice_count(s); /* elements of one step along dimension d */
  int d = 0;
  for (; d < s->ndim; d++) {
    block /= s->count[d];
    if (pos % block == 0 && end - pos >= block) break;
  }
  g3_slice run = *s;
  int64_t rest = pos / block, steps = 1;
  for (int i = d; i >= 0; i--) {
    const int64_t at = rest % s->count[i];
    rest /= s->count[i];
    if (i == d) steps = smaller(s->count[i] - at, (end - pos) / block);
    run.start[i] = s->start[i] + at;
    run.count[i] = i == d ? steps : 1;
  }
  *out = run;
  return steps * block;
}

/* Runs grow towards the outer dimensions, take one middle part there, and shrink again: at most two
 * in each dimension but the outermost. */
int g3_slice_range(const g3_slice *s, int64_t start, int64_t count,
                   g3_slice out[G3_SLICES_OF_RANGE]) {
  const int64_t all = g3_slice_count(s);
  G3_CHECK(start >= 0 && count >= 0 && start <= all && count <= all - start,
           "elements [%lld, +%lld) of a slice of %lld", (long long)start, (long long)count,
           (long long)all);
  int n = 0;
  for (int64_t pos = start; pos < start + count;)
    pos += longest(s, pos, start + count, &out[n++]);
  return n;
}

/* Offset of the first element of `part` in a dense buffer that holds `s`. */
static int64_t offset_in(const g3_slice *s, const g3_slice *part) {
  int64_t at = 0;
  for (int d = 0; d < s->ndim; d++)
    at = at * s->count[d] + part->start[d] - s->start[d];
  return at;
}

/* Moves `row` to the next one of `part`, over its dimensions before `inner`; false after the last.
 */
static bool next_row(const g3_slice *part, int inner, g3_slice *row) {
  for (int d = inner - 1; d >= 0; d--) {
    if (++row->start[d] < part->start[d] + part->count[d]) return true;
    row->start[d] = part->start[d];
  }
  return false;
}

int64_t g3_slice_copy(const g3_slice *to, void *to_data, const g3_slice *from,
                      const void *from_data, size_t bytes) {
  g3_slice both;
  if (!g3_slice_meet(to, from, &both)) return 0;
  /* Dimensions from `inner` on are one run of memory in both buffers. */
  int inner = both.ndim - 1;
  int64_t run = both.count[inner];
  while (inner > 0 && both.count[inner] == to->count[inner] &&
         both.count[inner] == from->count[inner])
    run *= both.count[--inner];
  g3_slice row = both;
  do
    memcpy((char *)to_data + (size_t)offset_in(to, &row) * bytes,
           (const char *)from_data + (size_t)offset_in(from, &row) * bytes, (size_t)run * bytes);
  while (next_row(&both, inner, &row));
  return g3_slice_count(&both);
}
