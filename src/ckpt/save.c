#include "ckpt/files.h"
#include "ckpt/index.h"
#include "ckpt/shard.h"
#include "util/array.h"
#include "util/log.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One save on one rank. */
typedef struct {
  g3_comm *world;
  const char *dir;
  char final[G3_CKPT_PATH], temp[G3_CKPT_PATH];
  g3_ckpt_row *rows;
  int64_t nrows;
  int shard, nshards; /* this rank's shard, -1 without rows */
  int64_t shard_bytes;
} job;

static bool first_rank(const job *j) {
  return j->world->rank == 0;
}

/* What an earlier save left when it was killed. */
static g3_status remove_leftovers(const char *dir, const char *suffix) {
  int64_t *steps = NULL, n = 0;
  G3_TRY(g3_ckpt_steps(dir, suffix, &steps, &n));
  g3_status st = G3_OK;
  for (int64_t i = 0; st == G3_OK && i < n; i++) {
    char path[G3_CKPT_PATH];
    st = g3_ckpt_path(path, "%s/step-%08" PRId64 "%s", dir, steps[i], suffix);
    if (st != G3_OK) break;
    const int bad = g3_ckpt_remove_dir(path);
    if (bad) st = G3_FAIL(G3_EIO, "cannot remove the left-over %s: %s", path, strerror(bad));
  }
  free(steps);
  return st;
}

static g3_status check_meta(const g3_ckpt_meta *m) {
  G3_CHECK(m->step >= 0 && m->consumed_samples >= 0 && m->applied_steps >= 0 && m->nattrs >= 0,
           "a checkpoint of step %lld cannot be", (long long)m->step);
  for (int i = 0; i < m->nattrs; i++) {
    const g3_ckpt_attr *a = &m->attr[i];
    G3_CHECK(a->key[0] && memchr(a->key, '\0', sizeof a->key) &&
                 memchr(a->value, '\0', sizeof a->value),
             "attribute %d of the checkpoint is not a text", i);
  }
  return G3_OK;
}

static g3_status begin(job *j, const g3_ckpt_meta *meta, const g3_ckpt_item *items, int n) {
  G3_TRY(check_meta(meta));
  G3_TRY(g3_ckpt_path(j->final, "%s/step-%08" PRId64, j->dir, meta->step));
  G3_TRY(g3_ckpt_path(j->temp, "%s.tmp", j->final));
  G3_TRY(g3_ckpt_cut(items, n, &j->rows, &j->nrows));
  if (!first_rank(j)) return G3_OK;
  G3_TRY(g3_ckpt_make_dirs(j->dir));
  G3_TRY(remove_leftovers(j->dir, ".tmp"));
  G3_TRY(remove_leftovers(j->dir, ".old"));
  return g3_ckpt_make_dirs(j->temp);
}

/* Collective. Shards are numbered without gaps over the ranks that have pieces. */
static g3_status number_shards(job *j) {
  int64_t *writes = NULL;
  const g3_status got = G3_NEW_ARRAY(j->world->size, &writes);
  G3_TRY(g3_comm_agree(j->world, got));
  writes[j->world->rank] = j->nrows > 0;
  const g3_status st = j->world->ops->host_all_reduce(j->world, writes, j->world->size, G3_SUM);
  j->shard = -1;
  for (int r = 0; st == G3_OK && r < j->world->size; r++) {
    if (r == j->world->rank && writes[r]) j->shard = j->nshards;
    j->nshards += writes[r] != 0;
  }
  free(writes);
  return st;
}

static g3_status write_shard(job *j, g3_stream *s, const g3_ckpt_item *items, g3_tensor stage) {
  if (j->shard < 0) return G3_OK;
  return g3_ckpt_shard_write(j->temp, j->shard, s, items, j->rows, j->nrows, stage,
                             &j->shard_bytes);
}

static g3_status write_index(const job *j, const g3_ckpt_meta *meta, g3_ckpt_row *rows,
                             int64_t nrows, const int64_t *shard_bytes) {
  g3_ckpt_index *ix = NULL;
  G3_TRY(g3_ckpt_index_build(j->temp, meta, rows, nrows, shard_bytes, j->nshards, &ix));
  g3_status st = g3_ckpt_index_check(ix, "the pieces that the ranks give");
  /* Shards that this rank cannot see lie on another machine's disk. */
  if (st == G3_OK) st = g3_ckpt_shards_check(ix);
  if (st == G3_OK) st = g3_ckpt_index_write(ix);
  if (st == G3_OK) st = g3_ckpt_sync(j->temp, NULL);
  g3_ckpt_index_free(ix);
  return st;
}

