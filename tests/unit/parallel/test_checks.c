/* Mistakes of a program end the job: here the hook that would end it comes back instead. */
#include "parallel/flat.h"
#include "parallel/mesh.h"
#include "parallel/region.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
/* after those, which it needs */
#include <cmocka.h>

static jmp_buf back;

static void come_back(int code) {
  longjmp(back, code);
}

typedef void mistake(g3_comm *world);

static void set_of_axes_that_was_not_made(g3_comm *world) {
  static g3_mesh m; /* of a larger job: nothing but the world is asked */
  m.world = world;
  (void)g3_mesh_over(&m, 1u << G3_TP | 1u << G3_DP);
}

static void axes_that_do_not_exist(g3_comm *world) {
  static g3_mesh m;
  m.world = world;
  (void)g3_mesh_over(&m, 1u << 10);
}

static void grid_of_another_size(g3_comm *world) {
  g3_mesh *m;
  (void)!g3_mesh_create(world, (g3_grid){.size = {2, 1, 1, 1}}, &m);
}

static void rank_outside_the_grid(g3_comm *world) {
  (void)world;
  const g3_grid g = {.size = {2, 1, 2, 1}};
  (void)g3_grid_coord(&g, 4);
}

static void region_with_two_buffers(g3_comm *world) {
  float a[2] = {0}, b[2] = {0};
  const g3_region r = {.tp = world, .sequence = true};
  (void)!g3_region_enter(&r, NULL, g3_tensor_1d(a, G3_F32, 2), g3_tensor_1d(b, G3_F32, 2));
}

static void range_beyond_the_slice(g3_comm *world) {
  (void)world;
  g3_slice out[G3_SLICES_OF_RANGE];
  const g3_slice s = g3_slice_whole(1, (const int64_t[]){10});
  (void)g3_slice_range(&s, 5, 6, out);
}

static void meeting_of_different_tensors(g3_comm *world) {
  (void)world;
  const g3_slice a = g3_slice_whole(1, (const int64_t[]){10});
  const g3_slice b = g3_slice_whole(1, (const int64_t[]){11});
  g3_slice out;
  (void)g3_slice_meet(&a, &b, &out);
}

static void shards_for_another_dp(g3_comm *world) {
  (void)world;
  static g3_flat f = {.dp = 4};
  (void)g3_flat_shard_count(&f, 3);
}

static void parameter_larger_than_its_room(g3_comm *world) {
  (void)world;
  const g3_param p = {.slice = g3_slice_whole(1, (const int64_t[]){10}), .count = 9};
  g3_flat *f;
  (void)!g3_flat_create(&p, 1, 1, 1, &f);
}

static mistake *const mistakes[] = {
    set_of_axes_that_was_not_made, axes_that_do_not_exist,  grid_of_another_size,
    rank_outside_the_grid,         region_with_two_buffers, range_beyond_the_slice,
    meeting_of_different_tensors,  shards_for_another_dp,   parameter_larger_than_its_room,
};

static void mistakes_end_the_job(void **unused) {
  (void)unused;
  g3_comm *world;
  assert_int_equal(g3_comm_self(&world), G3_OK);
  g3_set_fatal_hook(come_back);
  for (volatile size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
    if (setjmp(back) != 0) continue;
    mistakes[i](world);
    fail_msg("mistake %zu went unnoticed", i);
  }
  g3_set_fatal_hook(NULL);
  g3_comm_destroy(world);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(mistakes_end_the_job),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
