/* Sums over ranks in one order: along the binary tree of neighbours, ((0 + 1) + (2 + 3)) + ..., so
 * that ranks which hold parts of a longer row of terms, each summed along the same tree, give the
 * bits that one rank with all of the terms gives. (A library's own order is its own affair.) */
#ifndef G3_PARALLEL_TREE_H
#define G3_PARALLEL_TREE_H
#include "comm/comm.h"

/* All: collective over c, whose size is a power of two; t dense f32, its count a multiple of the
 * size; scratch f32 [count / 2] at least, none over one rank. Enqueue on s, where they also
 * compute; do nothing over one rank. */

/* Rank r's range of t, number r of `size` equal ones, becomes the sum of everyone's; the rest of t
 * is used up. By recursive halving (Thakur, Rabenseifner and Gropp, 2005, section 4.2), neighbours
 * first. */
G3_MUST_USE g3_status g3_tree_reduce_scatter(g3_comm *c, g3_stream *s, g3_tensor t,
                                             g3_tensor scratch);

/* All of t becomes the sum of everyone's. */
G3_MUST_USE g3_status g3_tree_all_reduce(g3_comm *c, g3_stream *s, g3_tensor t, g3_tensor scratch);

#endif