/* Leaves the sizes of those that wrote, in the order of their shards, at the front. */
static void drop_absent(int64_t *bytes, int ranks) {
  int n = 0;
  for (int r = 0; r < ranks; r++)
    if (bytes[r] >= 0) bytes[n++] = bytes[r];
}

/* Collective. Rank 0 gathers all rows, checks them and writes the index. */
static g3_status collect(job *j, const g3_ckpt_meta *meta) {
  const g3_comm_ops *ops = j->world->ops;
  void *rows = NULL, *shards = NULL;
  size_t *row_sizes = NULL, *shard_sizes = NULL;
  const int64_t mine = j->shard < 0 ? -1 : j->shard_bytes;
  g3_status st =
      ops->host_gather(j->world, j->rows, (size_t)j->nrows * sizeof *j->rows, 0, &rows, &row_sizes);
  if (st == G3_OK) st = ops->host_gather(j->world, &mine, sizeof mine, 0, &shards, &shard_sizes);
  if (st == G3_OK && first_rank(j)) {
    size_t bytes = 0;
    for (int r = 0; r < j->world->size; r++)
      bytes += row_sizes[r];
    drop_absent(shards, j->world->size);
    st = write_index(j, meta, rows, (int64_t)(bytes / sizeof(g3_ckpt_row)), shards);
  }
  free(shard_sizes);
  free(shards);
  free(row_sizes);
  free(rows);
  return st;
}

static g3_status publish(const job *j) {
  if (!first_rank(j)) return G3_OK;
  G3_TRY(g3_ckpt_put_dir(j->temp, j->final, j->dir));
  char name[G3_CKPT_PATH];
  G3_TRY(g3_ckpt_path(name, "%s\n", strrchr(j->final, '/') + 1));
  return g3_ckpt_put_text(j->dir, "latest", name);
}

/* A checkpoint that cannot be dropped is no failure of the save. A rename first, so that one half
 * removed is never taken for a whole one. */
static void drop_one(const char *dir, int64_t step) {
  char path[G3_CKPT_PATH], gone[G3_CKPT_PATH];
  if (g3_ckpt_path(path, "%s/step-%08" PRId64, dir, step) != G3_OK ||
      g3_ckpt_path(gone, "%s.tmp", path) != G3_OK)
    return;
  int bad = rename(path, gone) == 0 ? 0 : errno;
  if (!bad) bad = g3_ckpt_remove_dir(gone);
  if (bad) G3_WARN("cannot remove the old checkpoint %s: %s", path, strerror(bad));
}

/* Drops the oldest that have an index, never the one just written, which `latest` names. */
static void drop_old(const job *j, int64_t written, int64_t keep) {
  if (!first_rank(j) || keep <= 0) return;
  int64_t *steps = NULL, n = 0, whole = 0;
  if (g3_ckpt_steps(j->dir, "", &steps, &n) != G3_OK) {
    G3_WARN("old checkpoints stay: %s", g3_last_error());
    return;
  }
  for (int64_t i = 0; i < n; i++) {
    char path[G3_CKPT_PATH];
    if (g3_ckpt_path(path, "%s/step-%08" PRId64 "/index.h5", j->dir, steps[i]) == G3_OK &&
        g3_ckpt_is(path, false))
      steps[whole++] = steps[i];
  }
  int64_t left = whole;
  for (int64_t i = 0; i < whole && left > keep; i++)
    if (steps[i] != written) {
      drop_one(j->dir, steps[i]);
      left--;
    }
  free(steps);
}

/* Collective. Each part ends in agreement, so that no rank goes on alone. */
static g3_status run(job *j, g3_stream *s, const g3_ckpt_meta *meta, const g3_ckpt_item *items,
                     int n, g3_tensor stage) {
  g3_comm *world = j->world;
  G3_TRY(g3_comm_agree(world, begin(j, meta, items, n)));
  G3_TRY(number_shards(j));
  G3_TRY(g3_comm_agree(world, write_shard(j, s, items, stage)));
  G3_TRY(g3_comm_agree(world, collect(j, meta)));
  return g3_comm_agree(world, publish(j));
}

g3_status g3_ckpt_save(g3_comm *world, g3_stream *s, const char *dir, const g3_ckpt_meta *meta,
                       const g3_ckpt_item *items, int n, int64_t keep, g3_tensor stage) {
  job j = {.world = world, .dir = dir, .shard = -1};
  const g3_status st = run(&j, s, meta, items, n, stage);
  if (st == G3_OK)
    drop_old(&j, meta->step, keep);
  else if (first_rank(&j) && j.temp[0])
    (void)g3_ckpt_remove_dir(j.temp);
  free(j.rows);
  /* No rank leaves while rank 0 still removes files: who sees a failure may end the job. */
  const g3_status together = world->ops->barrier(world);
  return st != G3_OK ? st : together;
}
