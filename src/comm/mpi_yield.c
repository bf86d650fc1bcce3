/* Asks Open MPI, through MPI's tool interface, whether waiting ranks give up their core. It decides
 * that at the start from the options, the environment and its count of cores. */
#include "comm/mpi_impl.h"

/* A control variable of type int, read while the tool interface is open. */
static bool read_int(const char *name, int *out) {
  int index, count, scope, verbosity, binding;
  MPI_Datatype type;
  MPI_T_enum values;
  MPI_T_cvar_handle handle;
  if (MPI_T_cvar_get_index(name, &index) != MPI_SUCCESS) return false;
  if (MPI_T_cvar_get_info(index, NULL, NULL, &verbosity, &type, &values, NULL, NULL, &binding,
                          &scope) != MPI_SUCCESS ||
      type != MPI_INT || binding != MPI_T_BIND_NO_OBJECT)
    return false;
  if (MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) != MPI_SUCCESS) return false;
  const bool read = count == 1 && MPI_T_cvar_read(handle, out) == MPI_SUCCESS;
  return MPI_T_cvar_handle_free(&handle) == MPI_SUCCESS && read;
}

bool g3_comm_yields(void) {
  int provided, value = 1;
  if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS) return true;
  const bool known = read_int("mpi_yield_when_idle", &value);
  return MPI_T_finalize() != MPI_SUCCESS || !known || value != 0;
}
