/* Collectives and exchanges on streams. On a side stream they are handed over as requests; on
 * another they block, which is faster. Tensors beyond the int counts of MPI are cut into calls. */
#include "comm/mpi_impl.h"
#include "comm/self.h"
#include "util/array.h"
#include <limits.h>
#include <string.h>

static const MPI_Datatype types[G3_DTYPE_COUNT] = {
    [G3_F32] = MPI_FLOAT,   [G3_BF16] = MPI_UINT16_T, [G3_F64] = MPI_DOUBLE,
    [G3_I32] = MPI_INT32_T, [G3_U8] = MPI_UINT8_T,
};

static MPI_Op op_of(g3_redop op) {
  return op == G3_SUM ? MPI_SUM : MPI_MAX;
}

static void check_dense(const g3_comm *c, g3_tensor t, const char *what) {
  G3_CHECK(g3_tensor_dense(t) && (t.data || g3_tensor_count(t) == 0),
           "%s over %s: the tensor is absent or not dense", what, c->name);
}

/* `whole` has one range of part's count for each rank. Returns where mine begins. */
static char *check_ranges(const g3_comm *c, g3_tensor whole, g3_tensor part, const char *what) {
  check_dense(c, whole, what);
  check_dense(c, part, what);
  const int64_t n = g3_tensor_count(part);
  G3_CHECK(whole.dtype == part.dtype && g3_tensor_count(whole) == n * c->size,
           "%s over %s: %lld elements of %s are not %d ranges of %lld of %s", what, c->name,
           (long long)g3_tensor_count(whole), g3_dtype_name(whole.dtype), c->size, (long long)n,
           g3_dtype_name(part.dtype));
  char *mine = g3_tensor_at(whole, n * c->rank);
  const g3_mpi_span a = g3_mpi_span_of(whole, true), b = g3_mpi_span_of(part, true);
  G3_CHECK(part.data == mine || b.end <= a.begin || a.end <= b.begin,
           "%s over %s: the part overlaps the whole elsewhere than at its own range", what,
           c->name);
  return mine;
}

static int next_count(const g3_mpi *m, int64_t left) {
  return (int)(left < m->limit ? left : m->limit);
}

/* A job with room for its first request, on memory that no pending work of s touches. */
static g3_status begin(g3_comm *c, g3_stream *s, const char *what, g3_mpi_span span,
                       g3_mpi_job **out) {
  G3_TRY(g3_mpi_clear_way(s, span));
  G3_TRY(g3_mpi_job_reserve(c, s, 1));
  g3_mpi_job *j = g3_mpi_job_take(c, what);
  j->span[j->nrequests++] = span;
  *out = j;
  return G3_OK;
}

g3_status g3_mpi_all_reduce(g3_comm *c, g3_stream *s, g3_tensor t, g3_redop op) {
  static const char what[] = "all-reduce";
  const g3_mpi *m = g3_mpi_of(c);
  check_dense(c, t, what);
  if (c->size == 1) return g3_comm_self_ops.all_reduce(c, s, t, op);
  const int64_t n = g3_tensor_count(t);
  if (s->side && t.dtype != G3_BF16 && n <= m->limit) {
    g3_mpi_job *j;
    G3_TRY(begin(c, s, what, g3_mpi_span_of(t, true), &j));
    G3_TRY(g3_mpi_check(c,
                        MPI_Iallreduce(MPI_IN_PLACE, t.data, (int)n, types[t.dtype], op_of(op),
                                       m->comm, &j->request[0]),
                        what));
    return g3_mpi_job_post(j, s);
  }
  G3_TRY(g3_stream_drain(s));
  if (t.dtype == G3_BF16) return g3_mpi_sum16_all_reduce(c, t.data, n, op);
  for (int64_t at = 0; at < n; at += m->limit)
    G3_TRY(g3_mpi_check(c,
                        MPI_Allreduce(MPI_IN_PLACE, g3_tensor_at(t, at), next_count(m, n - at),
                                      types[t.dtype], op_of(op), m->comm),
                        what));
  return G3_OK;
}

/* The ranges one after another: works for any size, in pieces. */
static g3_status reduce_each_range(g3_comm *c, g3_tensor out, g3_tensor in) {
  const g3_mpi *m = g3_mpi_of(c);
  const int64_t n = g3_tensor_count(out);
  for (int r = 0; r < c->size; r++)
    for (int64_t at = 0; at < n; at += m->limit) {
      const int len = next_count(m, n - at);
      char *from = g3_tensor_at(in, r * n + at), *to = g3_tensor_at(out, at);
      const bool in_place = r == c->rank && from == to;
      G3_TRY(g3_mpi_check(c,
                          MPI_Reduce(in_place ? MPI_IN_PLACE : from, r == c->rank ? to : NULL, len,
                                     types[in.dtype], MPI_SUM, r, m->comm),
                          "reduce-scatter"));
    }
  return G3_OK;
}

