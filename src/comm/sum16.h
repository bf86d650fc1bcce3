/* Sums of bf16 over ranks: added in f32 in the order of ranks and rounded once. Each rank sums one
 * range; what the others hold of it arrives in scratch. */
#ifndef G3_COMM_SUM16_H
#define G3_COMM_SUM16_H
#include "comm/comm.h"
#include "util/half.h"

/* Elements that are summed at a time: bounds the scratch and keeps it in cache. */
enum { G3_SUM16_CHUNK = 1 << 20 };

/* dst[i] = reduction over ranks r < size of rank r's element i, for i < n. Rank r's elements begin
 * at parts + r * step, but `me`'s at own; dst may be own. Local. */
void g3_sum16_fold(g3_bf16 *dst, int64_t n, const g3_bf16 *parts, int64_t step, const g3_bf16 *own,
                   int me, int size, g3_redop op);

#endif
