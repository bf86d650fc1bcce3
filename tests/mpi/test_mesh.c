/* ranks: 8 */
/* The communicators of a 2 x 2 x 2 mesh: their members, by hand. */
#include "mpi/ranks.h"
#include "parallel/mesh.h"

enum { RANKS = 8, TP = 1 << G3_TP, CP = 1 << G3_CP, DP = 1 << G3_DP, PP = 1 << G3_PP };

/* World ranks of the members of c, in the order of their ranks there. Freed by the caller. */
static int *members(g3_comm *world, g3_comm *c) {
  int *all = NULL;
  size_t *sizes = NULL;
  EXPECT_OK(c->ops->host_gather(c, &world->rank, sizeof world->rank, 0, (void **)&all, &sizes));
  if (c->rank != 0) all = malloc((size_t)c->size * sizeof *all);
  EXPECT(all != NULL);
  EXPECT_OK(c->ops->host_broadcast(c, all, (size_t)c->size * sizeof *all, 0));
  free(sizes);
  return all;
}

static void expect_members(g3_comm *world, g3_comm *c, const char *name, int n, const int *want) {
  EXPECT_EQUAL(c->size, n);
  EXPECT(strcmp(c->name, name) == 0);
  int *found = members(world, c);
  for (int i = 0; i < n; i++)
    EXPECT_EQUAL(found[i], want[i]);
  EXPECT_EQUAL(found[c->rank], world->rank);
  free(found);
}

/* For rank r of tp 2 x dp 2 x pp 2: r = tp + 2 dp + 4 pp. */
static const struct {
  int tp[2], dp[2], pp[2], dp_pp[4], tp_pp[4];
} table[RANKS] = {
    {{0, 1}, {0, 2}, {0, 4}, {0, 2, 4, 6}, {0, 1, 4, 5}},
    {{0, 1}, {1, 3}, {1, 5}, {1, 3, 5, 7}, {0, 1, 4, 5}},
    {{2, 3}, {0, 2}, {2, 6}, {0, 2, 4, 6}, {2, 3, 6, 7}},
    {{2, 3}, {1, 3}, {3, 7}, {1, 3, 5, 7}, {2, 3, 6, 7}},
    {{4, 5}, {4, 6}, {0, 4}, {0, 2, 4, 6}, {0, 1, 4, 5}},
    {{4, 5}, {5, 7}, {1, 5}, {1, 3, 5, 7}, {0, 1, 4, 5}},
    {{6, 7}, {4, 6}, {2, 6}, {0, 2, 4, 6}, {2, 3, 6, 7}},
    {{6, 7}, {5, 7}, {3, 7}, {1, 3, 5, 7}, {2, 3, 6, 7}},
};

static void two_by_two_by_two(g3_comm *world, g3_device *dev) {
  (void)dev;
  g3_grid grid;
  g3_mesh *m;
  const int r = world->rank;
  EXPECT_OK(g3_grid_make(2, 2, 0, RANKS, &grid));
  EXPECT_OK(g3_mesh_create(world, grid, &m));
  EXPECT_EQUAL(m->me.at[G3_TP], r & 1);
  EXPECT_EQUAL(m->me.at[G3_DP], r >> 1 & 1);
  EXPECT_EQUAL(m->me.at[G3_PP], r >> 2);
  expect_members(world, g3_mesh_over(m, TP), "tp", 2, table[r].tp);
  expect_members(world, g3_mesh_over(m, DP), "dp", 2, table[r].dp);
  expect_members(world, g3_mesh_over(m, PP), "pp", 2, table[r].pp);
  expect_members(world, g3_mesh_over(m, DP | PP), "dp x pp", 4, table[r].dp_pp);
  expect_members(world, g3_mesh_over(m, TP | PP), "tp x pp", 4, table[r].tp_pp);
  expect_members(world, m->ends, "ends", 2, table[r].pp);
  EXPECT(g3_mesh_over(m, TP | CP | DP | PP) == world);
  EXPECT(g3_mesh_over(m, CP | DP) == g3_mesh_over(m, DP));
  g3_mesh_destroy(m);
}

static void four_stages_have_two_ends(g3_comm *world, g3_device *dev) {
  (void)dev;
  g3_grid grid;
  g3_mesh *m;
  const int r = world->rank;
  EXPECT_OK(g3_grid_make(2, 4, 1, RANKS, &grid));
  EXPECT_OK(g3_mesh_create(world, grid, &m));
  EXPECT((m->ends != NULL) == (r < 2 || r >= 6));
  if (m->ends) expect_members(world, m->ends, "ends", 2, (const int[]){r % 2, r % 2 + 6});
  expect_members(world, g3_mesh_over(m, PP), "pp", 4,
                 (const int[]){r % 2, r % 2 + 2, r % 2 + 4, r % 2 + 6});
  EXPECT_EQUAL(g3_mesh_over(m, DP)->size, 1);
  g3_mesh_destroy(m);
}

static void one_stage_has_no_ends(g3_comm *world, g3_device *dev) {
  (void)dev;
  g3_grid grid;
  g3_mesh *m;
  EXPECT_OK(g3_grid_make(4, 1, 0, RANKS, &grid));
  EXPECT_OK(g3_mesh_create(world, grid, &m));
  EXPECT(m->ends == NULL);
  EXPECT_EQUAL(g3_mesh_over(m, TP)->rank, world->rank % 4);
  EXPECT_EQUAL(g3_mesh_over(m, DP)->rank, world->rank / 4);
  EXPECT_EQUAL(g3_mesh_over(m, PP)->size, 1);
  g3_mesh_destroy(m);
}

int main(void) {
  static const ranks_test tests[] = {
      {"two_by_two_by_two", two_by_two_by_two},
      {"four_stages_have_two_ends", four_stages_have_two_ends},
      {"one_stage_has_no_ends", one_stage_has_no_ends},
  };
  return ranks_main(RANKS, tests, sizeof tests / sizeof *tests);
}
