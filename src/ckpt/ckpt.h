/* Checkpoints: plain HDF5 shards, an index with whole tensors as virtual datasets and a table of
 * pieces. The layout that wrote one is nowhere in it; any layout reads it. Formats:
 * docs/formats.md. */
#ifndef G3_CKPT_CKPT_H
#define G3_CKPT_CKPT_H
#include "comm/comm.h"
#include "parallel/slice.h"
#include <stdio.h>

/* One thing to save or load: a dense piece of a named whole, weights and moments alike. */
typedef struct {
  char name[96]; /* "model/blocks.7.mlp.up.weight", "optim/exp_avg/blocks.7.mlp.up.weight" */
  g3_slice slice;
  g3_tensor local; /* dense, slice's shape; f32 or bf16. Loading converts between the two */
} g3_ckpt_item;

/* A key and its value as text, kept as attributes of the index: the model's configuration. */
typedef struct {
  char key[64], value[128];
} g3_ckpt_attr;

typedef struct {
  int64_t step; /* steps done */
  int64_t consumed_samples; /* training samples seen */
  int64_t applied_steps; /* AdamW's t */
  g3_ckpt_attr *attr; /* model.layers, ... */
  int nattrs;
} g3_ckpt_meta;

/* Collective over world. Writes DIR/step-%08d, whole or not at all, then the pointer DIR/latest,
 * then drops the oldest beyond `keep` (0 = keep all). Every element of every tensor is given by
 * exactly one rank; a rank may give none. `stage`: host scratch of g3_ckpt_stage_bytes. On return
 * all ranks have the same verdict; on failure nothing but complete checkpoints remains. Waits for
 * `s`. */
G3_MUST_USE g3_status g3_ckpt_save(g3_comm *world, g3_stream *s, const char *dir,
                                   const g3_ckpt_meta *meta, const g3_ckpt_item *items, int n,
                                   int64_t keep, g3_tensor stage);

/* A stored piece never holds more elements than this, so that staging stays bounded: 64 MiB. */
#define G3_CKPT_PIECE_ELEMENTS ((int64_t)1 << 24)

/* Pure. Bytes of staging that saving or loading these items needs, whatever the layout and dtype
 * that wrote the file: 4 * the largest whole tensor's elements, at most 64 MiB. */
size_t g3_ckpt_stage_bytes(const g3_ckpt_item *items, int n);

/* One stored piece, as the index lists it. */
typedef struct {
  int shard; /* shard-%05d.h5 */
  char dataset[192]; /* in that shard: the tensor's name, "@", the start: "model/wte.weight@64,0" */
  g3_slice slice;
  uint64_t xxh3; /* XXH3-64 of its bytes */
} g3_ckpt_piece;

/* A whole tensor and the pieces that tile it, ordered by where they start. */
typedef struct {
  char name[96];
  g3_dtype dtype;
  int ndim;
  int64_t global[G3_MAX_DIMS];
  g3_ckpt_piece *piece;
  int npieces;
} g3_ckpt_entry;

/* What is known of a checkpoint without opening its shards. */
typedef struct {
  char path[1024]; /* of the checkpoint directory */
  g3_ckpt_meta meta; /* attributes ordered by key */
  g3_ckpt_entry *entry; /* ordered by name */
  int nentries;
  int64_t *shard_bytes; /* [nshards] size of each shard's file */
  int nshards;
} g3_ckpt_index;

/* Local, no MPI. Reads and checks the index of one checkpoint directory: its own hash, bounds, that
 * pieces tile each tensor exactly, that each shard is there and as long as it was. G3_EFORMAT or
 * G3_EIO naming file and reason. Freed by g3_ckpt_index_free. */
G3_MUST_USE g3_status g3_ckpt_index_read(const char *path, g3_ckpt_index **out);
void g3_ckpt_index_free(g3_ckpt_index *ix); /* NULL is fine */
const g3_ckpt_entry *g3_ckpt_find(const g3_ckpt_index *ix, const char *name); /* NULL: not there */
const char *g3_ckpt_attr_get(const g3_ckpt_meta *meta, const char *key); /* NULL: not there */

/* Pure. Bytes of staging that verifying this checkpoint needs; comparing two needs both's sum. */
size_t g3_ckpt_index_stage_bytes(const g3_ckpt_index *ix);

/* Local. Fills items from the pieces that meet them, each read once; hashes of all pieces read are
 * checked. A missing tensor is G3_EFORMAT unless `optional_prefix` (may be NULL) begins its name:
 * then its local is left alone and found[i] is false. found [n] may be NULL. `stage`: host scratch
 * of g3_ckpt_stage_bytes. On failure the locals are undefined. The caller makes ranks agree. */
G3_MUST_USE g3_status g3_ckpt_load(const g3_ckpt_index *ix, g3_stream *s, const g3_ckpt_item *items,
                                   int n, const char *optional_prefix, g3_tensor stage,
                                   bool *found);

/* Local. Hashes every piece; *bytes gets what was read. `stage`: host scratch of
 * g3_ckpt_index_stage_bytes. For `gpt3d ckpt verify`. */
G3_MUST_USE g3_status g3_ckpt_verify(const g3_ckpt_index *ix, g3_tensor stage, int64_t *bytes);

/* Local. Compares two checkpoints tensor by tensor, bit by bit (in f32 where dtypes differ): prints
 * rows that differ, *differing counts them. `stage`: host scratch of the sum of both indexes'
 * g3_ckpt_index_stage_bytes. */
G3_MUST_USE g3_status g3_ckpt_diff(const g3_ckpt_index *a, const g3_ckpt_index *b, g3_tensor stage,
                                   FILE *out, int64_t *differing);

/* Local. The checkpoint to go on from in DIR: what `latest` names, or, with a warning, the newest
 * whole one; out "" when there is none at all; when there are some and none is whole, the newest
 * one's failure. DIR may be a run directory, its checkpoints folder, or a checkpoint itself. */
G3_MUST_USE g3_status g3_ckpt_latest(const char *dir, char *out, size_t size);

#endif
