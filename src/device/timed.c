#include "device/timed.h"
#include "util/array.h"
#include "util/clock.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STREAMS = 8, EVENTS = 16 };

/* The ops that are timed, in the order of their rows; the last row is of transfers that nobody
 * claimed. */
#define OPS(X)                                                                                     \
  X(copy), X(fill), X(cast), X(gemm), X(column_sum), X(layernorm), X(layernorm_bwd), X(gelu),      \
      X(gelu_bwd), X(attention), X(attention_bwd), X(embedding), X(embedding_bwd), X(position),    \
      X(position_bwd), X(bias_dropout_add), X(dropout_bwd), X(xent_peak), X(xent_sums),            \
      X(xent_loss), X(sum), X(sum_squares), X(add), X(tree_sum), X(exact_sum), X(exact_value),     \
      X(control), X(adamw)
#define AS_ROW(op) ROW_##op
enum { OPS(AS_ROW), ROW_transfer, OWN_ROWS };
#undef AS_ROW
#define AS_NAME(op) #op
static const char *const row_names[] = {OPS(AS_NAME), "transfer"};
#undef AS_NAME

static g3_timed_unit unit_of(int row) {
  if (row == ROW_gemm || row == ROW_attention || row == ROW_attention_bwd) return G3_TIMED_FLOPS;
  return row == ROW_transfer ? G3_TIMED_MOVED : G3_TIMED_BYTES;
}

/* Which row each pending work of a stream belongs to. Works are numbered as they come. */
typedef struct {
  const g3_stream *stream;
  int row[G3_STREAM_PENDING]; /* of work i at i % G3_STREAM_PENDING */
  int64_t claimed; /* works with smaller numbers have their row */
} flight;

/* How far a stream's works reached when an event was recorded. */
typedef struct {
  const g3_event *event;
  g3_stream *stream;
  int64_t works;
} mark;

/* The table that takes the place of the device's own; what is behind it is found from there. */
typedef struct {
  g3_device_ops table;
  g3_timed *timed;
} front;

struct g3_timed {
  front front;
  g3_device *dev;
  const g3_device_ops *inner;
  g3_timed_row row[G3_TIMED_ROWS];
  int nrows;
  g3_timed_product product[G3_TIMED_PRODUCTS];
  int nproducts;
  flight flight[STREAMS];
  int nflights;
  mark mark[EVENTS];
  int nmarks;
};

static g3_timed *timed_of(const g3_stream *s) {
  return ((const front *)s->dev->ops)->timed;
}

g3_status g3_timed_add_row(g3_timed *t, const char *name, g3_timed_unit unit, int *out) {
  if (t->nrows == G3_TIMED_ROWS)
    return G3_FAIL(G3_EINVAL, "no row is left to time '%s': all %d are taken", name,
                   (int)G3_TIMED_ROWS);
  g3_timed_row *row = &t->row[t->nrows];
  *row = (g3_timed_row){.unit = unit};
  snprintf(row->name, sizeof row->name, "%s", name);
  *out = t->nrows++;
  return G3_OK;
}

void g3_timed_add(g3_timed *t, int row, int64_t calls, double seconds, double work) {
  t->row[row].calls += calls;
  t->row[row].seconds += seconds;
  t->row[row].work += work;
}

static flight *flight_of(g3_timed *t, const g3_stream *s) {
  for (int i = 0; i < t->nflights; i++)
    if (t->flight[i].stream == s) return &t->flight[i];
  G3_CHECK(t->nflights < STREAMS, "more than %d streams of a timed device", (int)STREAMS);
  flight *f = &t->flight[t->nflights++];
  *f = (flight){.stream = s, .claimed = s->completed};
  return f;
}

void g3_timed_claim(g3_timed *t, const g3_stream *s, int row) {
  flight *f = flight_of(t, s);
  const int64_t end = s->completed + s->npending;
  if (f->claimed < s->completed) f->claimed = s->completed;
  while (f->claimed < end)
    f->row[f->claimed++ % G3_STREAM_PENDING] = row;
}

