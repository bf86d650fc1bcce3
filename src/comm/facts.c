#include "comm/facts.h"
#include <mpi.h>
#include <stdio.h>
#include <string.h>

/* The library's own words, up to the first comma or line's end. */
void g3_comm_library(char *out, size_t size) {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length;
  if (MPI_Get_library_version(text, &length) != MPI_SUCCESS) text[0] = '\0';
  text[strcspn(text, ",\n")] = '\0';
  snprintf(out, size, "%s", text);
}

static void library(g3_facts *f) {
  char name[128];
  int major = 0, minor = 0;
  g3_comm_library(name, sizeof name);
  if (*name && MPI_Get_version(&major, &minor) == MPI_SUCCESS)
    g3_fact(f, G3_FACT_OK, "MPI", "%s, standard %d.%d", name, major, minor);
  else
    g3_fact(f, G3_FACT_MISSING, "MPI", "does not say its version: apt install libopenmpi3");
}

static void alone(g3_facts *f, int cores) {
  g3_fact(f, G3_FACT_OK, "ranks",
          "1, not started by mpirun; %d rank%s here would have a core each, and mpirun starts more "
          "with --oversubscribe",
          cores, cores == 1 ? "" : "s");
}

static void together(g3_facts *f, const g3_comm *world, int local, int cores) {
  const bool crowded = local > cores, yields = g3_comm_yields();
  g3_fact(f, G3_FACT_OK, "ranks", "%d, of them %d on this machine's %d core%s", world->size, local,
          cores, cores == 1 ? "" : "s");
  if (crowded && !yields)
    g3_fact(f, G3_FACT_WARN, "waiting",
            "ranks that wait keep their cores busy, which makes more ranks than cores very slow: "
            "mpirun --oversubscribe, or export OMPI_MCA_mpi_yield_when_idle=1");
  else
    g3_fact(f, G3_FACT_OK, "waiting", "ranks that wait %s",
            yields ? "give up their core" : "keep their cores busy");
}

g3_status g3_comm_facts(g3_facts *f, g3_comm *world, int cores) {
  int rank, local;
  G3_TRY(g3_comm_node(world, &rank, &local));
  library(f);
  if (world->size > 1 || g3_comm_launched())
    together(f, world, local, cores);
  else
    alone(f, cores);
  return G3_OK;
}
