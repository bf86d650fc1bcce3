#include "parallel/mesh.h"
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
/* after those, which it needs */
#include <cmocka.h>

/* Megatron's default order for tp 2, pp 2, dp 3 on 12 ranks, written out by hand: neighbours in tp
 * are consecutive ranks, then data-parallel copies, and pipeline stages lie farthest apart. */
static const struct {
  int rank, tp, dp, pp;
} table[] = {
    {0, 0, 0, 0}, {1, 1, 0, 0}, {2, 0, 1, 0}, {3, 1, 1, 0}, {4, 0, 2, 0},  {5, 1, 2, 0},
    {6, 0, 0, 1}, {7, 1, 0, 1}, {8, 0, 1, 1}, {9, 1, 1, 1}, {10, 0, 2, 1}, {11, 1, 2, 1},
};

static void ranks_are_in_megatron_order(void **unused) {
  (void)unused;
  g3_grid g;
  assert_int_equal(g3_grid_make(2, 2, 3, 12, &g), G3_OK);
  assert_int_equal(g3_grid_size(&g), 12);
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    const g3_coord c = g3_grid_coord(&g, table[i].rank);
    assert_int_equal(c.at[G3_TP], table[i].tp);
    assert_int_equal(c.at[G3_CP], 0);
    assert_int_equal(c.at[G3_DP], table[i].dp);
    assert_int_equal(c.at[G3_PP], table[i].pp);
    assert_int_equal(g3_grid_rank(&g, c), table[i].rank);
  }
}

static void context_parallel_ranks_lie_between_tp_and_dp(void **unused) {
  (void)unused;
  const g3_grid g = {.size = {2, 3, 4, 5}};
  for (int rank = 0; rank < 120; rank++) {
    const g3_coord c = g3_grid_coord(&g, rank);
    assert_int_equal(rank, c.at[G3_TP] + 2 * (c.at[G3_CP] + 3 * (c.at[G3_DP] + 4 * c.at[G3_PP])));
    assert_int_equal(g3_grid_rank(&g, c), rank);
  }
}

static void dp_is_what_is_left(void **unused) {
  (void)unused;
  g3_grid g;
  assert_int_equal(g3_grid_make(2, 2, 0, 16, &g), G3_OK);
  assert_int_equal(g.size[G3_DP], 4);
  assert_int_equal(g3_grid_make(1, 1, 0, 1, &g), G3_OK);
  assert_int_equal(g3_grid_size(&g), 1);
}

static void wrong_products_show_the_arithmetic(void **unused) {
  (void)unused;
  const struct {
    int tp, pp, dp, world;
    const char *says;
  } cases[] = {
      {2, 2, 3, 16, "tp 2 x pp 2 x dp 3 = 12 ranks, but this job has 16"},
      {2, 2, 3, 16, "mpirun -np 12"},
      {3, 2, 0, 16, "tp 3 x pp 2 = 6 ranks"},
      {0, 1, 1, 1, "at least 1"},
      {1, -1, 1, 1, "at least 1"},
      {1, 1, -1, 1, "at least 1"},
      {65536, 65536, 1, 16, "more ranks than"},
      {2147483647, 2147483647, 2147483647, 16, "more ranks than"},
      {2147483647, 2147483647, 0, 16, "does not divide"},
  };
  const g3_grid before = {.size = {7, 7, 7, 7}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    g3_grid g = before;
    assert_int_equal(g3_grid_make(cases[i].tp, cases[i].pp, cases[i].dp, cases[i].world, &g),
                     G3_EINVAL);
    if (!strstr(g3_last_error(), cases[i].says))
      fail_msg("\"%s\" does not say \"%s\"", g3_last_error(), cases[i].says);
    assert_memory_equal(&g, &before, sizeof g);
  }
}

static void one_rank_has_all_communicators(void **unused) {
  (void)unused;
  g3_comm *world;
  g3_mesh *m;
  g3_grid g;
  assert_int_equal(g3_comm_self(&world), G3_OK);
  assert_int_equal(g3_grid_make(1, 1, 1, 1, &g), G3_OK);
  assert_int_equal(g3_mesh_create(world, g, &m), G3_OK);
  const unsigned tp = 1u << G3_TP, cp = 1u << G3_CP, dp = 1u << G3_DP, pp = 1u << G3_PP;
  assert_ptr_equal(g3_mesh_over(m, tp | cp | dp | pp), world);
  const unsigned sets[] = {tp, dp, pp, dp | pp, tp | pp, dp | cp};
  for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
    assert_int_equal(g3_mesh_over(m, sets[i])->size, 1);
  assert_ptr_equal(g3_mesh_over(m, dp | cp), g3_mesh_over(m, dp));
  assert_string_equal(g3_mesh_over(m, tp)->name, "tp");
  assert_null(m->ends);
  g3_mesh_destroy(m);
  g3_mesh_destroy(NULL);
  g3_comm_destroy(world);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ranks_are_in_megatron_order),
      cmocka_unit_test(context_parallel_ranks_lie_between_tp_and_dp),
      cmocka_unit_test(dp_is_what_is_left),
      cmocka_unit_test(wrong_products_show_the_arithmetic),
      cmocka_unit_test(one_rank_has_all_communicators),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
