/* Sums of bf16: each rank collects one range from all, adds it in f32, and hands it back where the
 * others need it. */
#include "comm/mpi_impl.h"
#include "comm/sum16.h"
#include "util/array.h"

/* One range a rank: rank r's begins at data + r * step and has `len` elements, but no range
 * reaches beyond r * len = total. */
typedef struct {
  g3_bf16 *data;
  int64_t step, len, total;
} ranges;

static int range_len(const ranges *g, int r) {
  const int64_t left = g->total - r * g->len;
  return left <= 0 ? 0 : (int)(left < g->len ? left : g->len);
}

static g3_status receive(g3_comm *c, g3_bf16 *to, int n, int from, int *requests) {
  const g3_mpi *m = g3_mpi_of(c);
  if (n == 0) return G3_OK;
  G3_TRY(g3_mpi_check(
      c,
      MPI_Irecv(to, n, MPI_UINT16_T, from, G3_MPI_TAG_SUM16, m->comm, &m->request[(*requests)++]),
      "receiving a range of bf16"));
  return G3_OK;
}

static g3_status send(g3_comm *c, const g3_bf16 *from, int n, int to, int *requests) {
  const g3_mpi *m = g3_mpi_of(c);
  if (n == 0) return G3_OK;
  G3_TRY(g3_mpi_check(
      c,
      MPI_Isend(from, n, MPI_UINT16_T, to, G3_MPI_TAG_SUM16, m->comm, &m->request[(*requests)++]),
      "sending a range of bf16"));
  return G3_OK;
}

static g3_status wait_all(const g3_comm *c, int requests) {
  return g3_mpi_wait_each(c, requests, g3_mpi_of(c)->request, "moving ranges of bf16");
}

/* Everyone's piece of my range arrives in scratch, in the order of ranks. Ranks begin at different
 * peers, so that they do not all crowd around one. */
static g3_status scatter(g3_comm *c, const ranges *g) {
  g3_bf16 *parts = c->scratch.data;
  const int mine = range_len(g, c->rank);
  int requests = 0;
  for (int k = 1; k < c->size; k++) {
    const int r = (c->rank + k) % c->size;
    G3_TRY(receive(c, parts + (r - (r > c->rank)) * g->len, mine, r, &requests));
  }
  for (int k = 1; k < c->size; k++) {
    const int r = (c->rank + k) % c->size;
    G3_TRY(send(c, g->data + r * g->step, range_len(g, r), r, &requests));
  }
  return wait_all(c, requests);
}

/* My range goes to everyone, and theirs come here. */
static g3_status gather(g3_comm *c, const ranges *g) {
  const int mine = range_len(g, c->rank);
  int requests = 0;
  for (int k = 1; k < c->size; k++) {
    const int r = (c->rank + k) % c->size;
    G3_TRY(receive(c, g->data + r * g->step, range_len(g, r), r, &requests));
  }
  for (int k = 1; k < c->size; k++) {
    const int r = (c->rank + k) % c->size;
    G3_TRY(send(c, g->data + c->rank * g->step, mine, r, &requests));
  }
  return wait_all(c, requests);
}

static g3_status scatter_and_fold(g3_comm *c, const ranges *g, g3_bf16 *dst, g3_redop op) {
  G3_TRY(scatter(c, g));
  g3_sum16_fold(dst, range_len(g, c->rank), c->scratch.data, g->len, g->data + c->rank * g->step,
                c->rank, c->size, op);
  return G3_OK;
}

static void check_scratch(const g3_comm *c, int64_t count) {
  const size_t need = g3_comm_scratch_bytes(count, c->size);
  G3_CHECK(c->scratch.data && g3_tensor_bytes(c->scratch) >= need,
           "summing %lld elements of bf16 over the %d ranks of %s needs %zu bytes of scratch, and "
           "it has %zu: size it by g3_comm_scratch_bytes",
           (long long)count, c->size, c->name, need, g3_tensor_bytes(c->scratch));
}

g3_status g3_mpi_sum16_all_reduce(g3_comm *c, void *data, int64_t n, g3_redop op) {
  check_scratch(c, n);
  for (int64_t at = 0; at < n; at += G3_SUM16_CHUNK) {
    const int64_t chunk = n - at < G3_SUM16_CHUNK ? n - at : G3_SUM16_CHUNK;
    const int64_t len = g3_sum16_range(chunk, c->size);
    /* Each sums everything: the ranges are one and the same. */
    const bool direct = len == chunk;
    const ranges g = {.data = (g3_bf16 *)data + at,
                      .step = direct ? 0 : len,
                      .len = len,
                      .total = direct ? len * c->size : chunk};
    G3_TRY(scatter_and_fold(c, &g, g.data + c->rank * g.step, op));
    if (!direct) G3_TRY(gather(c, &g));
  }
  return G3_OK;
}

g3_status g3_mpi_sum16_reduce_scatter(g3_comm *c, void *out, void *in, int64_t n) {
  check_scratch(c, n * c->size);
  const int64_t most = G3_SUM16_CHUNK > c->size ? G3_SUM16_CHUNK / c->size : 1;
  for (int64_t at = 0; at < n; at += most) {
    const int64_t len = n - at < most ? n - at : most;
    const ranges g = {.data = (g3_bf16 *)in + at, .step = n, .len = len, .total = len * c->size};
    G3_TRY(scatter_and_fold(c, &g, (g3_bf16 *)out + at, G3_SUM));
  }
  return G3_OK;
}
