#include "ckpt/vfd.h"
#include "util/array.h"
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif

#define MAX_ADDRESS ((haddr_t)INT64_MAX)

/* The part of a file access property list that is the driver's. */
typedef struct {
  g3_vfd_file *owner; /* NULL: a file for reading */
} options;

typedef struct {
  H5FD_t base; /* HDF5's own, first */
  int fd;
  haddr_t eoa, eof; /* end of what HDF5 has allocated, and of the file */
  g3_vfd_file *owner;
} driver;

static herr_t push_error(const char *what, int number) {
  H5Epush2(H5E_DEFAULT, __FILE__, what, __LINE__, H5E_ERR_CLS, H5E_VFL, H5E_SYSERRSTR,
           "errno = %d while %s", number, what);
  return -1;
}

/* Remembers a failure of writing; for HDF5 it is none. */
static herr_t swallow(driver *d, int number) {
  if (d->owner && !d->owner->error) d->owner->error = number;
  return 0;
}

static bool failed(const driver *d) {
  return d->owner && d->owner->error;
}

static H5FD_t *open_file(const char *name, unsigned flags, hid_t fapl, haddr_t most) {
  (void)most;
  const options *o = H5Pget_driver_info(fapl);
  g3_vfd_file *owner = o ? o->owner : NULL;
  driver *d = NULL;
  int how = O_CLOEXEC | (flags & H5F_ACC_RDWR ? O_RDWR : O_RDONLY);
  how |= (flags & H5F_ACC_TRUNC ? O_TRUNC : 0) | (flags & H5F_ACC_CREAT ? O_CREAT : 0) |
         (flags & H5F_ACC_EXCL ? O_EXCL : 0);
  const int fd = open(name, how, 0666);
  struct stat st;
  errno = fd < 0 ? errno : ENOMEM;
  if (fd < 0 || G3_NEW_ARRAY(1, &d) != G3_OK || fstat(fd, &st) != 0) {
    const int number = errno;
    if (owner) owner->error = number;
    push_error("opening", number);
    if (fd >= 0) close(fd);
    free(d);
    return NULL;
  }
  if (owner) owner->error = 0; /* HDF5 first tries whether the file is there */
  d->fd = fd;
  d->eof = (haddr_t)st.st_size;
  d->owner = owner;
  return &d->base;
}

static herr_t close_file(H5FD_t *file) {
  driver *d = (driver *)file;
  if (d->owner) {
    if (!failed(d) && fsync(d->fd) != 0) swallow(d, errno);
    d->owner->bytes = (int64_t)d->eof;
  }
  if (close(d->fd) != 0) swallow(d, errno);
  free(d);
  return 0;
}

static herr_t query(const H5FD_t *file, unsigned long *flags) {
  (void)file;
  *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
           H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
  return 0;
}

static haddr_t get_eoa(const H5FD_t *file, H5FD_mem_t type) {
  (void)type;
  return ((const driver *)file)->eoa;
}

static herr_t set_eoa(H5FD_t *file, H5FD_mem_t type, haddr_t address) {
  (void)type;
  ((driver *)file)->eoa = address;
  return 0;
}

static haddr_t get_eof(const H5FD_t *file, H5FD_mem_t type) {
  (void)type;
  return ((const driver *)file)->eof;
}

static bool in_range(haddr_t address, size_t size) {
  return address <= MAX_ADDRESS && size <= MAX_ADDRESS - address;
}

/* What lies behind the end reads as zeros, and so does what a failed write left out. */
static herr_t read_file(H5FD_t *file, H5FD_mem_t type, hid_t dxpl, haddr_t address, size_t size,
                        void *out) {
  (void)type, (void)dxpl;
  driver *d = (driver *)file;
  char *to = out;
  if (!in_range(address, size)) return push_error("reading", EOVERFLOW);
  while (size > 0) {
    const ssize_t n = failed(d) ? 0 : pread(d->fd, to, size, (off_t)address);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return push_error("reading", errno);
    if (n == 0) break;
    to += n;
    address += (haddr_t)n;
    size -= (size_t)n;
  }
  memset(to, 0, size);
  return 0;
}

