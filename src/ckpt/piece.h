/* How a rank's items are cut into stored pieces, and what the pieces are called. */
#ifndef G3_CKPT_PIECE_H
#define G3_CKPT_PIECE_H
#include "ckpt/ckpt.h"

/* One piece that a rank writes; ranks send these rows as bytes to the rank that writes the index,
 * so every byte is defined. */
typedef struct {
  char name[96]; /* of the tensor */
  int32_t dtype; /* g3_dtype */
  int32_t item; /* the writer's item, and the piece's first element in its local tensor */
  int64_t offset;
  g3_ckpt_piece piece;
} g3_ckpt_row;

/* Pure but for memory. The items' pieces in order, `shard` and hash still to be filled in. Items
 * without elements have none. G3_EINVAL when a name cannot stand in a checkpoint. The caller frees
 * *rows. */
G3_MUST_USE g3_status g3_ckpt_cut(const g3_ckpt_item *items, int n, g3_ckpt_row **rows,
                                  int64_t *nrows);

/* True when `name` can name a tensor: 1 to 95 bytes, path components without an empty or dotted
 * one, no '%' (HDF5 expands it), and not inside the groups "index" and "config". Pure. */
bool g3_ckpt_name_ok(const char *name, size_t size);

/* Orders pieces by where they start. For qsort. */
int g3_ckpt_by_start(const g3_slice *a, const g3_slice *b);

#endif
