/* HDF5's ids, types and errors in our terms. */
#ifndef G3_CKPT_H5_H
#define G3_CKPT_H5_H
#include "tensor/tensor.h"
#include "util/status.h"
#include <hdf5.h>

/* What an id is before it is opened: closing it does nothing. */
#define G3_H5_NONE ((hid_t)-1)

/* Before any other HDF5 call of a public function: HDF5 prints nothing by itself. Cheap. HDF5 is
 * not thread-safe: one thread at a time. */
void g3_h5_begin(void);

/* Writes the innermost reason of HDF5's last failure into why[size] and returns it: the system's
 * own text where a system call failed. To be called before any other HDF5 call. */
const char *g3_h5_why(char *why, size_t size);

/* Records a failure with HDF5's reason at the end of the message. */
#define G3_H5_FAIL(code, fmt, ...)                                                                 \
  g3_fail((code), __FILE__, __LINE__, fmt ": %s", __VA_ARGS__, g3_h5_why((char[256]){0}, 256))

/* A new type, in files and in memory alike: IEEE f32, or bf16 as a 16-bit float with 8 bits of
 * exponent, little-endian. Negative on failure. The caller closes it with H5Tclose. */
hid_t g3_h5_dtype(g3_dtype t);

/* Closes an id of any kind and sets it to none; true when that worked or there was nothing. */
bool g3_h5_close(hid_t *id);

#endif
