/* Names and durability of files and folders: what is renamed into place has been synced first. */
#ifndef G3_CKPT_FILES_H
#define G3_CKPT_FILES_H
#include "util/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { G3_CKPT_PATH = 1024 }; /* bytes of a path, with its end */

/* Formats a path into out[G3_CKPT_PATH]; G3_EINVAL when it does not fit. Local. */
G3_MUST_USE g3_status g3_ckpt_path(char *out, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Makes a directory and those above it; fine when it is there. Local. */
G3_MUST_USE g3_status g3_ckpt_make_dirs(const char *path);

/* Removes a directory of plain files; fine when it is not there. Returns 0 or errno: it records no
 * failure, so that it can clean up after one. Local. */
int g3_ckpt_remove_dir(const char *path);

/* Waits until a file's bytes, or a directory's names, are on the disk. *bytes (may be NULL) gets
 * the file's size. Local. */
G3_MUST_USE g3_status g3_ckpt_sync(const char *path, int64_t *bytes);

/* Moves directory `from` to `to` in `parent`, replacing a directory that is there, and syncs the
 * parent. Whatever happens, `to` is one of the two wholes, except on file systems that cannot
 * exchange names, where a crash between two renames leaves them as `from` and `to`.old. Local. */
G3_MUST_USE g3_status g3_ckpt_put_dir(const char *from, const char *to, const char *parent);

/* Replaces PARENT/NAME by a file holding `text`, whole or not at all. Local. */
G3_MUST_USE g3_status g3_ckpt_put_text(const char *parent, const char *name, const char *text);

/* True when path is there and a directory (or, with dir false, a plain file). Local. */
bool g3_ckpt_is(const char *path, bool dir);

/* The number in "step-00001200" or, with `suffix`, in "step-00001200.tmp"; -1 when it is no such
 * name. Pure. */
int64_t g3_ckpt_step_of(const char *name, const char *suffix);

/* The steps of the checkpoints in `dir`, ascending; with a suffix, of those leftovers. A missing
 * directory has none. Freed with free(). Local. */
G3_MUST_USE g3_status g3_ckpt_steps(const char *dir, const char *suffix, int64_t **steps,
                                    int64_t *n);

#endif