g3_status g3_mpi_reduce_scatter(g3_comm *c, g3_stream *s, g3_tensor out, g3_tensor in) {
  static const char what[] = "reduce-scatter";
  const g3_mpi *m = g3_mpi_of(c);
  const bool in_place = check_ranges(c, in, out, what) == out.data;
  if (c->size == 1) return g3_comm_self_ops.reduce_scatter(c, s, out, in);
  const int64_t n = g3_tensor_count(out);
  /* In place, MPI leaves the sum at the beginning of the buffer instead of in range `rank`. */
  const void *from = in_place ? MPI_IN_PLACE : in.data;
  void *to = in_place ? in.data : out.data;
  const bool fits = n * c->size <= m->limit;
  if (s->side && in.dtype != G3_BF16 && fits) {
    g3_mpi_job *j;
    G3_TRY(g3_mpi_clear_way(s, g3_mpi_span_of(out, true)));
    G3_TRY(begin(c, s, what, g3_mpi_span_of(in, true), &j));
    G3_TRY(g3_mpi_check(c,
                        MPI_Ireduce_scatter_block(from, to, (int)n, types[in.dtype], MPI_SUM,
                                                  m->comm, &j->request[0]),
                        what));
    if (in_place && c->rank > 0) {
      j->move_to = out.data;
      j->move_from = in.data;
      j->move_bytes = g3_tensor_bytes(out);
    }
    return g3_mpi_job_post(j, s);
  }
  G3_TRY(g3_stream_drain(s));
  if (in.dtype == G3_BF16) return g3_mpi_sum16_reduce_scatter(c, out.data, in.data, n);
  if (!fits) return reduce_each_range(c, out, in);
  G3_TRY(g3_mpi_check(
      c, MPI_Reduce_scatter_block(from, to, (int)n, types[in.dtype], MPI_SUM, m->comm), what));
  if (in_place && c->rank > 0) memmove(out.data, in.data, g3_tensor_bytes(out));
  return G3_OK;
}

/* As reduce_each_range, the other way. */
static g3_status broadcast_each_range(g3_comm *c, g3_tensor out, int64_t n) {
  const g3_mpi *m = g3_mpi_of(c);
  for (int r = 0; r < c->size; r++)
    for (int64_t at = 0; at < n; at += m->limit)
      G3_TRY(g3_mpi_check(c,
                          MPI_Bcast(g3_tensor_at(out, r * n + at), next_count(m, n - at),
                                    types[out.dtype], r, m->comm),
                          "all-gather"));
  return G3_OK;
}

g3_status g3_mpi_all_gather(g3_comm *c, g3_stream *s, g3_tensor out, g3_tensor in) {
  static const char what[] = "all-gather";
  const g3_mpi *m = g3_mpi_of(c);
  char *mine = check_ranges(c, out, in, what);
  if (c->size == 1) return g3_comm_self_ops.all_gather(c, s, out, in);
  const int64_t n = g3_tensor_count(in);
  const bool in_place = mine == in.data, fits = n * c->size <= m->limit;
  const MPI_Datatype type = types[in.dtype];
  const void *from = in_place ? MPI_IN_PLACE : in.data;
  if (s->side && fits) {
    g3_mpi_job *j;
    G3_TRY(g3_mpi_clear_way(s, g3_mpi_span_of(in, false)));
    G3_TRY(begin(c, s, what, g3_mpi_span_of(out, true), &j));
    G3_TRY(g3_mpi_check(
        c, MPI_Iallgather(from, (int)n, type, out.data, (int)n, type, m->comm, &j->request[0]),
        what));
    return g3_mpi_job_post(j, s);
  }
  G3_TRY(g3_stream_drain(s));
  if (!fits) {
    if (!in_place) memcpy(mine, in.data, g3_tensor_bytes(in));
    return broadcast_each_range(c, out, n);
  }
  G3_TRY(g3_mpi_check(c, MPI_Allgather(from, (int)n, type, out.data, (int)n, type, m->comm), what));
  return G3_OK;
}

