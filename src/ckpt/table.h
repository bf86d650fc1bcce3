/* The tables inside an index: one-dimensional compound datasets with fixed-size fields. */
#ifndef G3_CKPT_TABLE_H
#define G3_CKPT_TABLE_H
#include "ckpt/h5.h"

typedef struct {
  char name[96];
  char dtype[8]; /* "f32", "bf16" */
  int32_t ndim;
  int64_t dims[G3_MAX_DIMS];
} g3_ckpt_tensor_row;

typedef struct {
  int32_t tensor; /* row of the table of tensors */
  int32_t shard; /* row of the table of shards */
  char dataset[192];
  int64_t start[G3_MAX_DIMS], count[G3_MAX_DIMS];
  uint64_t xxh3;
} g3_ckpt_piece_row;

typedef struct {
  int64_t bytes; /* of the shard's file */
} g3_ckpt_shard_row;

typedef enum { G3_CKPT_TENSORS, G3_CKPT_PIECES, G3_CKPT_SHARDS, G3_CKPT_TABLES } g3_ckpt_table;

/* Local. Writes n rows of a table's struct as a new dataset in `file`; `path` is for messages. */
G3_MUST_USE g3_status g3_ckpt_table_write(hid_t file, const char *path, g3_ckpt_table table,
                                          const void *rows, int64_t n);

/* Local. All rows of a table. G3_EFORMAT when it is not there or lacks a field. The caller frees
 * *rows. */
G3_MUST_USE g3_status g3_ckpt_table_read(hid_t file, const char *path, g3_ckpt_table table,
                                         void **rows, int64_t *n);

#endif
