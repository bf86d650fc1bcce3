#include "unit/util/cm.h"
#include "unit/util/death.h"
#include "util/status.h"
#include <pthread.h>
#include <string.h>

static void test_texts(void **unused) {
  (void)unused;
  assert_string_equal(g3_status_text(G3_OK), "success");
  assert_string_equal(g3_status_text(G3_ENUMERIC), "the numbers went bad");
  assert_string_equal(g3_status_text(G3_STATUS_COUNT), "unknown status");
  assert_string_equal(g3_status_text((g3_status)-1), "unknown status");
}

static g3_status bottom(void) {
  return G3_FAIL(G3_EIO, "%s: wants %d bytes, has %d", "file", 8, 4);
}

static g3_status middle(int *reached) {
  G3_TRY(bottom());
  *reached = 1;
  return G3_OK;
}

static g3_status top(int *undone) {
  g3_status st = G3_OK;
  int reached = 0;
  G3_TRY_TO(done, st, middle(&reached));
  return G3_OK;
done:
  *undone = 1 + reached;
  return st;
}

static void test_failure_goes_up(void **unused) {
  (void)unused;
  int undone = 0;
  assert_int_equal(top(&undone), G3_EIO);
  assert_int_equal(undone, 1);
  assert_string_equal(g3_last_error(), "file: wants 8 bytes, has 4");
  /* three lines of this file: where it failed, and two that passed it on */
  int places = 0;
  for (const char *p = g3_last_trace(); (p = strstr(p, "test_status.c:")); p++)
    places++;
  assert_int_equal(places, 3);
}

static void test_message_may_quote_the_last(void **unused) {
  (void)unused;
  assert_int_equal(G3_FAIL(G3_EINVAL, "inner"), G3_EINVAL);
  assert_int_equal(G3_FAIL(G3_EPEER, "outer (%s)", g3_last_error()), G3_EPEER);
  assert_string_equal(g3_last_error(), "outer (inner)");
}

static void test_long_messages_and_traces_are_cut(void **unused) {
  (void)unused;
  char longest[4000];
  memset(longest, 'm', sizeof longest - 1);
  longest[sizeof longest - 1] = '\0';
  assert_int_equal(G3_FAIL(G3_EIO, "%s", longest), G3_EIO);
  const size_t n = strlen(g3_last_error());
  assert_true(n > 1000 && n < sizeof longest);
  assert_memory_equal(g3_last_error(), longest, n);
  for (int i = 0; i < 200; i++)
    assert_int_equal(g3_trace_up(G3_EIO, "some/file.c", i), G3_EIO);
  assert_true(strlen(g3_last_trace()) < 2000);
  assert_non_null(strstr(g3_last_trace(), " < some/file.c:0 < some/file.c:1 <"));
}

enum { SEEN_BYTES = 64 };

static void *fail_elsewhere(void *seen) {
  snprintf(seen, SEEN_BYTES, "%s", g3_last_error());
  (void)G3_FAIL(G3_EIO, "other thread");
  return NULL;
}

static void test_each_thread_has_its_own(void **unused) {
  (void)unused;
  char seen[SEEN_BYTES] = "?";
  pthread_t thread;
  (void)G3_FAIL(G3_EIO, "this thread");
  assert_int_equal(pthread_create(&thread, NULL, fail_elsewhere, seen), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
  assert_string_equal(seen, "");
  assert_string_equal(g3_last_error(), "this thread");
}

static void plain_death(void) {
  const int rows = 3;
  G3_CHECK(rows == 4, "rows = %d", rows);
}

static void leave_with_code(int code) {
  _exit(40 + code);
}

static void death_with_place_and_hook(void) {
  g3_set_fatal_place("rank 3 (tp 1 pp 0 dp 1)");
  g3_set_fatal_hook(leave_with_code);
  G3_CHECK(0, "never");
}

static void no_death(void) {
  G3_CHECK(1 + 1 == 2, "arithmetic");
}

static void test_check(void **unused) {
  (void)unused;
  char said[512];
  assert_int_equal(death_of(plain_death, said, sizeof said), SIGABRT);
  assert_non_null(strstr(said, "gpt3d: fatal: "));
  assert_non_null(strstr(said, "test_status.c:"));
  assert_non_null(strstr(said, ": rows = 3\n"));
  assert_int_equal(death_of(death_with_place_and_hook, said, sizeof said), 1041);
  assert_non_null(strstr(said, "gpt3d: fatal: rank 3 (tp 1 pp 0 dp 1): "));
  assert_int_equal(death_of(no_death, said, sizeof said), -1);
  assert_string_equal(said, "");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_texts),
      cmocka_unit_test(test_failure_goes_up),
      cmocka_unit_test(test_message_may_quote_the_last),
      cmocka_unit_test(test_long_messages_and_traces_are_cut),
      cmocka_unit_test(test_each_thread_has_its_own),
      cmocka_unit_test(test_check),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
