/* The index in memory: built by the rank that writes it, or read from a file, and checked by the
 * same function either way. */
#ifndef G3_CKPT_INDEX_H
#define G3_CKPT_INDEX_H
#include "ckpt/ckpt.h"
#include "ckpt/piece.h"

enum { G3_CKPT_FORMAT_VERSION = 1 };

/* Local. An index for `path` from the pieces of all ranks, which are put in order by name and
 * start. Rows of one name must agree on dtype and shape. Freed by g3_ckpt_index_free. */
G3_MUST_USE g3_status g3_ckpt_index_build(const char *path, const g3_ckpt_meta *meta,
                                          g3_ckpt_row *rows, int64_t nrows,
                                          const int64_t *shard_bytes, int nshards,
                                          g3_ckpt_index **out);

/* Pure. Names, shapes, bounds, order, and that each tensor's pieces tile it: every element in
 * exactly one. G3_EFORMAT with `where` (a file, or who gave the pieces) and the reason. */
G3_MUST_USE g3_status g3_ckpt_index_check(const g3_ckpt_index *ix, const char *where);

/* Local. Writes ix->path/index.h5, seals it and waits until it is on the disk. */
G3_MUST_USE g3_status g3_ckpt_index_write(const g3_ckpt_index *ix);

/* Local. True status when each shard's file is there and has the size that the index says. */
G3_MUST_USE g3_status g3_ckpt_shards_check(const g3_ckpt_index *ix);

#endif
