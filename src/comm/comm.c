#include "comm/comm.h"
#include "comm/sum16.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void g3_comm_destroy(g3_comm *c) {
  if (c) c->ops->destroy(c);
}

size_t g3_comm_scratch_bytes(int64_t count, int size) {
  if (size == 1 || count <= 0) return 0;
  const int64_t chunk = count < G3_SUM16_CHUNK ? count : G3_SUM16_CHUNK;
  const int64_t direct = chunk < G3_SUM16_DIRECT ? chunk : G3_SUM16_DIRECT;
  const int64_t range = g3_sum16_range(chunk, size);
  return (size_t)((size - 1) * (range > direct ? range : direct)) * sizeof(g3_bf16);
}

/* What the failing rank tells the others. */
typedef struct {
  int32_t status;
  char text[2048];
} verdict;

g3_status g3_comm_agree(g3_comm *c, g3_status mine) {
  if (c->size == 1) return mine;
  /* Maxima: which rank failed first (counted from the end), the largest and the smallest status. */
  int64_t v[] = {mine == G3_OK ? 0 : c->size - c->rank, (int64_t)mine, -(int64_t)mine};
  G3_TRY(c->ops->host_all_reduce(c, v, 3, G3_MAX));
  if (v[0] == 0) return G3_OK;
  const int first = c->size - (int)v[0];
  const bool alike = v[1] == -v[2];
  verdict said;
  memset(&said, 0, sizeof said);
  if (c->rank == first) {
    said.status = (int32_t)mine;
    snprintf(said.text, sizeof said.text, "%s", g3_last_error());
  }
  G3_TRY(c->ops->host_broadcast(c, &said, sizeof said, first));
  if (alike) return G3_FAIL((g3_status)said.status, "%s", said.text);
  return G3_FAIL((g3_status)said.status, "rank %d: %s", first, said.text);
}

g3_status g3_comm_node(g3_comm *c, int *local_rank, int *local_size) {
  G3_TRY(c->ops->node(c, local_rank, local_size));
  return G3_OK;
}
