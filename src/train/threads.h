/* Threads and the cores they may use. */
#ifndef G3_TRAIN_THREADS_H
#define G3_TRAIN_THREADS_H
#include "comm/comm.h"

/* What a rank decides about its threads. */
typedef struct {
  int cores; /* that this node's ranks may use together */
  int local_ranks; /* ranks on this node */
  int threads; /* of this rank */
  bool widened; /* the launcher had bound this rank to fewer cores than threads: mended */
} g3_thread_plan;

/* Collective over world. `wanted` = 0: the node's cores / its ranks, at least 1. Open MPI binds the
 * only rank of a node to one core unless told otherwise; when that binding is the launcher's
 * default, and not the user's wish, the rank is given back the launcher's own cores. Says in one
 * line what it mended, or what the user should mend. */
G3_MUST_USE g3_status g3_threads_plan(g3_comm *world, int wanted, g3_thread_plan *out);

/* Local. Cores that this process may use now. */
int g3_cores_allowed(void);

/* Local. Cores that the launcher on this machine may use, and so its ranks together; those of this
 * process without a launcher, or when it cannot be asked. */
int g3_cores_of_launcher(void);

#endif
