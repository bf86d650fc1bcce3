#include "parallel/mesh.h"
#include "util/array.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

int g3_grid_size(const g3_grid *g) {
  int n = 1;
  for (int a = 0; a < G3_AXES; a++)
    n *= g->size[a];
  return n;
}

g3_coord g3_grid_coord(const g3_grid *g, int rank) {
  G3_CHECK(rank >= 0 && rank < g3_grid_size(g), "rank %d is outside a grid of %d", rank,
           g3_grid_size(g));
  g3_coord c;
  for (int a = 0; a < G3_AXES; a++) {
    c.at[a] = rank % g->size[a];
    rank /= g->size[a];
  }
  return c;
}

int g3_grid_rank(const g3_grid *g, g3_coord c) {
  int rank = 0;
  for (int a = G3_AXES - 1; a >= 0; a--) {
    G3_CHECK(c.at[a] >= 0 && c.at[a] < g->size[a], "coordinate %d of axis %d is outside %d",
             c.at[a], a, g->size[a]);
    rank = rank * g->size[a] + c.at[a];
  }
  return rank;
}

g3_status g3_grid_make(int tp, int pp, int dp, int world, g3_grid *out) {
  if (tp < 1 || pp < 1 || dp < 0 || world < 1)
    return G3_FAIL(G3_EINVAL,
                   "tp %d, pp %d and dp %d over %d ranks: tp and pp are at least 1, and dp is too "
                   "or is left out",
                   tp, pp, dp, world);
  const int64_t model = (int64_t)tp * pp; /* ranks that hold one copy of the model */
  if (dp == 0 && world % model != 0)
    return G3_FAIL(G3_EINVAL,
                   "tp %d x pp %d = %lld ranks hold one copy of the model, which does not divide "
                   "the %d ranks of this job: start a multiple of %lld, or choose another tp or pp",
                   tp, pp, (long long)model, world, (long long)model);
  if (dp == 0) dp = (int)(world / model);
  int64_t all;
  if (!g3_mul_ok(model, dp, &all) || all > INT_MAX)
    return G3_FAIL(G3_EINVAL, "tp %d x pp %d x dp %d is more ranks than MPI can number", tp, pp,
                   dp);
  if (all != world)
    return G3_FAIL(G3_EINVAL,
                   "tp %d x pp %d x dp %d = %lld ranks, but this job has %d: start %lld ranks "
                   "(mpirun -np %lld), or choose sizes whose product is %d",
                   tp, pp, dp, (long long)all, world, (long long)all, (long long)all, world);
  *out = (g3_grid){.size = {[G3_TP] = tp, [G3_CP] = 1, [G3_DP] = dp, [G3_PP] = pp}};
  return G3_OK;
}

enum { TP = 1 << G3_TP, CP = 1 << G3_CP, DP = 1 << G3_DP, PP = 1 << G3_PP };

static const struct {
  unsigned axes;
  const char *name;
} made[] = {{TP, "tp"}, {DP, "dp"}, {PP, "pp"}, {DP | PP, "dp x pp"}, {TP | PP, "tp x pp"}};

enum { MADE = sizeof made / sizeof *made, WHOLE = TP | DP | PP };

/* Ranks that agree in all other axes have one colour: the rank at the origin of these. */
static int color_of(const g3_grid *g, g3_coord me, unsigned axes) {
  for (int a = 0; a < G3_AXES; a++)
    if (axes >> a & 1u) me.at[a] = 0;
  return g3_grid_rank(g, me);
}

static g3_status make_comms(g3_mesh *m) {
  const g3_grid *g = &m->grid;
  const int me = m->world->rank, last = g->size[G3_PP] - 1, pp = m->me.at[G3_PP];
  m->over[WHOLE] = m->world;
  for (int i = 0; i < MADE; i++)
    G3_TRY(m->world->ops->split(m->world, color_of(g, m->me, made[i].axes), me, made[i].name,
                                &m->over[made[i].axes]));
  const bool at_end = last > 0 && (pp == 0 || pp == last);
  G3_TRY(
      m->world->ops->split(m->world, at_end ? color_of(g, m->me, PP) : -1, me, "ends", &m->ends));
  return G3_OK;
}

g3_status g3_mesh_create(g3_comm *world, g3_grid grid, g3_mesh **out) {
  G3_CHECK(g3_grid_size(&grid) == world->size && grid.size[G3_CP] == 1,
           "a grid of %d ranks (cp %d) over a world of %d", g3_grid_size(&grid), grid.size[G3_CP],
           world->size);
  g3_mesh *m = NULL;
  g3_status st = G3_NEW_ARRAY(1, &m);
  G3_TRY_TO(done, st, g3_comm_agree(world, st));
  m->grid = grid;
  m->me = g3_grid_coord(&grid, world->rank);
  m->world = world;
  G3_TRY_TO(done, st, g3_comm_agree(world, make_comms(m)));
  *out = m;
  m = NULL;
done:
  g3_mesh_destroy(m);
  return st;
}

void g3_mesh_destroy(g3_mesh *m) {
  if (!m) return;
  g3_comm_destroy(m->ends);
  for (int i = MADE - 1; i >= 0; i--)
    g3_comm_destroy(m->over[made[i].axes]);
  free(m);
}

g3_comm *g3_mesh_over(const g3_mesh *m, unsigned axes) {
  const unsigned wanted = axes & ~(unsigned)CP; /* cp has one rank: it changes no set */
  g3_comm *c = wanted <= WHOLE + 0u ? m->over[wanted] : NULL;
  G3_CHECK(c != NULL, "no communicator over the set of axes 0x%x was made", axes);
  return c;
}
