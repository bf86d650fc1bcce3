#include "ckpt/ckpt.h"
#include "ckpt/files.h"
#include "util/log.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The step that DIR/latest names; -1 when there is no such file or it names none. */
static int64_t pointed_step(const char *dir) {
  char path[G3_CKPT_PATH], name[64] = "";
  if (g3_ckpt_path(path, "%s/latest", dir) != G3_OK) return -1;
  FILE *f = fopen(path, "re");
  if (!f) return -1;
  const bool read = fgets(name, sizeof name, f) != NULL;
  fclose(f);
  name[strcspn(name, "\n")] = '\0';
  return read ? g3_ckpt_step_of(name, "") : -1;
}

/* Success when DIR's checkpoint of this step is whole; its path then in `path`. */
static g3_status try_step(const char *dir, int64_t step, char *path) {
  g3_ckpt_index *ix = NULL;
  G3_TRY(g3_ckpt_path(path, "%s/step-%08" PRId64, dir, step));
  G3_TRY(g3_ckpt_index_read(path, &ix));
  g3_ckpt_index_free(ix);
  return G3_OK;
}

/* The newest whole checkpoint, `path` "" when there are none; the newest one's failure when none is
 * whole. */
static g3_status newest_whole(const char *dir, int64_t pointed, char *path) {
  int64_t *steps = NULL, n = 0;
  G3_TRY(g3_ckpt_steps(dir, "", &steps, &n));
  g3_status first = G3_OK;
  char why[1024] = "";
  path[0] = '\0';
  bool found = false;
  for (int64_t i = n - 1; i >= 0 && !found; i--) {
    if (steps[i] == pointed) continue;
    const g3_status st = try_step(dir, steps[i], path);
    found = st == G3_OK;
    if (!found && first == G3_OK) {
      first = st;
      snprintf(why, sizeof why, "%s", g3_last_error());
    }
  }
  free(steps);
  if (!found) path[0] = '\0';
  if (!found && first != G3_OK) return G3_FAIL(first, "%s", why);
  return G3_OK;
}

static g3_status find_in(const char *dir, char *path) {
  const int64_t pointed = pointed_step(dir);
  if (pointed < 0) return newest_whole(dir, -1, path);
  const g3_status st = try_step(dir, pointed, path);
  if (st == G3_OK) return G3_OK;
  char why[1024];
  snprintf(why, sizeof why, "%s", g3_last_error());
  G3_TRY(newest_whole(dir, pointed, path));
  if (!path[0]) return G3_FAIL(st, "%s", why);
  G3_WARN("%s/latest names step %" PRId64 ", which is not whole (%s); going on from %s", dir,
          pointed, why, path);
  return G3_OK;
}

/* A checkpoint of its own whose index is gone must not look like a folder without any. */
static g3_status check_index_is_there(const char *dir) {
  char path[G3_CKPT_PATH];
  G3_TRY(g3_ckpt_path(path, "%s/shard-00000.h5", dir));
  if (!g3_ckpt_is(path, false)) return G3_OK;
  return G3_FAIL(G3_EFORMAT, "%s is not whole: it has shards, but no index.h5", dir);
}

g3_status g3_ckpt_latest(const char *dir, char *out, size_t size) {
  char path[G3_CKPT_PATH];
  G3_TRY(g3_ckpt_path(path, "%s/index.h5", dir));
  if (g3_ckpt_is(path, false)) {
    G3_TRY(g3_ckpt_path(path, "%s", dir));
  } else {
    G3_TRY(g3_ckpt_path(path, "%s/checkpoints", dir));
    if (g3_ckpt_is(path, true)) {
      char inner[G3_CKPT_PATH];
      memcpy(inner, path, sizeof inner);
      G3_TRY(find_in(inner, path));
    } else {
      G3_TRY(check_index_is_there(dir));
      G3_TRY(find_in(dir, path));
    }
  }
  if (strlen(path) >= size)
    return G3_FAIL(G3_EINVAL, "the path %s does not fit into %zu bytes", path, size);
  memcpy(out, path, strlen(path) + 1);
  return G3_OK;
}
