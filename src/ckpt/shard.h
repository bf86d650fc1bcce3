/* Shards: one plain HDF5 file a writing rank, one contiguous dataset a piece. */
#ifndef G3_CKPT_SHARD_H
#define G3_CKPT_SHARD_H
#include "ckpt/h5.h"
#include "ckpt/piece.h"
#include "ckpt/vfd.h"

/* Local. Writes shard number `shard` of `dir` from the items' rows, each staged on the host, and
 * waits until it is on the disk. Fills the rows' shard and hash; *bytes gets the file's size. On
 * failure an unfinished file may be left. */
G3_MUST_USE g3_status g3_ckpt_shard_write(const char *dir, int shard, g3_stream *s,
                                          const g3_ckpt_item *items, g3_ckpt_row *rows, int64_t n,
                                          g3_tensor stage, int64_t *bytes);

/* Reads pieces; keeps the shard of the last one open, and does not move while one is. */
typedef struct {
  const g3_ckpt_index *ix; /* borrowed */
  g3_vfd_file file;
  int shard; /* that is open; -1: none */
} g3_ckpt_reader;

/* A reader of one checkpoint with nothing open yet. The caller closes it. */
g3_ckpt_reader g3_ckpt_reader_of(const g3_ckpt_index *ix);

/* Closes the shard that is open, if one is; the reader can be used again. */
void g3_ckpt_reader_close(g3_ckpt_reader *r);

/* Local. Reads one piece into the start of `stage` and checks type, shape and hash. *out is a dense
 * view of it, in the piece's shape and the entry's dtype. G3_EFORMAT or G3_EIO naming the file. */
G3_MUST_USE g3_status g3_ckpt_reader_read(g3_ckpt_reader *r, const g3_ckpt_entry *e,
                                          const g3_ckpt_piece *p, g3_tensor stage, g3_tensor *out);

/* Local. Turns a dense tensor in stage into the other dtype, in place; the memory behind it has
 * room for f32. */
g3_tensor g3_ckpt_convert(g3_tensor t, g3_dtype to);

/* XXH3-64 of bytes. Pure. */
uint64_t g3_ckpt_hash(const void *bytes, size_t n);

/* Orders pieces so that each shard is opened once and read forwards. For sorting. Pure. */
int g3_ckpt_by_shard(const g3_ckpt_piece *a, const g3_ckpt_piece *b);

#endif
