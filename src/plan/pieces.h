/* Which pieces of which tensors a rank writes into a checkpoint. */
#ifndef G3_PLAN_PIECES_H
#define G3_PLAN_PIECES_H
#include "plan/rank.h"

/* Local. Every element of every tensor is given by exactly one rank: replicas over dp are shared
 * out as ZeRO cuts them, what is whole on tp comes from tp rank 0, the tied embedding from the
 * first stage. The caller frees *out with free(). */
G3_MUST_USE g3_status g3_pieces_to_save(const g3_rank *r, g3_ckpt_item **out, int *n);

#endif
