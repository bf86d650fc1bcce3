#include "comm/launch.h"
#include "comm/comm.h"
#include <stdlib.h>

/* Set by mpirun, by PMIx and by the older PMI of Slurm and MPICH. */
static const char *const ranks[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                    "MV2_COMM_WORLD_RANK"};
static const char *const sizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE"};

enum { RANKS = sizeof ranks / sizeof *ranks, SIZES = sizeof sizes / sizeof *sizes };

/* A count in the environment; 0 when it is not there or no number. */
static long count_of(const char *name) {
  const char *text = getenv(name);
  if (!text) return 0;
  char *end;
  const long n = strtol(text, &end, 10);
  return end != text && *end == '\0' && n > 0 ? n : 0;
}

static bool mpi_knows(void) {
  for (int i = 0; i < RANKS; i++)
    if (getenv(ranks[i])) return true;
  return false;
}

bool g3_launch_lost(void) {
  return !mpi_knows() && getenv("SLURM_PROCID") && count_of("SLURM_NTASKS") > 1;
}

long g3_launch_size(void) {
  for (int i = 0; i < SIZES; i++)
    if (count_of(sizes[i])) return count_of(sizes[i]);
  return g3_launch_lost() ? count_of("SLURM_NTASKS") : 0;
}

bool g3_comm_launched(void) {
  return mpi_knows() || g3_launch_lost();
}
