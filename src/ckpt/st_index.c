/* model.safetensors.index.json: which shard holds which tensor. */
#include "ckpt/json_file.h"
#include "ckpt/st_header.h"
#include "util/array.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_SHARDS = 512 };

/* A plain name beside the index: nothing that leads elsewhere. */
static bool plain_name(const char *name) {
  static const char end[] = ".safetensors";
  const size_t n = strlen(name), m = sizeof end - 1;
  if (n <= m || n > 200 || name[0] == '.' || strcmp(name + n - m, end) != 0) return false;
  for (size_t i = 0; i < n; i++)
    if (name[i] == '/' || name[i] == '\\' || name[i] <= ' ' || name[i] > '~') return false;
  return true;
}

/* The shard's number among the set's, or nfiles when it is not open yet. */
static int shard_of(const g3_safetensors *set, const char *path) {
  int i = 0;
  while (i < set->nfiles && strcmp(set->file[i].path, path) != 0)
    i++;
  return i;
}

/* The shard that one entry names, opened when it was not. */
static g3_status open_shard(const char *dir, const char *path, const cJSON *entry,
                            g3_safetensors *set, int *shard) {
  char file[G3_CKPT_PATH];
  if (!cJSON_IsString(entry) || !plain_name(entry->valuestring))
    return G3_FAIL(G3_EFORMAT,
                   "%s: the shard of \"%.80s\" is not the plain name of a .safetensors file beside "
                   "the index",
                   path, entry->string);
  G3_TRY(g3_ckpt_path(file, "%s/%s", dir, entry->valuestring));
  *shard = shard_of(set, file);
  if (*shard < set->nfiles) return G3_OK;
  if (set->nfiles == MOST_SHARDS)
    return G3_FAIL(G3_EFORMAT, "%s names more than %d shards", path, (int)MOST_SHARDS);
  return g3_st_file_open(file, set);
}

/* What the index says of a tensor. */
typedef struct {
  const char *name;
  int shard;
} said;

static int by_said_name(const void *a, const void *b) {
  return strcmp(((const said *)a)->name, ((const said *)b)->name);
}

/* Both lists in order of names: they must be the same. */
static g3_status compare(const char *path, const said *want, int n, const g3_safetensors *set) {
  for (int i = 0; i < n || i < set->ntensors; i++) {
    const g3_st_tensor *t = i < set->ntensors ? &set->tensor[i] : NULL;
    const int order = !t ? -1 : i == n ? 1 : strcmp(want[i].name, t->name);
    if (order < 0)
      return G3_FAIL(G3_EFORMAT, "%s names \"%.80s\", which its shard does not hold", path,
                     want[i].name);
    if (order > 0)
      return G3_FAIL(G3_EFORMAT, "%s holds %s, which %s does not name (or it is there twice)",
                     g3_safetensors_path(set, t), t->name, path);
    if (want[i].shard != t->file)
      return G3_FAIL(G3_EFORMAT, "%s: %s is not in %s, but in %s", path, t->name,
                     set->file[want[i].shard].path, g3_safetensors_path(set, t));
  }
  return G3_OK;
}

static g3_status take_map(const char *dir, const char *path, const cJSON *map, said *want,
                          g3_safetensors *set) {
  int n = 0;
  for (const cJSON *m = map->child; m; m = m->next) {
    want[n].name = m->string;
    G3_TRY(open_shard(dir, path, m, set, &want[n++].shard));
  }
  qsort(want, (size_t)n, sizeof *want, by_said_name);
  qsort(set->tensor, (size_t)set->ntensors, sizeof *set->tensor, g3_st_by_name);
  for (int i = 1; i < n; i++)
    if (strcmp(want[i - 1].name, want[i].name) == 0)
      return G3_FAIL(G3_EFORMAT, "%s: \"%.80s\" is there twice", path, want[i].name);
  return compare(path, want, n, set);
}

g3_status g3_st_index_open(const char *dir, const char *path, g3_safetensors *set) {
  cJSON *index;
  said *want = NULL;
  g3_status st;
  G3_TRY(g3_json_read(path, &index));
  const cJSON *map = cJSON_GetObjectItemCaseSensitive(index, "weight_map");
  if (!cJSON_IsObject(map) || !map->child) {
    st = G3_FAIL(G3_EFORMAT, "%s has no weight_map from tensors to shards", path);
    goto done;
  }
  G3_TRY_TO(done, st, G3_NEW_ARRAY(MOST_SHARDS, &set->file));
  G3_TRY_TO(done, st, G3_NEW_ARRAY(cJSON_GetArraySize(map), &want));
  G3_TRY_TO(done, st, take_map(dir, path, map, want, set));
done:
  free(want);
  cJSON_Delete(index);
  return st;
}
