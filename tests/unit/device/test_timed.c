/* A timed device: the same results, calls and work counted, waiting for transfers counted where it
 * belongs. */
#include "device/timed.h"
#include "unit/util/cm.h"
#include "util/clock.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
  g3_device *dev;
  g3_stream *main, *side;
  g3_timed *timed;
} fixture;

static int setup(void **state) {
  fixture *f = calloc(1, sizeof *f);
  if (!f || g3_device_open("cpu", 1, &f->dev) != G3_OK) return -1;
  const g3_device_ops *ops = f->dev->ops;
  if (ops->stream_create(f->dev, false, g3_tensor_none(), &f->main) != G3_OK) return -1;
  if (ops->stream_create(f->dev, true, g3_tensor_none(), &f->side) != G3_OK) return -1;
  if (g3_timed_begin(f->dev, &f->timed) != G3_OK) return -1;
  *state = f;
  return 0;
}

static int teardown(void **state) {
  fixture *f = *state;
  g3_timed_end(f->timed);
  f->dev->ops->stream_destroy(f->main);
  f->dev->ops->stream_destroy(f->side);
  g3_device_close(f->dev);
  free(f);
  return 0;
}

static const g3_timed_row *row_named(const g3_timed *t, const char *name) {
  int n;
  const g3_timed_row *row = g3_timed_rows(t, &n);
  for (int i = 0; i < n; i++)
    if (strcmp(row[i].name, name) == 0) return &row[i];
  fail_msg("no row is called %s", name);
  return NULL;
}

static double seconds_of_all(const g3_timed *t) {
  int n;
  double sum = 0;
  const g3_timed_row *row = g3_timed_rows(t, &n);
  for (int i = 0; i < n; i++)
    sum += row[i].seconds;
  return sum;
}

static g3_status multiply(fixture *f, float *c, const float *a, int64_t m, int64_t k,
                          bool trans_a) {
  const g3_gemm_spec spec = {.trans_a = trans_a};
  float *in = (float *)(uintptr_t)a;
  return f->dev->ops->gemm(f->main, g3_tensor_2d(c, G3_F32, m, 2),
                           trans_a ? g3_tensor_2d(in, G3_F32, k, m)
                                   : g3_tensor_2d(in, G3_F32, m, k),
                           g3_tensor_2d(in, G3_F32, k, 2), &spec);
}

static void forwards_and_counts(void **state) {
  fixture *f = *state;
  static const float a[] = {1, 2, 3, 4, 5, 6};
  static const float wanted[] = {22, 28, 49, 64}; /* [[1 2 3] [4 5 6]] [[1 2] [3 4] [5 6]] */
  float c[6];
  const double begin = g3_now();
  assert_string_equal(f->dev->ops->name, "cpu");
  assert_int_equal(multiply(f, c, a, 2, 3, false), G3_OK);
  assert_memory_equal(c, wanted, sizeof wanted);
  assert_int_equal(multiply(f, c, a, 2, 3, false), G3_OK);
  assert_int_equal(multiply(f, c, a, 3, 2, true), G3_OK); /* another shape */
  const g3_timed_row *gemm = row_named(f->timed, "gemm");
  assert_int_equal(gemm->calls, 3);
  assert_int_equal(gemm->unit, G3_TIMED_FLOPS);
  assert_true(gemm->work == 2 * 2 * 2 * 2 * 3 + 2 * 3 * 2 * 2);
  assert_true(gemm->seconds > 0 && gemm->seconds <= g3_now() - begin);
  int n;
  const g3_timed_product *p = g3_timed_products(f->timed, &n);
  assert_int_equal(n, 2);
  assert_int_equal(p[0].calls, 2);
  assert_true(p[0].m == 2 && p[0].n == 2 && p[0].k == 3 && !p[0].trans_a && !p[0].accumulate);
  assert_true(p[1].m == 3 && p[1].k == 2 && p[1].trans_a && p[1].calls == 1);
  assert_true(p[0].seconds + p[1].seconds <= gemm->seconds * (1 + 1e-9));
  float y[4];
  assert_int_equal(
      f->dev->ops->gelu(f->main, g3_tensor_1d(y, G3_F32, 4), g3_tensor_1d(c, G3_F32, 4)), G3_OK);
  const g3_timed_row *gelu = row_named(f->timed, "gelu");
  assert_true(gelu->calls == 1 && gelu->unit == G3_TIMED_BYTES && gelu->work == 32);
  assert_int_equal(row_named(f->timed, "gelu_bwd")->calls, 0);

  g3_timed_clear(f->timed);
  assert_int_equal(gemm->calls, 0);
  assert_true(seconds_of_all(f->timed) == 0);
  g3_timed_products(f->timed, &n);
  assert_int_equal(n, 0);
}

/* A failure of the backend comes through, and counts nothing. */
static g3_status refuse(void *ctx) {
  (void)ctx;
  return G3_FAIL(G3_EPEER, "gone");
}

