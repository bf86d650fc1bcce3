/* A way for tests to reach the paths of very large tensors with small ones. */
#ifndef G3_COMM_MPI_LIMIT_H
#define G3_COMM_MPI_LIMIT_H
#include "comm/comm.h"

/* Collective, before other calls on c: at most `elements` (1 or more, INT_MAX by default) are given
 * to one call of MPI; the rest goes in further calls. For communicators of g3_comm_mpi_world;
 * inherited by split. */
void g3_comm_mpi_limit(g3_comm *c, int64_t elements);

#endif
