/* What the files of the MPI implementation share; with them, the only place that knows mpi.h. */
#ifndef G3_COMM_MPI_IMPL_H
#define G3_COMM_MPI_IMPL_H
#include "comm/comm.h"
#include <mpi.h>

enum {
  G3_MPI_JOBS = 64, /* works in flight on a communicator */
  G3_MPI_JOB_REQUESTS = 8
};

/* Messages of three kinds never meet, though all match by order. */
enum { G3_MPI_TAG_EXCHANGE, G3_MPI_TAG_HOST, G3_MPI_TAG_SUM16 };

/* Memory that a job reads or writes. */
typedef struct {
  const char *begin, *end;
  bool write;
} g3_mpi_span;

/* Work that a stream completes later. Taken from a fixed pool, so that a step allocates nothing. */
typedef struct {
  g3_comm *comm; /* borrowed */
  bool busy;
  int nrequests;
  MPI_Request request[G3_MPI_JOB_REQUESTS];
  g3_mpi_span span[G3_MPI_JOB_REQUESTS]; /* one a request */
  int rc; /* what a test found, kept for the wait */
  const char *what; /* for messages */
  /* Moved once the requests are done; nothing when bytes is 0. */
  char *move_to;
  const char *move_from;
  size_t move_bytes;
} g3_mpi_job;

typedef struct {
  MPI_Comm comm;
  bool world;
  int64_t limit; /* elements that one call of MPI is given */
  MPI_Request *request; /* [2 * size], for sums of bf16 */
  g3_mpi_job job[G3_MPI_JOBS];
} g3_mpi;

/* What a communicator of MPI holds beside the common part. */
static inline g3_mpi *g3_mpi_of(const g3_comm *c) {
  return c->impl;
}

/* G3_OK, or G3_EBACKEND with MPI's own text for what went wrong. Local. */
g3_status g3_mpi_check(const g3_comm *c, int rc, const char *what);

/* Waits for n requests, one by one: MPI_Waitall of Open MPI 4.1 spins for ever when one of them has
 * failed, as a message that is too long does. All requests progress meanwhile. Local. */
g3_status g3_mpi_wait_each(const g3_comm *c, int n, MPI_Request *request, const char *what);

/* The operations on streams; the rest of the table is in mpi.c. */
g3_status g3_mpi_all_reduce(g3_comm *c, g3_stream *s, g3_tensor t, g3_redop op);
g3_status g3_mpi_reduce_scatter(g3_comm *c, g3_stream *s, g3_tensor out, g3_tensor in);
g3_status g3_mpi_all_gather(g3_comm *c, g3_stream *s, g3_tensor out, g3_tensor in);
g3_status g3_mpi_broadcast(g3_comm *c, g3_stream *s, g3_tensor t, int root);
g3_status g3_mpi_exchange(g3_comm *c, g3_stream *s, const g3_xfer *x, int n);

/* Sums of bf16, blocking; `op` over ranks, rounded once (sum16.h). All-reduce of n elements in
 * place; reduce-scatter of size ranges of n elements, out may be range `rank` of in. */
g3_status g3_mpi_sum16_all_reduce(g3_comm *c, void *data, int64_t n, g3_redop op);
g3_status g3_mpi_sum16_reduce_scatter(g3_comm *c, void *out, void *in, int64_t n);

/* A free job of c's pool; ends the job when none is left. Local. */
g3_mpi_job *g3_mpi_job_take(g3_comm *c, const char *what);

/* Makes sure that n jobs are free, by completing what is pending on s. Local. */
g3_status g3_mpi_job_reserve(g3_comm *c, g3_stream *s, int n);

/* Hands a job whose requests run to the stream. Local. */
g3_status g3_mpi_job_post(g3_mpi_job *j, g3_stream *s);

/* Completes what is pending on s when work on `span` could not run beside it. Local. */
g3_status g3_mpi_clear_way(g3_stream *s, g3_mpi_span span);

/* The memory of a dense tensor. */
g3_mpi_span g3_mpi_span_of(g3_tensor t, bool write);

#endif