/* As g3_stream_drain_to. */
static g3_status drain_to(g3_timed *t, g3_stream *s, int64_t works) {
  g3_timed_claim(t, s, ROW_transfer);
  const flight *f = flight_of(t, s);
  while (s->npending > 0 && s->completed < works) {
    const int row = f->row[s->completed % G3_STREAM_PENDING];
    const double begin = g3_now();
    G3_TRY(g3_stream_drain_to(s, s->completed + 1));
    g3_timed_add(t, row, 0, g3_now() - begin, 0);
  }
  return G3_OK;
}

g3_status g3_timed_drain(g3_timed *t, g3_stream *s) {
  return drain_to(t, s, INT64_MAX);
}

static g3_status stop(g3_timed *t, g3_stream *s, int row, double begin, double work) {
  G3_TRY(t->inner->sync(s));
  g3_timed_add(t, row, 1, g3_now() - begin, work);
  return G3_OK;
}

/* Elements and bytes of a view; 0 for none. */
static double count(g3_tensor t) {
  return (double)g3_tensor_count(t);
}
static double bytes(g3_tensor t) {
  return count(t) * (double)g3_dtype_bytes(t.dtype);
}

/* Two products of q.k and p.v, over the half that causality leaves: a multiply and an add each. */
static double attention_flops(g3_tensor q) {
  return count(q) * 2.0 * (double)(q.dim[1] + 1);
}

#define TIMED(op, params, args, work)                                                              \
  static g3_status timed_##op params {                                                             \
    g3_timed *t_ = timed_of(s);                                                                    \
    G3_TRY(g3_timed_drain(t_, s));                                                                 \
    const double begin_ = g3_now();                                                                \
    G3_TRY(t_->inner->op args);                                                                    \
    return stop(t_, s, ROW_##op, begin_, work);                                                    \
  }

TIMED(copy, (g3_stream * s, g3_tensor dst, g3_tensor src), (s, dst, src), bytes(dst) + bytes(src))
TIMED(fill, (g3_stream * s, g3_tensor dst, float value), (s, dst, value), bytes(dst))
TIMED(cast, (g3_stream * s, g3_tensor dst, g3_tensor src), (s, dst, src), bytes(dst) + bytes(src))
TIMED(column_sum, (g3_stream * s, g3_tensor sum, g3_tensor x), (s, sum, x),
      bytes(x) + 2 * bytes(sum))
TIMED(layernorm,
      (g3_stream * s, g3_tensor y, g3_tensor mean, g3_tensor rstd, g3_tensor x, g3_tensor w,
       g3_tensor b),
      (s, y, mean, rstd, x, w, b),
      bytes(y) + bytes(mean) + bytes(rstd) + bytes(x) + bytes(w) + bytes(b))
TIMED(layernorm_bwd,
      (g3_stream * s, g3_tensor dx, g3_tensor dres, g3_tensor dw, g3_tensor db, g3_tensor dy,
       g3_tensor x, g3_tensor w, g3_tensor mean, g3_tensor rstd),
      (s, dx, dres, dw, db, dy, x, w, mean, rstd),
      bytes(dx) + bytes(dres) + 2 * bytes(dw) + 2 * bytes(db) + bytes(dy) + bytes(x) + bytes(w) +
          bytes(mean) + bytes(rstd))
TIMED(gelu, (g3_stream * s, g3_tensor y, g3_tensor x), (s, y, x), bytes(y) + bytes(x))
TIMED(gelu_bwd, (g3_stream * s, g3_tensor dx, g3_tensor dy, g3_tensor x), (s, dx, dy, x),
      bytes(dx) + bytes(dy) + bytes(x))
TIMED(attention,
      (g3_stream * s, g3_tensor o, g3_tensor lse, g3_tensor q, g3_tensor k, g3_tensor v,
       const g3_attention_spec *spec),
      (s, o, lse, q, k, v, spec), attention_flops(q))
/* Scores are made again, and four gradients are products: five for forward's two. */
TIMED(attention_bwd,
      (g3_stream * s, g3_tensor dq, g3_tensor dk, g3_tensor dv, g3_tensor dout, g3_tensor o,
       g3_tensor lse, g3_tensor q, g3_tensor k, g3_tensor v, const g3_attention_spec *spec),
      (s, dq, dk, dv, dout, o, lse, q, k, v, spec), 2.5 * attention_flops(q))
TIMED(embedding, (g3_stream * s, g3_tensor y, g3_tensor ids, g3_tensor table, int64_t first),
      (s, y, ids, table, first), 2 * bytes(y) + bytes(ids))
