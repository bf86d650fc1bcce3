#include "unit/util/cm.h"
#include "util/log.h"
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

typedef struct {
  char out[8192], err[8192], file[8192];
} heard;

static void slurp(FILE *f, char *text, size_t size) {
  rewind(f);
  text[fread(text, 1, size - 1, f)] = '\0';
  fclose(f);
}

static void say_all(void) {
  G3_DEBUG("d %d", 1);
  G3_INFO("i %d", 2);
  G3_WARN("w %d", 3);
  G3_ERROR("e %d", 4);
  g3_log_progress("step %d", 5);
}

/* What a rank prints, and what goes to the run's log file. */
static void listen(int rank, g3_log_level level, void (*say)(void), heard *h) {
  FILE *out = tmpfile(), *err = tmpfile(), *file = tmpfile();
  assert_true(out && err && file);
  fflush(NULL);
  const int saved_out = dup(STDOUT_FILENO), saved_err = dup(STDERR_FILENO);
  assert_true(saved_out >= 0 && saved_err >= 0);
  dup2(fileno(out), STDOUT_FILENO);
  dup2(fileno(err), STDERR_FILENO);
  g3_log_setup(rank, level);
  g3_log_file(file);
  say();
  g3_log_file(NULL);
  fflush(NULL);
  dup2(saved_out, STDOUT_FILENO);
  dup2(saved_err, STDERR_FILENO);
  close(saved_out);
  close(saved_err);
  slurp(out, h->out, sizeof h->out);
  slurp(err, h->err, sizeof h->err);
  slurp(file, h->file, sizeof h->file);
}

static void test_rank_0(void **unused) {
  (void)unused;
  heard h;
  listen(0, G3_LOG_INFO, say_all, &h);
  assert_string_equal(h.out, "i 2\n"); /* no progress line: this is no terminal */
  assert_string_equal(h.err, "gpt3d: warning: w 3\ngpt3d: error: e 4\n");
  assert_string_equal(h.file, "i 2\nwarning: w 3\nerror: e 4\n");
}

static void test_other_ranks(void **unused) {
  (void)unused;
  heard h;
  listen(7, G3_LOG_DEBUG, say_all, &h);
  assert_string_equal(h.out, "");
  assert_string_equal(h.err, "gpt3d: rank 7: warning: w 3\ngpt3d: rank 7: error: e 4\n");
  assert_string_equal(h.file, "rank 7: warning: w 3\nrank 7: error: e 4\n");
}

static void test_levels(void **unused) {
  (void)unused;
  heard h;
  listen(0, G3_LOG_DEBUG, say_all, &h);
  assert_string_equal(h.out, "debug: d 1\ni 2\n");
  listen(0, G3_LOG_ERROR, say_all, &h);
  assert_string_equal(h.out, "");
  assert_string_equal(h.err, "gpt3d: error: e 4\n");
}

static void say_much(void) {
  char text[6000];
  memset(text, 'x', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  G3_INFO("%s", text);
}

static void test_a_long_line_is_cut(void **unused) {
  (void)unused;
  heard h;
  listen(0, G3_LOG_INFO, say_much, &h);
  const size_t n = strlen(h.out);
  assert_true(n > 4000 && n < 5000);
  assert_int_equal(h.out[n - 1], '\n');
  assert_int_equal(strspn(h.out, "x"), n - 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rank_0),
      cmocka_unit_test(test_other_ranks),
      cmocka_unit_test(test_levels),
      cmocka_unit_test(test_a_long_line_is_cut),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
