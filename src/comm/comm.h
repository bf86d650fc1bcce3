/* A set of ranks that call the same things in the same order. There is no lone send: `exchange`
 * moves everything of a step between computes together, so that a send never blocks a receive.
 * Transfers match by order, without tags, as in NCCL. */
#ifndef G3_COMM_COMM_H
#define G3_COMM_COMM_H
#include "device/device.h"

typedef struct g3_comm g3_comm;
typedef enum { G3_SUM, G3_MAX } g3_redop;
typedef enum { G3_SEND, G3_RECV } g3_dir;
typedef struct {
  g3_dir dir;
  int peer; /* rank within the communicator */
  g3_tensor t; /* dense */
} g3_xfer;

/* Every call is collective over the communicator, enqueues on the stream and may return early; an
 * event on the stream, or the stream's next op, completes it. Tensors are dense. On a stream that
 * is not `side` implementations block where that is faster. Sums of bf16 are made in f32 and
 * rounded once. */
typedef struct {
  const char *name; /* "self", "mpi", "nccl" */
  /* Ranks of one colour form a communicator, ordered by key. A negative colour joins none and gets
   * NULL. The caller destroys it, before the world and with nothing pending on it. */
  g3_status (*split)(g3_comm *parent, int color, int key, const char *name, g3_comm **out);
  void (*destroy)(g3_comm *);
  g3_status (*all_reduce)(g3_comm *, g3_stream *, g3_tensor t, g3_redop);
  /* `in` holds size ranges of out's count; out = the sum of everyone's range `rank`. In place when
   * out is that range of `in`; the other ranges are then undefined. */
  g3_status (*reduce_scatter)(g3_comm *, g3_stream *, g3_tensor out, g3_tensor in);
  /* The inverse: `out` holds size ranges; in place when `in` is range `rank` of out. */
  g3_status (*all_gather)(g3_comm *, g3_stream *, g3_tensor out, g3_tensor in);
  g3_status (*broadcast)(g3_comm *, g3_stream *, g3_tensor t, int root);
  /* Sends and receives all of x together. Between two ranks the k-th send meets the k-th receive,
   * which has the same dtype and count. Tensors that are received overlap no other of x. */
  g3_status (*exchange)(g3_comm *, g3_stream *, const g3_xfer *x, int n);
  /* Host side, for set-up, files and agreement: blocking. */
  g3_status (*host_all_reduce)(g3_comm *, int64_t *values, int n, g3_redop);
  g3_status (*host_broadcast)(g3_comm *, void *bytes, size_t n, int root);
  /* Bytes of each rank, concatenated in rank order on root: *out and sizes[size] there (freed by
   * the caller with free), NULL elsewhere. */
  g3_status (*host_gather)(g3_comm *, const void *bytes, size_t n, int root, void **out,
                           size_t **sizes);
  g3_status (*barrier)(g3_comm *);
  /* What g3_comm_node gives. */
  g3_status (*node)(g3_comm *, int *local_rank, int *local_size);
  void (*abort)(g3_comm *, int exit_code); /* ends the whole job */
} g3_comm_ops;

struct g3_comm {
  const g3_comm_ops *ops;
  int rank, size;
  char name[16]; /* "world", "tp", "pp", "dp": for messages */
  g3_tensor scratch; /* u8, borrowed: room for sums of bf16; inherited by split */
  void *impl;
};

/* Local. One rank, no library. */
G3_MUST_USE g3_status g3_comm_self(g3_comm **out);

/* Collective over all processes. Starts MPI (once a process) and gives the world. Destroying the
 * world ends MPI. G3_EINVAL when the launcher started more processes than MPI sees. */
G3_MUST_USE g3_status g3_comm_mpi_world(g3_comm **out);

void g3_comm_destroy(g3_comm *c); /* NULL is fine */

/* Pure. Bytes of scratch that sums of up to `count` bf16 elements over `size` ranks need; 0 for
 * size 1. */
size_t g3_comm_scratch_bytes(int64_t count, int size);

/* Collective. G3_OK everywhere, or not G3_OK everywhere: the one place where ranks agree on
 * failure. The message of the lowest rank that failed becomes the last error on all, after
 * "rank N: " unless all failed with one status, and its status the result. */
G3_MUST_USE g3_status g3_comm_agree(g3_comm *c, g3_status mine);

/* Collective. How many ranks of c run on this machine, and this rank's number among them. */
G3_MUST_USE g3_status g3_comm_node(g3_comm *c, int *local_rank, int *local_size);

/* Local. True when this process was started by mpirun or an equivalent (from its environment). */
bool g3_comm_launched(void);

/* Local, while MPI runs. False when a rank that waits keeps its core busy, which makes more ranks
 * than cores very slow. True when it lets others run, and when MPI does not say. */
bool g3_comm_yields(void);

#endif
