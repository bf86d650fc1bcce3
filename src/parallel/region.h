/* The operators of tensor parallelism (Shoeybi et al., Megatron-LM, 2019, section 3) and of
 * sequence parallelism (Korthikanti et al., 2022, section 4.2.2), in place. All: collective over
 * tp; enqueue on s; do nothing over one rank. */
#ifndef G3_PARALLEL_REGION_H
#define G3_PARALLEL_REGION_H
#include "comm/comm.h"

typedef struct {
  g3_comm *tp;
  bool sequence; /* hidden states between regions are cut along the flat token index, b * T + t */
} g3_region;

/* Into a part where each rank has a cut of the weights. Without sequence parallelism `whole` is
 * `part` and nothing moves; with it, whole [n, w] = all-gather of part [n / tp, w]. */
G3_MUST_USE g3_status g3_region_enter(const g3_region *r, g3_stream *s, g3_tensor whole,
                                      g3_tensor part);

/* Out of it, and the backward of enter: sums partial results; `whole` in place (then whole is
 * part), or part [n / tp, w] = reduce-scatter of whole [n, w]. The backward of leave is enter. */
G3_MUST_USE g3_status g3_region_leave(const g3_region *r, g3_stream *s, g3_tensor part,
                                      g3_tensor whole);

#endif
