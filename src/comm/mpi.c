/* Ranks that are MPI processes: start and end, splitting, and what the host does. */
#include "comm/launch.h"
#include "comm/mpi_impl.h"
#include "comm/mpi_limit.h"
#include "util/array.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const g3_comm_ops mpi_ops;

g3_status g3_mpi_check(const g3_comm *c, int rc, const char *what) {
  if (rc == MPI_SUCCESS) return G3_OK;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  if (MPI_Error_string(rc, text, &length) != MPI_SUCCESS)
    snprintf(text, sizeof text, "error %d of MPI", rc);
  return G3_FAIL(G3_EBACKEND, "%s over %s (rank %d of %d): %s", what, c->name, c->rank, c->size,
                 text);
}

void g3_comm_mpi_limit(g3_comm *c, int64_t elements) {
  G3_CHECK(c->ops == &mpi_ops && elements >= 1 && elements <= INT_MAX,
           "%lld elements a call is no limit for %s", (long long)elements, c->name);
  g3_mpi_of(c)->limit = elements;
}

/* Frees what `make` made; the communicator of MPI stays. */
static void unmake(g3_comm *c) {
  if (c && c->impl) free(g3_mpi_of(c)->request);
  if (c) free(c->impl);
  free(c);
}

static g3_status fill(g3_comm *c, MPI_Comm comm, const char *name) {
  c->ops = &mpi_ops;
  snprintf(c->name, sizeof c->name, "%s", name);
  G3_TRY(g3_mpi_check(c, MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "error handling"));
  G3_TRY(g3_mpi_check(c, MPI_Comm_rank(comm, &c->rank), "asking for the rank"));
  G3_TRY(g3_mpi_check(c, MPI_Comm_size(comm, &c->size), "asking for the size"));
  g3_mpi *m = NULL;
  G3_TRY(G3_NEW_ARRAY(1, &m));
  c->impl = m;
  m->comm = comm;
  m->limit = INT_MAX;
  G3_TRY(G3_NEW_ARRAY(2 * (int64_t)c->size, &m->request));
  return G3_OK;
}

static g3_status make(MPI_Comm comm, const char *name, g3_comm **out) {
  g3_status st;
  g3_comm *c = NULL;
  G3_TRY_TO(done, st, G3_NEW_ARRAY(1, &c));
  G3_TRY_TO(done, st, fill(c, comm, name));
  *out = c;
  c = NULL;
done:
  unmake(c);
  return st;
}

/* Before MPI starts: outside a launcher that it understands, it would start a world of one, or end
 * the process. */
static g3_status check_launcher(void) {
  int started = 0, ended = 0;
  if (MPI_Initialized(&started) != MPI_SUCCESS || MPI_Finalized(&ended) != MPI_SUCCESS)
    return G3_FAIL(G3_EBACKEND, "MPI does not say whether it runs");
  if (started || ended)
    return G3_FAIL(G3_EINVAL, "MPI was started before in this process; it starts once");
  if (g3_launch_lost())
    return G3_FAIL(G3_EINVAL,
                   "Slurm started %ld processes, but each would be alone in its MPI world of 1: "
                   "start them with mpirun, or with srun --mpi=pmix",
                   g3_launch_size());
  return G3_OK;
}

static g3_status start(int *provided) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  const int rc = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, provided);
  if (rc == MPI_SUCCESS) return G3_OK;
  if (MPI_Error_string(rc, text, &length) != MPI_SUCCESS) text[0] = '\0';
  return G3_FAIL(G3_EBACKEND, "MPI does not start: %s", text);
}

static g3_status check_world(const g3_comm *c, int provided) {
  if (provided < MPI_THREAD_FUNNELED)
    return G3_FAIL(G3_EUNSUPPORTED,
                   "this MPI allows no threads beside it (level %d, wanted "
                   "MPI_THREAD_FUNNELED = %d): use one that was built with them",
                   provided, MPI_THREAD_FUNNELED);
  const long wanted = g3_launch_size();
  if (wanted > 1 && c->size == 1)
    return G3_FAIL(G3_EINVAL,
                   "the launcher started %ld processes, but this MPI world has 1: use the mpirun "
                   "that belongs to the MPI library of this program, or srun --mpi=pmix",
                   wanted);
  return G3_OK;
}