g3_status g3_mpi_broadcast(g3_comm *c, g3_stream *s, g3_tensor t, int root) {
  static const char what[] = "broadcast";
  const g3_mpi *m = g3_mpi_of(c);
  check_dense(c, t, what);
  G3_CHECK(root >= 0 && root < c->size, "broadcast from rank %d of %d in %s", root, c->size,
           c->name);
  if (c->size == 1) return G3_OK;
  const int64_t n = g3_tensor_count(t);
  if (s->side && n <= m->limit) {
    g3_mpi_job *j;
    G3_TRY(begin(c, s, what, g3_mpi_span_of(t, c->rank != root), &j));
    G3_TRY(g3_mpi_check(
        c, MPI_Ibcast(t.data, (int)n, types[t.dtype], root, m->comm, &j->request[0]), what));
    return g3_mpi_job_post(j, s);
  }
  G3_TRY(g3_stream_drain(s));
  for (int64_t at = 0; at < n; at += m->limit)
    G3_TRY(g3_mpi_check(
        c, MPI_Bcast(g3_tensor_at(t, at), next_count(m, n - at), types[t.dtype], root, m->comm),
        what));
  return G3_OK;
}

/* The jobs of one exchange, filled one after another. */
typedef struct {
  g3_mpi_job *job[G3_MPI_JOBS];
  int njobs;
} batch;

static g3_mpi_job *job_with_room(g3_comm *c, batch *b) {
  g3_mpi_job *last = b->njobs ? b->job[b->njobs - 1] : NULL;
  if (last && last->nrequests < G3_MPI_JOB_REQUESTS) return last;
  last = g3_mpi_job_take(c, "exchange");
  b->job[b->njobs++] = last;
  return last;
}

/* Starts one transfer; nothing waits here. An empty tensor travels as an empty message. */
static g3_status post_xfer(g3_comm *c, const g3_xfer *x, batch *b) {
  const g3_mpi *m = g3_mpi_of(c);
  const MPI_Datatype type = types[x->t.dtype];
  const int64_t n = g3_tensor_count(x->t);
  int64_t at = 0;
  do {
    g3_mpi_job *j = job_with_room(c, b);
    const int len = next_count(m, n - at);
    char *data = g3_tensor_at(x->t, at);
    MPI_Request *request = &j->request[j->nrequests];
    j->span[j->nrequests] = g3_mpi_span_of(g3_tensor_1d(data, x->t.dtype, len), x->dir == G3_RECV);
    const int rc = x->dir == G3_RECV
                       ? MPI_Irecv(data, len, type, x->peer, G3_MPI_TAG_EXCHANGE, m->comm, request)
                       : MPI_Isend(data, len, type, x->peer, G3_MPI_TAG_EXCHANGE, m->comm, request);
    G3_TRY(g3_mpi_check(c, rc, "exchange"));
    j->nrequests++;
    at += len;
  } while (at < n);
  return G3_OK;
}

/* Pieces that the transfers are cut into, and room on s and in the pool for them. */
static g3_status prepare_exchange(g3_comm *c, g3_stream *s, const g3_xfer *x, int n) {
  int64_t pieces = 0;
  for (int i = 0; i < n; i++) {
    check_dense(c, x[i].t, "exchange");
    G3_CHECK(x[i].peer >= 0 && x[i].peer < c->size, "exchange with rank %d of %d in %s", x[i].peer,
             c->size, c->name);
    const int64_t p = g3_ceil_div(g3_tensor_count(x[i].t), g3_mpi_of(c)->limit);
    pieces += p ? p : 1;
    G3_TRY(g3_mpi_clear_way(s, g3_mpi_span_of(x[i].t, x[i].dir == G3_RECV)));
  }
  const int64_t jobs = g3_ceil_div(pieces, G3_MPI_JOB_REQUESTS);
  G3_CHECK(jobs <= G3_MPI_JOBS, "an exchange over %s of %lld pieces; %d at most", c->name,
           (long long)pieces, G3_MPI_JOBS * G3_MPI_JOB_REQUESTS);
  return g3_mpi_job_reserve(c, s, (int)jobs);
}

g3_status g3_mpi_exchange(g3_comm *c, g3_stream *s, const g3_xfer *x, int n) {
  if (c->size == 1) return g3_comm_self_ops.exchange(c, s, x, n);
  G3_TRY(prepare_exchange(c, s, x, n));
  batch b = {.njobs = 0};
  for (int i = 0; i < n; i++)
    if (x[i].dir == G3_RECV) G3_TRY(post_xfer(c, &x[i], &b));
  for (int i = 0; i < n; i++)
    if (x[i].dir == G3_SEND) G3_TRY(post_xfer(c, &x[i], &b));
  for (int i = 0; i < b.njobs; i++)
    G3_TRY(g3_mpi_job_post(b.job[i], s));
  return G3_OK;
}
