/* Asks Open MPI, through MPI's tool interface, whether waiting ranks give up their core. It decides
 * that at the start from the options, the environment and its count of cores. */
#include "comm/mpi_impl.h"

/* A control variable of type bool or int, read while the tool interface is open. */
static bool read_flag(const char *name, bool *out) {
  int index, count, scope, verbosity, binding;
  MPI_Datatype type;
  MPI_T_enum values;
  MPI_T_cvar_handle handle;
  if (MPI_T_cvar_get_index(name, &index) != MPI_SUCCESS) return false;
  if (MPI_T_cvar_get_info(index, NULL, NULL, &verbosity, &type, &values, NULL, NULL, &binding,
                          &scope) != MPI_SUCCESS ||
      binding != MPI_T_BIND_NO_OBJECT)
    return false;
  /* Open MPI 4.1 keeps a bool in one byte and calls it a C_BOOL. */
  int whole = 0;
  bool byte = false;
  const bool is_int = type == MPI_INT;
  if (!is_int && type != MPI_C_BOOL) return false;
  if (MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) != MPI_SUCCESS) return false;
  void *value = is_int ? (void *)&whole : (void *)&byte;
  const bool read = count == 1 && MPI_T_cvar_read(handle, value) == MPI_SUCCESS;
  *out = is_int ? whole != 0 : byte;
  return MPI_T_cvar_handle_free(&handle) == MPI_SUCCESS && read;
}

bool g3_comm_yields(void) {
  bool value = true;
  int provided;
  if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS) return true;
  const bool known = read_flag("mpi_yield_when_idle", &value);
  return MPI_T_finalize() != MPI_SUCCESS || !known || value;
}
