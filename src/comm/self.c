#include "comm/self.h"
#include "util/array.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static g3_status make(const char *name, g3_tensor scratch, g3_comm **out) {
  g3_comm *c = NULL;
  G3_TRY(g3_alloc_array(1, sizeof *c, (void **)&c));
  c->ops = &g3_comm_self_ops;
  c->size = 1;
  c->scratch = scratch;
  snprintf(c->name, sizeof c->name, "%s", name);
  *out = c;
  return G3_OK;
}

g3_status g3_comm_self(g3_comm **out) {
  G3_TRY(make("world", g3_tensor_none(), out));
  return G3_OK;
}

static g3_status self_split(g3_comm *parent, int color, int key, const char *name, g3_comm **out) {
  (void)key;
  if (color < 0) {
    *out = NULL;
    return G3_OK;
  }
  return make(name, parent->scratch, out);
}

static void self_destroy(g3_comm *c) {
  free(c);
}

static g3_status self_all_reduce(g3_comm *c, g3_stream *s, g3_tensor t, g3_redop op) {
  (void)c, (void)s, (void)t, (void)op;
  return G3_OK;
}

/* The sum over one rank, and the concatenation of one. */
static g3_status self_copy(g3_comm *c, g3_stream *s, g3_tensor out, g3_tensor in) {
  G3_CHECK(out.dtype == in.dtype && g3_tensor_count(out) == g3_tensor_count(in),
           "over the one rank of %s, %lld elements of %s cannot become %lld of %s", c->name,
           (long long)g3_tensor_count(in), g3_dtype_name(in.dtype), (long long)g3_tensor_count(out),
           g3_dtype_name(out.dtype));
  if (out.data == in.data) return G3_OK;
  return s->dev->ops->copy(s, g3_tensor_as_1d(out), g3_tensor_as_1d(in));
}

static g3_status self_broadcast(g3_comm *c, g3_stream *s, g3_tensor t, int root) {
  (void)s, (void)t;
  G3_CHECK(root == 0, "root %d of %s, which has one rank", root, c->name);
  return G3_OK;
}

/* The next transfer of one direction at or after `from`; n when there is none. */
static int next(const g3_xfer *x, int n, int from, g3_dir dir) {
  while (from < n && x[from].dir != dir)
    from++;
  return from;
}

static g3_status self_exchange(g3_comm *c, g3_stream *s, const g3_xfer *x, int n) {
  for (int i = 0; i < n; i++)
    G3_CHECK(x[i].peer == 0, "transfer with rank %d of %s, which has one rank", x[i].peer, c->name);
  int from = next(x, n, 0, G3_SEND), to = next(x, n, 0, G3_RECV);
  while (from < n && to < n) {
    G3_TRY(self_copy(c, s, x[to].t, x[from].t));
    from = next(x, n, from + 1, G3_SEND);
    to = next(x, n, to + 1, G3_RECV);
  }
  G3_CHECK(from == n && to == n, "a transfer of %s with itself has no other end", c->name);
  return G3_OK;
}

static g3_status self_host_all_reduce(g3_comm *c, int64_t *values, int n, g3_redop op) {
  (void)c, (void)values, (void)n, (void)op;
  return G3_OK;
}

static g3_status self_host_broadcast(g3_comm *c, void *bytes, size_t n, int root) {
  (void)bytes, (void)n;
  G3_CHECK(root == 0, "root %d of %s, which has one rank", root, c->name);
  return G3_OK;
}

static g3_status self_host_gather(g3_comm *c, const void *bytes, size_t n, int root, void **out,
                                  size_t **sizes) {
  G3_CHECK(root == 0, "root %d of %s, which has one rank", root, c->name);
  size_t *size = NULL;
  G3_TRY(g3_alloc_array(1, sizeof *size, (void **)&size));
  char *all = NULL;
  const g3_status st = g3_alloc_array((int64_t)n, 1, (void **)&all);
  if (st != G3_OK) {
    free(size);
    return g3_trace_up(st, __FILE__, __LINE__);
  }
  if (n) memcpy(all, bytes, n);
  *size = n;
  *out = all;
  *sizes = size;
  return G3_OK;
}

static g3_status self_barrier(g3_comm *c) {
  (void)c;
  return G3_OK;
}

static g3_status self_node(g3_comm *c, int *local_rank, int *local_size) {
  (void)c;
  *local_rank = 0;
  *local_size = 1;
  return G3_OK;
}

static void self_abort(g3_comm *c, int exit_code) {
  (void)c;
  fflush(NULL);
  _Exit(exit_code);
}

const g3_comm_ops g3_comm_self_ops = {
    .name = "self",
    .split = self_split,
    .destroy = self_destroy,
    .all_reduce = self_all_reduce,
    .reduce_scatter = self_copy,
    .all_gather = self_copy,
    .broadcast = self_broadcast,
    .exchange = self_exchange,
    .host_all_reduce = self_host_all_reduce,
    .host_broadcast = self_host_broadcast,
    .host_gather = self_host_gather,
    .barrier = self_barrier,
    .node = self_node,
    .abort = self_abort,
};