static void failures_come_through(void **state) {
  fixture *f = *state;
  float x[2] = {1, 2};
  assert_int_equal(g3_stream_defer(f->main, (g3_deferred){.wait = refuse}), G3_OK);
  assert_int_equal(f->dev->ops->fill(f->main, g3_tensor_1d(x, G3_F32, 2), 0), G3_EPEER);
  assert_int_equal(row_named(f->timed, "fill")->calls, 0);
  assert_true(x[0] == 1);
}

static g3_status sleep_10_ms(void *ctx) {
  (*(int *)ctx)++;
  usleep(10000);
  return G3_OK;
}

static void defer(fixture *f, g3_stream *s, int *done, int row) {
  assert_int_equal(g3_stream_defer(s, (g3_deferred){.wait = sleep_10_ms, .ctx = done}), G3_OK);
  if (row >= 0) g3_timed_claim(f->timed, s, row);
}

static void waits_count_where_they_belong(void **state) {
  fixture *f = *state;
  int a, b, done = 0;
  float x[2];
  assert_int_equal(g3_timed_add_row(f->timed, "exchange pp", G3_TIMED_MOVED, &a), G3_OK);
  assert_int_equal(g3_timed_add_row(f->timed, "reduce_scatter dp", G3_TIMED_MOVED, &b), G3_OK);
  const double begin = g3_now();
  defer(f, f->main, &done, a);
  defer(f, f->main, &done, b);
  defer(f, f->main, &done, b);
  defer(f, f->main, &done, -1);
  assert_int_equal(f->dev->ops->fill(f->main, g3_tensor_1d(x, G3_F32, 2), 0), G3_OK);
  const double wall = g3_now() - begin;
  assert_int_equal(done, 4);
  const g3_timed_row *ra = row_named(f->timed, "exchange pp");
  const g3_timed_row *rb = row_named(f->timed, "reduce_scatter dp");
  assert_true(ra->seconds >= 0.01 && ra->calls == 0);
  assert_true(rb->seconds >= 0.02);
  assert_true(row_named(f->timed, "transfer")->seconds >= 0.01);
  assert_true(row_named(f->timed, "fill")->seconds <= wall - 0.04);
  assert_true(seconds_of_all(f->timed) <= wall);
}

/* More works than a stream's queue holds: the oldest are waited for by the queue itself. */
static void claims_outlive_a_full_queue(void **state) {
  fixture *f = *state;
  int a, done = 0;
  assert_int_equal(g3_timed_add_row(f->timed, "a", G3_TIMED_MOVED, &a), G3_OK);
  for (int i = 0; i < G3_STREAM_PENDING + 2; i++)
    defer(f, f->side, &done, a);
  assert_int_equal(done, 2);
  assert_int_equal(f->dev->ops->sync(f->side), G3_OK);
  assert_int_equal(done, G3_STREAM_PENDING + 2);
  assert_true(row_named(f->timed, "a")->seconds >= 0.01 * G3_STREAM_PENDING);
}

static void events_wait_for_what_was_before(void **state) {
  fixture *f = *state;
  const g3_device_ops *ops = f->dev->ops;
  g3_event *e;
  int a, done = 0;
  assert_int_equal(g3_timed_add_row(f->timed, "a", G3_TIMED_MOVED, &a), G3_OK);
  assert_int_equal(ops->event_create(f->dev, &e), G3_OK);
  defer(f, f->side, &done, a);
  assert_int_equal(ops->record(f->side, e), G3_OK);
  defer(f, f->side, &done, a);
  assert_int_equal(ops->wait(f->main, e), G3_OK);
  assert_int_equal(done, 1);
  const double first = row_named(f->timed, "a")->seconds;
  assert_true(first >= 0.01);
  assert_int_equal(ops->sync(f->side), G3_OK);
  assert_int_equal(done, 2);
  assert_true(row_named(f->timed, "a")->seconds >= first + 0.01);
  ops->event_destroy(e);
}

static void gives_the_table_back(void **state) {
  fixture *f = *state;
  int row;
  g3_status st = G3_OK;
  for (int i = 0; i < G3_TIMED_ROWS && st == G3_OK; i++)
    st = g3_timed_add_row(f->timed, "one more", G3_TIMED_MOVED, &row);
  assert_int_equal(st, G3_EINVAL);
  assert_ptr_not_equal(f->dev->ops, &g3_cpu_ops);
  g3_timed_end(f->timed);
  f->timed = NULL;
  assert_ptr_equal(f->dev->ops, &g3_cpu_ops);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(forwards_and_counts, setup, teardown),
      cmocka_unit_test_setup_teardown(failures_come_through, setup, teardown),
      cmocka_unit_test_setup_teardown(waits_count_where_they_belong, setup, teardown),
      cmocka_unit_test_setup_teardown(claims_outlive_a_full_queue, setup, teardown),
      cmocka_unit_test_setup_teardown(events_wait_for_what_was_before, setup, teardown),
      cmocka_unit_test_setup_teardown(gives_the_table_back, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
