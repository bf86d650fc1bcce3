#include "ckpt/shard.h"
#include "util/array.h"
#include <stdlib.h>
#include <string.h>

typedef struct {
  const g3_ckpt_entry *entry;
  const g3_ckpt_piece *piece;
} visit;

static int by_place(const void *a, const void *b) {
  return g3_ckpt_by_shard(((const visit *)a)->piece, ((const visit *)b)->piece);
}

/* Reads all, so that one call tells the whole damage. */
static g3_status verify_all(g3_ckpt_reader *r, const visit *v, int64_t n, g3_tensor stage,
                            int64_t *bytes) {
  g3_status first = G3_OK;
  char why[1024] = "";
  int64_t bad = 0, good_bytes = 0;
  for (int64_t i = 0; i < n; i++) {
    g3_tensor data;
    const g3_status st = g3_ckpt_reader_read(r, v[i].entry, v[i].piece, stage, &data);
    if (st == G3_OK) {
      good_bytes += (int64_t)g3_tensor_bytes(data);
    } else if (bad++ == 0) {
      first = st;
      snprintf(why, sizeof why, "%s", g3_last_error());
    }
  }
  *bytes = good_bytes;
  if (bad > 1)
    return G3_FAIL(first, "%s (and %lld more of %lld pieces)", why, (long long)bad - 1,
                   (long long)n);
  return first;
}

g3_status g3_ckpt_verify(const g3_ckpt_index *ix, g3_tensor stage, int64_t *bytes) {
  int64_t n = 0;
  for (int e = 0; e < ix->nentries; e++)
    n += ix->entry[e].npieces;
  visit *v = NULL;
  G3_TRY(G3_NEW_ARRAY(n, &v));
  int64_t k = 0;
  for (int e = 0; e < ix->nentries; e++)
    for (int p = 0; p < ix->entry[e].npieces; p++)
      v[k++] = (visit){&ix->entry[e], &ix->entry[e].piece[p]};
  qsort(v, (size_t)n, sizeof *v, by_place);
  g3_ckpt_reader r = g3_ckpt_reader_of(ix);
  const g3_status st = verify_all(&r, v, n, stage, bytes);
  g3_ckpt_reader_close(&r);
  free(v);
  return st;
}
