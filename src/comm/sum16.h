/* Sums of bf16 over ranks: added in f32 in the order of ranks and rounded once. What other ranks
 * hold arrives in scratch. Each rank sums one range for all, or, where a second message costs more
 * than the additions, everything for itself. */
#ifndef G3_COMM_SUM16_H
#define G3_COMM_SUM16_H
#include "comm/comm.h"
#include "util/half.h"

enum {
  G3_SUM16_CHUNK = 1 << 20, /* elements that are summed at a time: bounds the scratch */
  G3_SUM16_DIRECT = 4096 /* so many, or two ranks, and each sums everything for itself */
};

/* How `count` elements, at most a chunk, are summed over `size` ranks: elements that each rank
 * sums. Pure. */
int64_t g3_sum16_range(int64_t count, int size);

/* dst[i] = reduction over ranks r < size of rank r's element i, for i < n. `me` has its elements at
 * own, the others theirs at parts, parts + step, ... in the order of ranks; dst may be own. Local.
 */
void g3_sum16_fold(g3_bf16 *dst, int64_t n, const g3_bf16 *parts, int64_t step, const g3_bf16 *own,
                   int me, int size, g3_redop op);

#endif
