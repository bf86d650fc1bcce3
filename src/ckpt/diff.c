#include "ckpt/runs.h"
#include "ckpt/shard.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* What differs in one tensor. */
typedef struct {
  int64_t elements, differing;
  double largest; /* |a - b| where both are finite */
} difference;

/* One checkpoint's side: its reader, and the piece that its part of the stage holds. */
typedef struct {
  g3_ckpt_reader reader;
  const g3_ckpt_piece *held;
  g3_tensor stage, data;
} side;

static g3_status hold(side *s, const g3_ckpt_entry *e, const g3_ckpt_piece *p) {
  if (s->held == p) return G3_OK;
  s->held = NULL;
  G3_TRY(g3_ckpt_reader_read(&s->reader, e, p, s->stage, &s->data));
  s->data = g3_ckpt_convert(s->data, G3_F32);
  s->held = p;
  return G3_OK;
}

static void compare_run(const float *a, const float *b, int64_t n, difference *d) {
  if (memcmp(a, b, (size_t)n * sizeof *a) == 0) return;
  for (int64_t i = 0; i < n; i++) {
    if (memcmp(&a[i], &b[i], sizeof a[i]) == 0) continue;
    d->differing++;
    const double gap = fabs((double)a[i] - (double)b[i]);
    if (isfinite(gap) && gap > d->largest) d->largest = gap;
  }
}

static g3_status compare_tensor(side *a, const g3_ckpt_entry *ea, side *b, const g3_ckpt_entry *eb,
                                difference *d) {
  for (int i = 0; i < ea->npieces; i++) {
    const g3_ckpt_piece *pa = &ea->piece[i];
    d->elements += g3_slice_count(&pa->slice);
    for (int j = 0; j < eb->npieces; j++) {
      const g3_ckpt_piece *pb = &eb->piece[j];
      g3_ckpt_runs r = g3_ckpt_runs_of(&pa->slice, &pb->slice);
      if (r.lines == 0) continue;
      G3_TRY(hold(a, ea, pa));
      G3_TRY(hold(b, eb, pb));
      while (g3_ckpt_run_next(&r))
        compare_run((const float *)a->data.data + r.a, (const float *)b->data.data + r.b, r.len, d);
    }
  }
  return G3_OK;
}

static bool same_shape(const g3_ckpt_entry *a, const g3_ckpt_entry *b) {
  return a->ndim == b->ndim &&
         memcmp(a->global, b->global, (size_t)a->ndim * sizeof a->global[0]) == 0;
}

/* Prints a row when the tensors differ; *differs says whether they do. */
static g3_status diff_tensor(side *a, const g3_ckpt_entry *ea, side *b, const g3_ckpt_entry *eb,
                             FILE *out, bool *differs) {
  difference d = {0};
  *differs = true;
  if (!same_shape(ea, eb)) {
    fprintf(out, "%-56s shapes differ\n", ea->name);
    return G3_OK;
  }
  G3_TRY(compare_tensor(a, ea, b, eb, &d));
  if (ea->dtype != eb->dtype)
    fprintf(out, "%-56s %s and %s; %" PRId64 " of %" PRId64 " elements differ, by at most %.3g\n",
            ea->name, g3_dtype_name(ea->dtype), g3_dtype_name(eb->dtype), d.differing, d.elements,
            d.largest);
  else if (d.differing)
    fprintf(out, "%-56s %" PRId64 " of %" PRId64 " elements differ, by at most %.3g\n", ea->name,
            d.differing, d.elements, d.largest);
  else
    *differs = false;
  return G3_OK;
}

/* Both lists of tensors are in order: one walk over both. */
static g3_status diff_all(side *a, side *b, FILE *out, int64_t *differing) {
  const g3_ckpt_index *x = a->reader.ix, *y = b->reader.ix;
  int64_t count = 0;
  for (int i = 0, j = 0; i < x->nentries || j < y->nentries;) {
    const int order = i == x->nentries   ? 1
                      : j == y->nentries ? -1
                                         : strcmp(x->entry[i].name, y->entry[j].name);
    bool differs = true;
    if (order < 0)
      fprintf(out, "%-56s only in %s\n", x->entry[i].name, x->path);
    else if (order > 0)
      fprintf(out, "%-56s only in %s\n", y->entry[j].name, y->path);
    else
      G3_TRY(diff_tensor(a, &x->entry[i], b, &y->entry[j], out, &differs));
    count += differs;
    i += order <= 0;
    j += order >= 0;
  }
  *differing = count;
  return G3_OK;
}

g3_status g3_ckpt_diff(const g3_ckpt_index *a, const g3_ckpt_index *b, g3_tensor stage, FILE *out,
                       int64_t *differing) {
  const size_t room_a = g3_ckpt_index_stage_bytes(a), room_b = g3_ckpt_index_stage_bytes(b);
  G3_CHECK(room_a + room_b <= g3_tensor_bytes(stage), "the staging is too small for both sides");
  char *base = stage.data;
  side x = {g3_ckpt_reader_of(a), NULL, g3_tensor_1d(base, G3_U8, (int64_t)room_a), {0}};
  side y = {g3_ckpt_reader_of(b), NULL, g3_tensor_1d(base + room_a, G3_U8, (int64_t)room_b), {0}};
  const g3_status st = diff_all(&x, &y, out, differing);
  g3_ckpt_reader_close(&x.reader);
  g3_ckpt_reader_close(&y.reader);
  if (st == G3_OK && ferror(out)) return G3_FAIL(G3_EIO, "cannot print the differences");
  return st;
}
