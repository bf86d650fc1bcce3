/* Our own file driver beneath HDF5. HDF5 1.10 cannot close a file whose last writes failed: its
 * exit handler then uses freed memory. So a failed write is remembered here, HDF5 is told that all
 * is well, and who closes the file asks for the verdict. It also takes no locks, which many cluster
 * file systems refuse, whatever HDF5_USE_FILE_LOCKING says. */
#ifndef G3_CKPT_VFD_H
#define G3_CKPT_VFD_H
#include <hdf5.h>
#include <stdbool.h>
#include <stdint.h>

/* A file that is open, or not: then id is negative. It does not move while it is open. */
typedef struct {
  hid_t id; /* HDF5's file */
  hid_t driver; /* the driver's registration, which must outlive the file */
  int error; /* errno of the first call that failed in writing; 0: none */
  int64_t bytes; /* the file's size, once it has been written and closed */
} g3_vfd_file;

#define G3_VFD_NONE ((g3_vfd_file){-1, -1, 0, 0})

/* Local. Opens a new file, replacing one of that name; `fcpl` may be H5P_DEFAULT. False on failure,
 * with the system's reason on HDF5's error stack. After a failed write nothing more is written. */
bool g3_vfd_create(g3_vfd_file *f, const char *path, hid_t fcpl);

/* Local. Opens a file for reading; false as above. */
bool g3_vfd_open(g3_vfd_file *f, const char *path);

/* Local. Closes what is open; what was written is on the disk then, unless f->error says why not.
 * False when HDF5 itself could not close it, with the reason on its error stack. */
bool g3_vfd_close(g3_vfd_file *f);

#endif