TIMED(embedding_bwd, (g3_stream * s, g3_tensor dtable, g3_tensor ids, g3_tensor dy, int64_t first),
      (s, dtable, ids, dy, first), bytes(dy) + bytes(ids) + 2 * 4 * count(dy))
TIMED(position, (g3_stream * s, g3_tensor x, g3_tensor table, int64_t row, int64_t seq),
      (s, x, table, row, seq), 2 * bytes(x) + bytes(table))
TIMED(position_bwd, (g3_stream * s, g3_tensor dtable, g3_tensor dx, int64_t row, int64_t seq),
      (s, dtable, dx, row, seq), bytes(dx) + 2 * bytes(dtable))
TIMED(bias_dropout_add,
      (g3_stream * s, g3_tensor y, g3_tensor x, g3_tensor bias, g3_tensor residual,
       const g3_dropout_spec *spec),
      (s, y, x, bias, residual, spec), bytes(y) + bytes(x) + bytes(bias) + bytes(residual))
TIMED(dropout_bwd, (g3_stream * s, g3_tensor dx, g3_tensor dy, const g3_dropout_spec *spec),
      (s, dx, dy, spec), bytes(dx) + bytes(dy))
TIMED(xent_peak, (g3_stream * s, g3_tensor peak, g3_tensor logits, int64_t valid),
      (s, peak, logits, valid), bytes(logits) + bytes(peak))
TIMED(xent_sums,
      (g3_stream * s, g3_tensor sums, g3_tensor logits, g3_tensor peak, g3_tensor targets,
       int64_t first, int64_t valid),
      (s, sums, logits, peak, targets, first, valid),
      bytes(logits) + bytes(peak) + bytes(targets) + bytes(sums))
TIMED(xent_loss,
      (g3_stream * s, g3_tensor loss, g3_tensor dlogits, g3_tensor logits, g3_tensor peak,
       g3_tensor sums, g3_tensor targets, int64_t first, int64_t valid, float scale),
      (s, loss, dlogits, logits, peak, sums, targets, first, valid, scale),
      bytes(loss) + bytes(dlogits) + bytes(logits) + bytes(peak) + bytes(sums) + bytes(targets))
TIMED(sum, (g3_stream * s, g3_tensor out, g3_tensor x), (s, out, x), bytes(x))
TIMED(sum_squares, (g3_stream * s, g3_tensor out, g3_tensor x), (s, out, x), bytes(x))
TIMED(add, (g3_stream * s, g3_tensor y, g3_tensor x), (s, y, x), 3 * bytes(y))
TIMED(tree_sum, (g3_stream * s, g3_tensor out, g3_tensor parts), (s, out, parts),
      bytes(out) + bytes(parts))
TIMED(exact_sum, (g3_stream * s, g3_tensor sum, g3_tensor x, bool squares), (s, sum, x, squares),
      bytes(x))
TIMED(exact_value, (g3_stream * s, g3_tensor out, g3_tensor sums), (s, out, sums), bytes(sums))
TIMED(control, (g3_stream * s, g3_tensor control, g3_tensor sums, float max_norm),
      (s, control, sums, max_norm), bytes(control) + bytes(sums))
TIMED(adamw,
      (g3_stream * s, g3_tensor p, g3_tensor low, g3_tensor m, g3_tensor v, g3_tensor g,
       const g3_adamw_spec *spec, g3_tensor control),
      (s, p, low, m, v, g, spec, control),
      2 * bytes(p) + bytes(low) + 2 * bytes(m) + 2 * bytes(v) + bytes(g))
#undef TIMED

static bool same_shape(const g3_timed_product *a, const g3_timed_product *b) {
  return a->m == b->m && a->n == b->n && a->k == b->k && a->input == b->input &&
         a->output == b->output && a->trans_a == b->trans_a && a->trans_b == b->trans_b &&
         a->accumulate == b->accumulate && a->bias == b->bias && a->cut == b->cut &&
         a->block == b->block;
}

