/* Deferred work: order, events, a full queue, and failures. */
#include "device/device.h"
#include "unit/util/cm.h"
#include "util/array.h"
#include <stdlib.h>
#include <string.h>

enum { MOST = 100 };

/* Works note the order in which they were waited for. */
typedef struct {
  int done[MOST], ndone, fails; /* `fails`: this work's wait reports an error; -1 none */
} journal;
typedef struct {
  journal *j;
  int number;
} work;

static g3_status work_wait(void *ctx) {
  const work *w = ctx;
  w->j->done[w->j->ndone++] = w->number;
  return w->number == w->j->fails ? G3_FAIL(G3_EPEER, "work %d failed", w->number) : G3_OK;
}

static bool work_test(void *ctx) {
  (void)ctx;
  return false;
}

typedef struct {
  g3_device *dev;
  const g3_device_ops *ops;
  g3_stream *main, *side;
  journal j;
  work works[MOST];
} fixture;

static int setup(void **state) {
  fixture *f = calloc(1, sizeof *f);
  if (!f || g3_device_open("cpu", 1, &f->dev) != G3_OK) return -1;
  f->ops = f->dev->ops;
  if (f->ops->stream_create(f->dev, false, g3_tensor_none(), &f->main) != G3_OK) return -1;
  if (f->ops->stream_create(f->dev, true, g3_tensor_none(), &f->side) != G3_OK) return -1;
  f->j.fails = -1;
  for (int i = 0; i < MOST; i++)
    f->works[i] = (work){&f->j, i};
  *state = f;
  return 0;
}

static int teardown(void **state) {
  fixture *f = *state;
  f->ops->stream_destroy(f->main);
  f->ops->stream_destroy(f->side);
  g3_device_close(f->dev);
  free(f);
  return 0;
}

static void defer(fixture *f, g3_stream *s, int i) {
  assert_int_equal(g3_stream_defer(s, (g3_deferred){work_wait, work_test, &f->works[i]}), G3_OK);
}

static void test_sides(void **state) {
  const fixture *f = *state;
  assert_false(f->main->side);
  assert_true(f->side->side);
  assert_ptr_equal(f->main->dev, f->dev);
}

static void test_sync_completes_in_order(void **state) {
  fixture *f = *state;
  for (int i = 0; i < 5; i++)
    defer(f, f->side, i);
  assert_int_equal(f->j.ndone, 0);
  assert_int_equal(f->ops->sync(f->main), G3_OK); /* another stream's work is no concern of it */
  assert_int_equal(f->j.ndone, 0);
  assert_int_equal(f->ops->sync(f->side), G3_OK);
  assert_int_equal(f->j.ndone, 5);
  for (int i = 0; i < 5; i++)
    assert_int_equal(f->j.done[i], i);
  assert_int_equal(f->side->npending, 0);
  assert_int_equal(f->ops->sync(f->side), G3_OK);
  assert_int_equal(f->j.ndone, 5);
}

/* An op on the stream must not run before what was deferred on it. */
static void test_op_drains(void **state) {
  fixture *f = *state;
  float x[4] = {1, 2, 3, 4}, y[4] = {0};
  defer(f, f->main, 0);
  defer(f, f->side, 1);
  assert_int_equal(f->ops->copy(f->main, g3_tensor_1d(y, G3_F32, 4), g3_tensor_1d(x, G3_F32, 4)),
                   G3_OK);
  assert_int_equal(f->j.ndone, 1);
  assert_int_equal(f->j.done[0], 0);
  assert_memory_equal(x, y, sizeof x);
}

