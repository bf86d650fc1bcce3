/* What this folder tells `gpt3d doctor`. */
#ifndef G3_COMM_FACTS_H
#define G3_COMM_FACTS_H
#include "comm/comm.h"
#include "util/facts.h"

/* Local. The name and version of the MPI library, "Open MPI v4.1.4"; "" when it does not say. */
void g3_comm_library(char *out, size_t size);

/* Collective over world. The MPI library, how the job was started, and how its ranks wait; `cores`
 * are those that this machine's ranks may use. */
G3_MUST_USE g3_status g3_comm_facts(g3_facts *f, g3_comm *world, int cores);

#endif