/* The entry of this shape; NULL when the table is full of others. */
static g3_timed_product *product_of(g3_timed *t, const g3_timed_product *shape) {
  int i = 0;
  while (i < t->nproducts && !same_shape(&t->product[i], shape))
    i++;
  if (i == G3_TIMED_PRODUCTS) return NULL;
  if (i == t->nproducts) t->product[t->nproducts++] = *shape;
  return &t->product[i];
}

static g3_status timed_gemm(g3_stream *s, g3_tensor c, g3_tensor a, g3_tensor b,
                            const g3_gemm_spec *spec) {
  g3_timed *t = timed_of(s);
  const g3_gemm_shape whole = g3_gemm_shape_of(a, b, spec);
  const g3_timed_product shape = {.m = whole.m,
                                  .n = whole.n,
                                  .k = whole.k,
                                  .cut = spec->cut,
                                  .block = spec->block,
                                  .input = a.dtype,
                                  .output = c.dtype,
                                  .trans_a = spec->trans_a,
                                  .trans_b = spec->trans_b,
                                  .accumulate = spec->accumulate,
                                  .bias = spec->bias.data != NULL};
  g3_timed_product *p = product_of(t, &shape);
  const double before = t->row[ROW_gemm].seconds;
  G3_TRY(g3_timed_drain(t, s));
  const double begin = g3_now();
  G3_TRY(t->inner->gemm(s, c, a, b, spec));
  G3_TRY(stop(t, s, ROW_gemm, begin, 2.0 * (double)shape.m * (double)shape.n * (double)shape.k));
  if (p) {
    p->calls++;
    p->seconds += t->row[ROW_gemm].seconds - before;
  }
  return G3_OK;
}

static g3_status timed_sync(g3_stream *s) {
  g3_timed *t = timed_of(s);
  G3_TRY(g3_timed_drain(t, s));
  return t->inner->sync(s);
}

static mark *mark_of(g3_timed *t, const g3_event *e) {
  for (int i = 0; i < t->nmarks; i++)
    if (t->mark[i].event == e) return &t->mark[i];
  return NULL;
}

static g3_status timed_record(g3_stream *s, g3_event *e) {
  g3_timed *t = timed_of(s);
  mark *m = mark_of(t, e);
  if (!m && t->nmarks < EVENTS) m = &t->mark[t->nmarks++];
  if (m) *m = (mark){.event = e, .stream = s, .works = s->completed + s->npending};
  return t->inner->record(s, e);
}

/* What the backend would wait for, waited for here first, so that it counts to its rows. */
static g3_status timed_wait(g3_stream *s, g3_event *e) {
  g3_timed *t = timed_of(s);
  const mark *m = mark_of(t, e);
  G3_TRY(g3_timed_drain(t, s));
  if (m) G3_TRY(drain_to(t, m->stream, m->works));
  return t->inner->wait(s, e);
}

g3_status g3_timed_begin(g3_device *dev, g3_timed **out) {
  g3_timed *t;
  G3_TRY(G3_NEW_ARRAY(1, &t));
  g3_device_ops *table = &t->front.table;
  t->front.timed = t;
  t->dev = dev;
  t->inner = dev->ops;
  *table = *dev->ops; /* memory, streams and sizes are the backend's own */
#define AS_MEMBER(op) table->op = timed_##op
  OPS(AS_MEMBER);
#undef AS_MEMBER
  table->sync = timed_sync;
  table->record = timed_record;
  table->wait = timed_wait;
  for (int i = 0; i < OWN_ROWS; i++) {
    int row;
    const g3_status st = g3_timed_add_row(t, row_names[i], unit_of(i), &row);
    G3_CHECK(st == G3_OK && row == i, "row %d is '%s'", i, row_names[i]);
  }
  dev->ops = table;
  *out = t;
  return G3_OK;
}

void g3_timed_end(g3_timed *t) {
  if (!t) return;
  t->dev->ops = t->inner;
  free(t);
}

void g3_timed_clear(g3_timed *t) {
  for (int i = 0; i < t->nrows; i++) {
    t->row[i].calls = 0;
    t->row[i].seconds = t->row[i].work = 0;
  }
  t->nproducts = 0;
}

const g3_timed_row *g3_timed_rows(const g3_timed *t, int *n) {
  *n = t->nrows;
  return t->row;
}

const g3_timed_product *g3_timed_products(const g3_timed *t, int *n) {
  *n = t->nproducts;
  return t->product;
}