g3_status g3_comm_mpi_world(g3_comm **out) {
  G3_TRY(check_launcher());
  int provided = 0;
  G3_TRY(start(&provided));
  g3_status st;
  g3_comm *c = NULL;
  G3_TRY_TO(done, st, make(MPI_COMM_WORLD, "world", &c));
  G3_TRY_TO(done, st, check_world(c, provided));
  g3_mpi_of(c)->world = true;
  *out = c;
  c = NULL;
done:
  unmake(c);
  if (st != G3_OK) MPI_Finalize(); /* the first failure is what counts */
  return st;
}

static g3_status mpi_split(g3_comm *parent, int color, int key, const char *name, g3_comm **out) {
  MPI_Comm comm = MPI_COMM_NULL;
  const int mpi_color = color < 0 ? MPI_UNDEFINED : color;
  G3_TRY(g3_mpi_check(parent, MPI_Comm_split(g3_mpi_of(parent)->comm, mpi_color, key, &comm),
                      "splitting"));
  if (comm == MPI_COMM_NULL) {
    *out = NULL;
    return G3_OK;
  }
  g3_comm *c = NULL;
  const g3_status st = make(comm, name, &c);
  if (st != G3_OK) {
    MPI_Comm_free(&comm); /* the first failure is what counts */
    return g3_trace_up(st, __FILE__, __LINE__);
  }
  c->scratch = parent->scratch;
  g3_mpi_of(c)->limit = g3_mpi_of(parent)->limit;
  *out = c;
  return G3_OK;
}

static void mpi_destroy(g3_comm *c) {
  g3_mpi *m = g3_mpi_of(c);
  const int rc = m->world ? MPI_Finalize() : MPI_Comm_free(&m->comm);
  G3_CHECK(rc == MPI_SUCCESS, "closing %s: error %d of MPI", c->name, rc);
  unmake(c);
}

static g3_status mpi_host_all_reduce(g3_comm *c, int64_t *values, int n, g3_redop op) {
  G3_TRY(g3_mpi_check(c,
                      MPI_Allreduce(MPI_IN_PLACE, values, n, MPI_INT64_T,
                                    op == G3_SUM ? MPI_SUM : MPI_MAX, g3_mpi_of(c)->comm),
                      "all-reduce on the host"));
  return G3_OK;
}

/* How many of `left` bytes go into the next call. */
static int next_bytes(const g3_mpi *m, size_t left) {
  return left < (size_t)m->limit ? (int)left : (int)m->limit;
}

static g3_status mpi_host_broadcast(g3_comm *c, void *bytes, size_t n, int root) {
  const g3_mpi *m = g3_mpi_of(c);
  for (size_t at = 0; at < n;) {
    const int len = next_bytes(m, n - at);
    G3_TRY(g3_mpi_check(c, MPI_Bcast((char *)bytes + at, len, MPI_BYTE, root, m->comm),
                        "broadcast on the host"));
    at += (size_t)len;
  }
  return G3_OK;
}

static g3_status host_send(g3_comm *c, const char *bytes, size_t n, int to) {
  const g3_mpi *m = g3_mpi_of(c);
  for (size_t at = 0; at < n;) {
    const int len = next_bytes(m, n - at);
    G3_TRY(g3_mpi_check(c, MPI_Send(bytes + at, len, MPI_BYTE, to, G3_MPI_TAG_HOST, m->comm),
                        "sending to the gathering rank"));
    at += (size_t)len;
  }
  return G3_OK;
}

static g3_status host_receive(g3_comm *c, char *bytes, size_t n, int from) {
  const g3_mpi *m = g3_mpi_of(c);
  for (size_t at = 0; at < n;) {
    const int len = next_bytes(m, n - at);
    G3_TRY(g3_mpi_check(
        c, MPI_Recv(bytes + at, len, MPI_BYTE, from, G3_MPI_TAG_HOST, m->comm, MPI_STATUS_IGNORE),
        "receiving what is gathered"));
    at += (size_t)len;
  }
  return G3_OK;
}

