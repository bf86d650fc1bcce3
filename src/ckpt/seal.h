/* The index's own hash, in the 512 bytes before its HDF5 part that HDF5 leaves to the user. */
#ifndef G3_CKPT_SEAL_H
#define G3_CKPT_SEAL_H
#include "util/status.h"

enum { G3_CKPT_SEAL_BYTES = 512 };

/* Local. Writes the text block: what the file is, the length of what follows and its XXH3-64. */
G3_MUST_USE g3_status g3_ckpt_seal(const char *path);

/* Local. G3_EIO when the file cannot be read, G3_EFORMAT when it is no index or any byte of it has
 * changed. */
G3_MUST_USE g3_status g3_ckpt_seal_check(const char *path);

#endif
