/* Our own file driver beneath HDF5. HDF5 1.10 cannot close a file whose last writes failed: its
 * exit handler then uses freed memory. So a failed write is remembered here, HDF5 is told that all
 * is well, and who closes the file asks for the verdict. It also takes no locks, which many cluster
 * file systems refuse, whatever HDF5_USE_FILE_LOCKING says. */
#ifndef G3_CKPT_VFD_H
#define G3_CKPT_VFD_H
#include <hdf5.h>
#include <stdint.h>

/* What became of a file that is written. */
typedef struct {
  int error; /* errno of the first call that failed; 0: none */
  int64_t bytes; /* its size once it is closed */
} g3_vfd_report;

/* Local. A new file, replacing one of that name; `fcpl` may be H5P_DEFAULT. Negative on failure.
 * `report` outlives the file. After a failed write nothing more is written. Closing syncs the file
 * to disk; the report is complete only then. */
hid_t g3_vfd_create(const char *path, hid_t fcpl, g3_vfd_report *report);

/* Local. A file for reading. Negative on failure, with the system's reason on HDF5's error stack.
 */
hid_t g3_vfd_open(const char *path);

#endif
