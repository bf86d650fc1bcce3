#include "comm/comm.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
/* after those, which it needs */
#include <cmocka.h>

typedef struct {
  g3_device *dev;
  g3_stream *s;
  g3_comm *c;
} bench;

static int setup(void **state) {
  static bench b;
  assert_int_equal(g3_device_open("cpu", 1, &b.dev), G3_OK);
  assert_int_equal(b.dev->ops->stream_create(b.dev, false, g3_tensor_none(), &b.s), G3_OK);
  assert_int_equal(g3_comm_self(&b.c), G3_OK);
  *state = &b;
  return 0;
}

static int teardown(void **state) {
  bench *b = *state;
  g3_comm_destroy(b->c);
  b->dev->ops->stream_destroy(b->s);
  g3_device_close(b->dev);
  return 0;
}

static void collectives_of_one_rank_copy(void **state) {
  bench *b = *state;
  const g3_comm_ops *ops = b->c->ops;
  float a[] = {1, 2, 3}, z[] = {0, 0, 0};
  const g3_tensor ta = g3_tensor_1d(a, G3_F32, 3), tz = g3_tensor_1d(z, G3_F32, 3);
  assert_int_equal(ops->all_reduce(b->c, b->s, ta, G3_SUM), G3_OK);
  assert_int_equal(ops->broadcast(b->c, b->s, ta, 0), G3_OK);
  assert_int_equal(ops->reduce_scatter(b->c, b->s, ta, ta), G3_OK);
  assert_true(a[0] == 1 && a[1] == 2 && a[2] == 3);
  assert_int_equal(ops->reduce_scatter(b->c, b->s, tz, ta), G3_OK);
  assert_int_equal(b->dev->ops->sync(b->s), G3_OK);
  assert_memory_equal(z, a, sizeof a);
  memset(z, 0, sizeof z);
  assert_int_equal(ops->all_gather(b->c, b->s, tz, ta), G3_OK);
  assert_int_equal(b->dev->ops->sync(b->s), G3_OK);
  assert_memory_equal(z, a, sizeof a);
}

static void exchange_with_itself_matches_by_order(void **state) {
  bench *b = *state;
  int32_t from[2] = {7, 8}, to[2] = {0, 0};
  const g3_xfer x[] = {
      {.dir = G3_RECV, .peer = 0, .t = g3_tensor_1d(&to[0], G3_I32, 1)},
      {.dir = G3_SEND, .peer = 0, .t = g3_tensor_1d(&from[0], G3_I32, 1)},
      {.dir = G3_SEND, .peer = 0, .t = g3_tensor_1d(&from[1], G3_I32, 1)},
      {.dir = G3_RECV, .peer = 0, .t = g3_tensor_1d(&to[1], G3_I32, 1)},
  };
  assert_int_equal(b->c->ops->exchange(b->c, b->s, x, 4), G3_OK);
  assert_int_equal(b->dev->ops->sync(b->s), G3_OK);
  assert_memory_equal(to, from, sizeof from);
  assert_int_equal(b->c->ops->exchange(b->c, b->s, NULL, 0), G3_OK);
}

static void host_side_of_one_rank(void **state) {
  bench *b = *state;
  const g3_comm_ops *ops = b->c->ops;
  int64_t v[] = {5, -3};
  char text[] = "same", *all;
  size_t *sizes;
  int rank = 7, size = 7;
  assert_int_equal(ops->host_all_reduce(b->c, v, 2, G3_MAX), G3_OK);
  assert_int_equal(ops->host_broadcast(b->c, text, sizeof text, 0), G3_OK);
  assert_int_equal(ops->barrier(b->c), G3_OK);
  assert_true(v[0] == 5 && v[1] == -3 && !strcmp(text, "same"));
  assert_int_equal(ops->host_gather(b->c, text, sizeof text, 0, (void **)&all, &sizes), G3_OK);
  assert_int_equal(sizes[0], sizeof text);
  assert_string_equal(all, text);
  free(all), free(sizes);
  assert_int_equal(g3_comm_node(b->c, &rank, &size), G3_OK);
  assert_true(rank == 0 && size == 1);
}

static void split_inherits_scratch_and_may_exclude(void **state) {
  bench *b = *state;
  char scratch[16];
  g3_comm *part = NULL, *none = b->c;
  b->c->scratch = g3_tensor_1d(scratch, G3_U8, sizeof scratch);
  assert_int_equal(b->c->ops->split(b->c, 3, 0, "tp", &part), G3_OK);
  assert_true(part->rank == 0 && part->size == 1 && part->scratch.data == scratch);
  assert_string_equal(part->name, "tp");
  assert_int_equal(b->c->ops->split(b->c, -1, 0, "none", &none), G3_OK);
  assert_null(none);
  g3_comm_destroy(part);
  g3_comm_destroy(none);
  b->c->scratch = g3_tensor_none();
}

static void agreement_of_one_rank_is_its_own(void **state) {
  bench *b = *state;
  assert_int_equal(g3_comm_agree(b->c, G3_OK), G3_OK);
  assert_int_equal(g3_comm_agree(b->c, G3_FAIL(G3_EIO, "mine")), G3_EIO);
  assert_string_equal(g3_last_error(), "mine");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(collectives_of_one_rank_copy),
      cmocka_unit_test(exchange_with_itself_matches_by_order),
      cmocka_unit_test(host_side_of_one_rank),
      cmocka_unit_test(split_inherits_scratch_and_may_exclude),
      cmocka_unit_test(agreement_of_one_rank_is_its_own),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
