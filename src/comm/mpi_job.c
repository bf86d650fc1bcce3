/* Work in flight: MPI requests on their way through a stream's queue. */
#include "comm/mpi_impl.h"
#include <string.h>

g3_mpi_span g3_mpi_span_of(g3_tensor t, bool write) {
  const char *begin = t.data;
  return (g3_mpi_span){.begin = begin, .end = begin + g3_tensor_bytes(t), .write = write};
}

static void job_finish(g3_mpi_job *j) {
  if (j->move_bytes) memmove(j->move_to, j->move_from, j->move_bytes);
  j->move_bytes = 0;
  j->nrequests = 0;
  j->busy = false;
}

g3_status g3_mpi_wait_each(const g3_comm *c, int n, MPI_Request *request, const char *what) {
  for (int i = 0; i < n; i++)
    G3_TRY(g3_mpi_check(c, MPI_Wait(&request[i], MPI_STATUS_IGNORE), what));
  return G3_OK;
}

static g3_status job_wait(void *ctx) {
  g3_mpi_job *j = ctx;
  G3_TRY(g3_mpi_check(j->comm, j->rc, j->what));
  G3_TRY(g3_mpi_wait_each(j->comm, j->nrequests, j->request, j->what));
  job_finish(j);
  return G3_OK;
}

/* A request that is done becomes the null request, on which both test and wait return at once. */
static bool job_test(void *ctx) {
  g3_mpi_job *j = ctx;
  for (int i = 0; i < j->nrequests && j->rc == MPI_SUCCESS; i++) {
    int done = 0;
    j->rc = MPI_Test(&j->request[i], &done, MPI_STATUS_IGNORE);
    if (j->rc == MPI_SUCCESS && !done) return false;
  }
  return true;
}

static int jobs_free(const g3_mpi *m) {
  int n = 0;
  for (int i = 0; i < G3_MPI_JOBS; i++)
    n += !m->job[i].busy;
  return n;
}

g3_status g3_mpi_job_reserve(g3_comm *c, g3_stream *s, int n) {
  if (jobs_free(g3_mpi_of(c)) < n) G3_TRY(g3_stream_drain(s));
  return G3_OK;
}

g3_mpi_job *g3_mpi_job_take(g3_comm *c, const char *what) {
  g3_mpi *m = g3_mpi_of(c);
  int i = 0;
  while (i < G3_MPI_JOBS && m->job[i].busy)
    i++;
  G3_CHECK(i < G3_MPI_JOBS, "more than %d works in flight on %s: wait for some of them",
           (int)G3_MPI_JOBS, c->name);
  g3_mpi_job *j = &m->job[i];
  j->comm = c;
  j->busy = true;
  j->nrequests = 0;
  j->rc = MPI_SUCCESS;
  j->what = what;
  j->move_bytes = 0;
  return j;
}

g3_status g3_mpi_job_post(g3_mpi_job *j, g3_stream *s) {
  G3_TRY(g3_stream_defer(s, (g3_deferred){.wait = job_wait, .test = job_test, .ctx = j}));
  return G3_OK;
}

static bool collide(const g3_mpi_span *a, const g3_mpi_span *b) {
  return (a->write || b->write) && a->begin < b->end && b->begin < a->end;
}

/* Pending work of others may touch anything. */
static bool in_the_way(const g3_deferred *d, const g3_mpi_span *span) {
  if (d->wait != job_wait) return true;
  const g3_mpi_job *j = d->ctx;
  for (int i = 0; i < j->nrequests; i++)
    if (collide(&j->span[i], span)) return true;
  return false;
}

g3_status g3_mpi_clear_way(g3_stream *s, g3_mpi_span span) {
  for (int i = 0; i < s->npending; i++)
    if (in_the_way(&s->pending[i], &span)) return g3_stream_drain(s);
  return G3_OK;
}
