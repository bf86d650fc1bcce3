/* Whether a waiting rank gives its core away: a control variable of Open MPI, read through MPI's
 * tools interface (MPI 3.1, section 14.3). */
#include "comm/comm.h"
#include <mpi.h>

bool g3_comm_yields(void) {
  int provided, index, count, value = 1;
  MPI_T_cvar_handle handle;
  if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS) return true;
  if (MPI_T_cvar_get_index("mpi_yield_when_idle", &index) == MPI_SUCCESS &&
      MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) == MPI_SUCCESS) {
    if (count != 1 || MPI_T_cvar_read(handle, &value) != MPI_SUCCESS) value = 1;
    MPI_T_cvar_handle_free(&handle);
  }
  MPI_T_finalize();
  return value != 0;
}