/* Room on root for `size` sizes, and, once they are known, for all bytes. */
static g3_status gather_room(const g3_comm *c, const uint64_t *sizes, char **out) {
  uint64_t all = 0;
  for (int r = 0; r < c->size; r++)
    if (__builtin_add_overflow(all, sizes[r], &all) || all > INT64_MAX)
      return G3_FAIL(G3_ENOMEM, "what the ranks of %s gather does not fit into an address space",
                     c->name);
  char *p = NULL;
  G3_TRY(G3_NEW_ARRAY((int64_t)all, &p));
  *out = p;
  return G3_OK;
}

static g3_status gather_sizes(g3_comm *c, size_t n, int root, uint64_t *sizes) {
  const uint64_t mine = n;
  G3_TRY(g3_mpi_check(
      c, MPI_Gather(&mine, 1, MPI_UINT64_T, sizes, 1, MPI_UINT64_T, root, g3_mpi_of(c)->comm),
      "gathering sizes"));
  return G3_OK;
}

static g3_status gather_bytes(g3_comm *c, const void *bytes, size_t n, int root,
                              const uint64_t *sizes, char *all) {
  if (c->rank != root) return host_send(c, bytes, n, root);
  for (int r = 0; r < c->size; r++) {
    if (r != root)
      G3_TRY(host_receive(c, all, (size_t)sizes[r], r));
    else if (n)
      memcpy(all, bytes, n);
    all += sizes[r];
  }
  return G3_OK;
}

_Static_assert(sizeof(size_t) == sizeof(uint64_t), "sizes travel as 64 bits");

/* Root says by a broadcast whether it found memory: nobody sends to a rank that gave up. */
static g3_status mpi_host_gather(g3_comm *c, const void *bytes, size_t n, int root, void **out,
                                 size_t **sizes) {
  g3_status st = G3_OK;
  uint64_t *size = NULL;
  char *all = NULL;
  if (c->rank == root) st = G3_NEW_ARRAY((int64_t)c->size, &size);
  G3_TRY_TO(done, st, g3_comm_agree(c, st));
  G3_TRY_TO(done, st, gather_sizes(c, n, root, size));
  if (c->rank == root) st = gather_room(c, size, &all);
  G3_TRY_TO(done, st, g3_comm_agree(c, st));
  G3_TRY_TO(done, st, gather_bytes(c, bytes, n, root, size, all));
  *out = all;
  *sizes = (size_t *)size;
  return G3_OK;
done:
  free(size);
  free(all);
  return st;
}

static g3_status mpi_barrier(g3_comm *c) {
  G3_TRY(g3_mpi_check(c, MPI_Barrier(g3_mpi_of(c)->comm), "barrier"));
  return G3_OK;
}

static g3_status mpi_node(g3_comm *c, int *local_rank, int *local_size) {
  MPI_Comm node = MPI_COMM_NULL;
  int rank = 0, size = 0;
  G3_TRY(g3_mpi_check(
      c,
      MPI_Comm_split_type(g3_mpi_of(c)->comm, MPI_COMM_TYPE_SHARED, c->rank, MPI_INFO_NULL, &node),
      "finding the ranks of this machine"));
  g3_status st = g3_mpi_check(c, MPI_Comm_rank(node, &rank), "asking for the local rank");
  if (st == G3_OK) st = g3_mpi_check(c, MPI_Comm_size(node, &size), "asking for the local size");
  const int rc = MPI_Comm_free(&node);
  if (st == G3_OK) st = g3_mpi_check(c, rc, "freeing the ranks of this machine");
  G3_TRY(st);
  *local_rank = rank;
  *local_size = size;
  return G3_OK;
}

static void mpi_abort(g3_comm *c, int exit_code) {
  (void)c;
  fflush(NULL);
  MPI_Abort(MPI_COMM_WORLD, exit_code);
}

static const g3_comm_ops mpi_ops = {
    .name = "mpi",
    .split = mpi_split,
    .destroy = mpi_destroy,
    .all_reduce = g3_mpi_all_reduce,
    .reduce_scatter = g3_mpi_reduce_scatter,
    .all_gather = g3_mpi_all_gather,
    .broadcast = g3_mpi_broadcast,
    .exchange = g3_mpi_exchange,
    .host_all_reduce = mpi_host_all_reduce,
    .host_broadcast = mpi_host_broadcast,
    .host_gather = mpi_host_gather,
    .barrier = mpi_barrier,
    .node = mpi_node,
    .abort = mpi_abort,
};