static herr_t write_file(H5FD_t *file, H5FD_mem_t type, hid_t dxpl, haddr_t address, size_t size,
                         const void *data) {
  (void)type, (void)dxpl;
  driver *d = (driver *)file;
  const char *from = data;
  const haddr_t start = address;
  if (failed(d)) return 0;
  if (!in_range(address, size)) return swallow(d, EFBIG);
  while (size > 0) {
    const ssize_t n = pwrite(d->fd, from, size, (off_t)address);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return swallow(d, n < 0 ? errno : EIO);
    from += n;
    address += (haddr_t)n;
    size -= (size_t)n;
  }
  if (address > d->eof) d->eof = address;
  /* Starts the disk now, so that the sync at the end waits for less. A hint: it may fail. */
  if (type == H5FD_MEM_DRAW && address - start >= (1 << 20))
    (void)sync_file_range(d->fd, (off_t)start, (off_t)(address - start), SYNC_FILE_RANGE_WRITE);
  return 0;
}

/* The file ends where HDF5's allocations do: that is how a cut file is noticed. */
static herr_t truncate_file(H5FD_t *file, hid_t dxpl, hbool_t closing) {
  (void)dxpl, (void)closing;
  driver *d = (driver *)file;
  if (failed(d) || d->eoa == d->eof) return 0;
  if (ftruncate(d->fd, (off_t)d->eoa) != 0) return swallow(d, errno);
  d->eof = d->eoa;
  return 0;
}

static const H5FD_class_t class = {
#if H5_VERSION_GE(1, 13, 0)
    .version = H5FD_CLASS_VERSION,
    .value = 512, /* the first that is not the library's */
#endif
    .name = "gpt3d",
    .maxaddr = MAX_ADDRESS,
    .fc_degree = H5F_CLOSE_STRONG,
    .fapl_size = sizeof(options),
    .open = open_file,
    .close = close_file,
    .query = query,
    .get_eoa = get_eoa,
    .set_eoa = set_eoa,
    .get_eof = get_eof,
    .read = read_file,
    .write = write_file,
    .truncate = truncate_file,
    .fl_map = H5FD_FLMAP_DICHOTOMY,
};

/* A file access property list with the driver; negative on failure. */
static hid_t access_through(hid_t id, g3_vfd_file *owner) {
  const options o = {owner};
  const hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
  if (fapl >= 0 && id >= 0 && H5Pset_driver(fapl, id, &o) >= 0) return fapl;
  if (fapl >= 0) H5Pclose(fapl);
  return -1;
}

/* Opens or creates; cleans up, on failure leaving its reason where it is looked for. */
static bool start(g3_vfd_file *f, const char *path, bool fresh, hid_t fcpl) {
  *f = G3_VFD_NONE;
  f->driver = H5FDregister(&class);
  const hid_t fapl = access_through(f->driver, fresh ? f : NULL);
  if (fapl >= 0)
    f->id =
        fresh ? H5Fcreate(path, H5F_ACC_TRUNC, fcpl, fapl) : H5Fopen(path, H5F_ACC_RDONLY, fapl);
  const hid_t reason = f->id < 0 ? H5Eget_current_stack() : -1;
  if (fapl >= 0) H5Pclose(fapl);
  if (f->id < 0) g3_vfd_close(f);
  if (reason >= 0) H5Eset_current_stack(reason);
  return f->id >= 0;
}

bool g3_vfd_create(g3_vfd_file *f, const char *path, hid_t fcpl) {
  return start(f, path, true, fcpl);
}

bool g3_vfd_open(g3_vfd_file *f, const char *path) {
  return start(f, path, false, H5P_DEFAULT);
}

bool g3_vfd_close(g3_vfd_file *f) {
  const bool ok = f->id < 0 || H5Fclose(f->id) >= 0;
  const hid_t reason = ok ? -1 : H5Eget_current_stack();
  if (f->driver >= 0) H5FDunregister(f->driver);
  if (reason >= 0) H5Eset_current_stack(reason);
  f->id = f->driver = -1;
  return ok;
}