static void test_event_waits_for_what_was_before_it(void **state) {
  fixture *f = *state;
  g3_event *early, *late;
  assert_int_equal(f->ops->event_create(f->dev, &early), G3_OK);
  assert_int_equal(f->ops->event_create(f->dev, &late), G3_OK);
  assert_int_equal(f->ops->wait(f->main, early), G3_OK); /* never recorded: nothing to wait for */
  defer(f, f->side, 0);
  defer(f, f->side, 1);
  assert_int_equal(f->ops->record(f->side, early), G3_OK);
  defer(f, f->side, 2);
  assert_int_equal(f->ops->record(f->side, late), G3_OK);
  defer(f, f->side, 3);
  assert_int_equal(f->ops->wait(f->main, early), G3_OK);
  assert_int_equal(f->j.ndone, 2);
  assert_int_equal(f->ops->wait(f->main, late), G3_OK);
  assert_int_equal(f->j.ndone, 3);
  assert_int_equal(f->ops->wait(f->main, early), G3_OK); /* long past */
  assert_int_equal(f->j.ndone, 3);
  assert_int_equal(f->side->npending, 1);
  defer(f, f->side, 4);
  assert_int_equal(f->ops->record(f->side, early), G3_OK); /* recorded anew */
  assert_int_equal(f->ops->wait(f->main, early), G3_OK);
  assert_int_equal(f->j.ndone, 5);
  f->ops->event_destroy(early);
  f->ops->event_destroy(late);
}

/* A side stream that waits for compute before each transfer keeps the earlier ones under way. */
static void test_wait_leaves_own_work_pending(void **state) {
  fixture *f = *state;
  g3_event *computed;
  assert_int_equal(f->ops->event_create(f->dev, &computed), G3_OK);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(f->ops->record(f->main, computed), G3_OK);
    assert_int_equal(f->ops->wait(f->side, computed), G3_OK);
    defer(f, f->side, i);
  }
  assert_int_equal(f->j.ndone, 0);
  assert_int_equal(f->side->npending, 3);
  f->ops->event_destroy(computed);
}

static void test_full_queue_waits_for_the_oldest(void **state) {
  fixture *f = *state;
  for (int i = 0; i < G3_STREAM_PENDING + 2; i++)
    defer(f, f->side, i);
  assert_int_equal(f->j.ndone, 2);
  assert_int_equal(f->j.done[0], 0);
  assert_int_equal(f->j.done[1], 1);
  assert_int_equal(f->side->npending, G3_STREAM_PENDING);
  assert_int_equal(f->ops->sync(f->side), G3_OK);
  assert_int_equal(f->j.ndone, G3_STREAM_PENDING + 2);
}

static void test_failure_is_passed_up_once(void **state) {
  fixture *f = *state;
  float x[4] = {1, 2, 3, 4}, y[4] = {0};
  f->j.fails = 1;
  for (int i = 0; i < 4; i++)
    defer(f, f->main, i);
  assert_int_equal(f->ops->copy(f->main, g3_tensor_1d(y, G3_F32, 4), g3_tensor_1d(x, G3_F32, 4)),
                   G3_EPEER);
  assert_string_equal(g3_last_error(), "work 1 failed");
  assert_true(y[0] == 0); /* the op did not run */
  assert_int_equal(f->main->npending, 2);
  assert_int_equal(f->ops->sync(f->main), G3_OK);
  assert_int_equal(f->j.ndone, 4);
}

/* Buffers may go after a stream does, so that it must not leave transfers under way. */
static void test_destroy_completes(void **state) {
  fixture *f = *state;
  g3_stream *s;
  assert_int_equal(f->ops->stream_create(f->dev, true, g3_tensor_none(), &s), G3_OK);
  f->j.fails = 0;
  defer(f, s, 0);
  defer(f, s, 1);
  f->ops->stream_destroy(s);
  assert_int_equal(f->j.ndone, 2);
}

int main(void) {
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
  const struct CMUnitTest tests[] = {
      CASE(test_sides),
      CASE(test_sync_completes_in_order),
      CASE(test_op_drains),
      CASE(test_event_waits_for_what_was_before_it),
      CASE(test_wait_leaves_own_work_pending),
      CASE(test_full_queue_waits_for_the_oldest),
      CASE(test_failure_is_passed_up_once),
      CASE(test_destroy_completes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
