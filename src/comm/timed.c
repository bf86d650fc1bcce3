#include "comm/timed.h"
#include "util/array.h"
#include "util/clock.h"
#include <stdio.h>
#include <stdlib.h>

typedef enum { ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, BROADCAST, EXCHANGE, KINDS } kind;

static const char *const kind_names[KINDS] = {
    [ALL_REDUCE] = "all_reduce", [REDUCE_SCATTER] = "reduce_scatter",
    [ALL_GATHER] = "all_gather", [BROADCAST] = "broadcast",
    [EXCHANGE] = "exchange",
};

/* The table that takes the place of the communicator's own, with what stands behind it. */
typedef struct {
  g3_comm_ops table;
  const g3_comm_ops *inner;
  g3_timed *timed;
  int row[KINDS];
} front;

static const front *front_of(const g3_comm *c) {
  return (const front *)c->ops;
}

/* A collective that blocks completes what is pending on its stream first: counted to its own row.
 */
static g3_status start(const front *f, g3_stream *s) {
  return s->side ? G3_OK : g3_timed_drain(f->timed, s);
}

static void stop(const front *f, const g3_stream *s, kind k, double begin, double bytes) {
  g3_timed_add(f->timed, f->row[k], 1, g3_now() - begin, bytes);
  g3_timed_claim(f->timed, s, f->row[k]);
}

static double bytes_of(g3_tensor t) {
  return (double)g3_tensor_bytes(t);
}

static g3_status timed_all_reduce(g3_comm *c, g3_stream *s, g3_tensor t, g3_redop op) {
  const front *f = front_of(c);
  G3_TRY(start(f, s));
  const double begin = g3_now();
  G3_TRY(f->inner->all_reduce(c, s, t, op));
  stop(f, s, ALL_REDUCE, begin, bytes_of(t));
  return G3_OK;
}

static g3_status timed_reduce_scatter(g3_comm *c, g3_stream *s, g3_tensor out, g3_tensor in) {
  const front *f = front_of(c);
  G3_TRY(start(f, s));
  const double begin = g3_now();
  G3_TRY(f->inner->reduce_scatter(c, s, out, in));
  stop(f, s, REDUCE_SCATTER, begin, bytes_of(in));
  return G3_OK;
}

static g3_status timed_all_gather(g3_comm *c, g3_stream *s, g3_tensor out, g3_tensor in) {
  const front *f = front_of(c);
  G3_TRY(start(f, s));
  const double begin = g3_now();
  G3_TRY(f->inner->all_gather(c, s, out, in));
  stop(f, s, ALL_GATHER, begin, bytes_of(out));
  return G3_OK;
}

static g3_status timed_broadcast(g3_comm *c, g3_stream *s, g3_tensor t, int root) {
  const front *f = front_of(c);
  G3_TRY(start(f, s));
  const double begin = g3_now();
  G3_TRY(f->inner->broadcast(c, s, t, root));
  stop(f, s, BROADCAST, begin, bytes_of(t));
  return G3_OK;
}

static g3_status timed_exchange(g3_comm *c, g3_stream *s, const g3_xfer *x, int n) {
  const front *f = front_of(c);
  const double begin = g3_now();
  double bytes = 0;
  for (int i = 0; i < n; i++)
    bytes += bytes_of(x[i].t);
  G3_TRY(f->inner->exchange(c, s, x, n));
  stop(f, s, EXCHANGE, begin, bytes);
  return G3_OK;
}

static g3_status add_rows(front *f, const char *name) {
  char text[40];
  for (int k = 0; k < KINDS; k++) {
    snprintf(text, sizeof text, "%s %s", kind_names[k], name);
    G3_TRY(g3_timed_add_row(f->timed, text, G3_TIMED_MOVED, &f->row[k]));
  }
  return G3_OK;
}

g3_status g3_comm_timed_begin(g3_comm *c, g3_timed *timed) {
  if (c->size == 1) return G3_OK;
  front *f;
  G3_TRY(G3_NEW_ARRAY(1, &f));
  *f = (front){.table = *c->ops, .inner = c->ops, .timed = timed};
  const g3_status st = add_rows(f, c->name);
  if (st != G3_OK) {
    free(f);
    return st;
  }
  f->table.all_reduce = timed_all_reduce;
  f->table.reduce_scatter = timed_reduce_scatter;
  f->table.all_gather = timed_all_gather;
  f->table.broadcast = timed_broadcast;
  f->table.exchange = timed_exchange;
  c->ops = &f->table;
  return G3_OK;
}

void g3_comm_timed_end(g3_comm *c) {
  if (!c || c->ops->all_reduce != timed_all_reduce) return;
  const front *f = front_of(c);
  c->ops = f->inner;
  free((void *)(uintptr_t)f);
}
