/* The grid of ranks: arithmetic usable without MPI, and the communicators over its axes. */
#ifndef G3_PARALLEL_MESH_H
#define G3_PARALLEL_MESH_H
#include "comm/comm.h"

/* Axis order, fastest first: rank = tp + TP * (cp + CP * (dp + DP * pp)), as Megatron orders it. cp
 * is 1 until context parallelism comes. */
typedef enum { G3_TP, G3_CP, G3_DP, G3_PP, G3_AXES } g3_axis;

/* Ranks along each axis. */
typedef struct {
  int size[G3_AXES];
} g3_grid;
/* One rank's place on each axis. */
typedef struct {
  int at[G3_AXES];
} g3_coord;

/* Pure. Ranks of a grid; a rank's place on it; the rank of a place. */
int g3_grid_size(const g3_grid *g);
g3_coord g3_grid_coord(const g3_grid *g, int rank);
int g3_grid_rank(const g3_grid *g, g3_coord c);

/* The grid for `world` ranks, `dp` = 0 meaning what is left. G3_EINVAL with the arithmetic shown
 * when the product is not world. Local. */
G3_MUST_USE g3_status g3_grid_make(int tp, int pp, int dp, int world, g3_grid *out);

typedef struct {
  g3_grid grid;
  g3_coord me;
  g3_comm *world; /* borrowed */
  g3_comm *over[1 << G3_AXES]; /* by set of axes (bits 1 << g3_axis): the ranks that differ from me
                                  on those only */
  g3_comm *ends; /* first and last stage of my pipeline; NULL on others and when pp is 1 */
} g3_mesh;

/* Collective over world. Makes, eagerly and in one order, the communicators over tp, dp, pp, dp x
 * pp, tp x pp and the ends. The whole set of axes is world itself. */
G3_MUST_USE g3_status g3_mesh_create(g3_comm *world, g3_grid grid, g3_mesh **out);
void g3_mesh_destroy(g3_mesh *m); /* NULL is fine */

/* The communicator over a set of axes that g3_mesh_create made; ends the job for another set. */
g3_comm *g3_mesh_over(const g3_mesh *m, unsigned axes);

#endif
