#include "train/threads.h"
#include "util/log.h"
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int g3_cores_allowed(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return CPU_COUNT(&set);
}

/* True when our parent is Open MPI's mpirun or its daemon on this node: not a shell that was bound
 * on purpose. */
static bool parent_is_launcher(void) {
  static const char *const names[] = {"mpirun", "mpiexec", "orterun", "orted", "prterun", "prted"};
  char path[64], name[32] = "";
  snprintf(path, sizeof path, "/proc/%d/comm", (int)getppid());
  FILE *file = fopen(path, "r");
  if (!file) return false;
  const bool read = fgets(name, sizeof name, file) != NULL;
  fclose(file);
  name[strcspn(name, "\n")] = '\0';
  for (size_t i = 0; read && i < sizeof names / sizeof names[0]; i++)
    if (strcmp(name, names[i]) == 0) return true;
  return false;
}

/* The cores of the local launcher, which starts unbound; ours when there is none to ask. */
static void launcher_cores(cpu_set_t *set) {
  if (parent_is_launcher() && sched_getaffinity(getppid(), sizeof *set, set) == 0) return;
  if (sched_getaffinity(0, sizeof *set, set) != 0) {
    CPU_ZERO(set);
    CPU_SET(0, set);
  }
}

int g3_cores_of_launcher(void) {
  cpu_set_t set;
  launcher_cores(&set);
  return CPU_COUNT(&set);
}

static bool user_chose_binding(void) {
  return getenv("OMPI_MCA_hwloc_base_binding_policy") != NULL;
}

g3_status g3_threads_plan(g3_comm *world, int wanted, g3_thread_plan *out) {
  g3_thread_plan plan = {0};
  int local_rank;
  G3_TRY(g3_comm_node(world, &local_rank, &plan.local_ranks));
  cpu_set_t whole;
  launcher_cores(&whole);
  const int mine = g3_cores_allowed();
  const bool may_widen = !user_chose_binding() && CPU_COUNT(&whole) > mine;
  plan.cores = may_widen || plan.local_ranks > 1 ? CPU_COUNT(&whole) : mine;
  plan.threads = wanted > 0 ? wanted : plan.cores / plan.local_ranks;
  if (plan.threads < 1) plan.threads = 1;
  if (mine < plan.threads && may_widen)
    plan.widened = sched_setaffinity(0, sizeof whole, &whole) == 0;
  if (plan.widened)
    G3_INFO(
        "threads: the launcher had bound this rank to %d of %d cores; unbound it for %d threads",
        mine, plan.cores, plan.threads);
  else if (mine < plan.threads && local_rank == 0)
    G3_WARN("%d threads on %d cores: they will wait for each other; use --threads %d or mpirun "
            "--bind-to none",
            plan.threads, mine, mine);
  if (local_rank == 0 && plan.local_ranks > plan.cores && !g3_comm_yields())
    G3_WARN("%d ranks wait busily on %d cores: start with mpirun --oversubscribe, or set "
            "OMPI_MCA_mpi_yield_when_idle=1",
            plan.local_ranks, plan.cores);
  *out = plan;
  return G3_OK;
}
