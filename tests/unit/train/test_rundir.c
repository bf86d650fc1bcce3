/* The run directory: made, cleared, cut back to a step, written, and what cannot be. */
#include "train/rundir.h"
#include "unit/data/files.h"
#include "util/log.h"
#include <math.h>

static void ok(g3_status st) {
  if (st != G3_OK) fail_msg("%s", g3_last_error());
}

static void write_text(const char *path, const char *text) {
  write_file(path, text, strlen(text));
}

static char *read_text(const char *path) {
  static char text[1 << 16];
  FILE *f = fopen(path, "rb");
  assert_non_null(f);
  text[fread(text, 1, sizeof text - 1, f)] = '\0';
  fclose(f);
  return text;
}

static bool is_there(const char *path) {
  return access(path, F_OK) == 0;
}

static g3_settings *settings(const char *out) {
  char *args[] = {"--out", (char *)out, "--layers", "3", "--lr", "1e-4", "--dp", "1"};
  g3_settings *s;
  ok(g3_settings_load((int)(sizeof args / sizeof args[0]), args, &s));
  return s;
}

static void made_with_parents(void **state) {
  (void)state;
  ok(g3_rundir_make("a/b/c"));
  assert_true(is_there("a/b/c/checkpoints"));
  assert_false(is_there("a/b/c/.writable"));
  ok(g3_rundir_make("a/b/c")); /* again is fine */
}

static void not_made(void **state) {
  (void)state;
  char longest[G3_CONFIG_TEXT + 200];
  write_text("file", "x");
  assert_int_equal(g3_rundir_make("file/run"), G3_EIO);
  assert_message("file/run");
  assert_message("Not a directory");
  assert_message("--out");
  memset(longest, 'x', sizeof longest);
  longest[sizeof longest - 1] = '\0';
  assert_int_equal(g3_rundir_make(longest), G3_EINVAL);
  assert_message("too long");
}

/* Only what a run writes goes; the folder and what else is in it stays. */
static void cleared(void **state) {
  (void)state;
  ok(g3_rundir_make("old"));
  assert_int_equal(mkdir("old/checkpoints/step-00000005", 0777), 0);
  write_text("old/checkpoints/step-00000005/index.h5", "x");
  write_text("old/checkpoints/latest", "step-00000005\n");
  write_text("old/metrics.jsonl", "{\"step\":1}\n");
  write_text("old/log.txt", "x");
  write_text("old/notes.md", "mine");
  ok(g3_rundir_clear("old"));
  assert_false(is_there("old/checkpoints/step-00000005"));
  assert_false(is_there("old/checkpoints/latest"));
  assert_false(is_there("old/metrics.jsonl"));
  assert_false(is_there("old/log.txt"));
  assert_string_equal(read_text("old/notes.md"), "mine");
  ok(g3_rundir_clear("never-there"));
}

/* Cuts `before` back to `step`; what is left. */
static const char *cut(const char *before, int64_t step) {
  g3_settings *s = settings("cut");
  g3_rundir d = {NULL, NULL, NULL};
  ok(g3_rundir_make("cut"));
  write_text("cut/metrics.jsonl", before);
  ok(g3_rundir_open(s, step, &d));
  g3_rundir_close(&d);
  g3_settings_free(s);
  assert_false(is_there("cut/metrics.jsonl.tmp"));
  return read_text("cut/metrics.jsonl");
}

static void metrics_cut_back(void **state) {
  (void)state;
  static const char three[] = "{\"step\":8,\"loss\":2}\n{\"step\":9,\"loss\":1}\n"
                              "{\"step\":10,\"loss\":0.5}\n";
  assert_string_equal(cut(three, 10), three);
  assert_string_equal(cut(three, 9), "{\"step\":8,\"loss\":2}\n{\"step\":9,\"loss\":1}\n");
  assert_string_equal(cut(three, 0), "");
  assert_string_equal(cut("", 5), "");
}

static void what_is_no_line_of_ours(void **state) {
  (void)state;
  static const char one[] = "{\"step\":1,\"loss\":2}\n";
  char text[4096], filler[2048];
  /* a last line without its end, as a killed run leaves it */
  snprintf(text, sizeof text, "%s{\"step\":2,\"lo", one);
  assert_string_equal(cut(text, 9), one);
  snprintf(text, sizeof text, "%s{\"step\":2,\"loss\":1}", one);
  assert_string_equal(cut(text, 9), one);
  snprintf(text, sizeof text, "%s{\"step\":2,\"loss\":1\n", one);
  assert_string_equal(cut(text, 9), one);
  /* others' lines, and one that is longer than ours ever are */
  snprintf(text, sizeof text, "hello\n\n%s{\"epoch\":1}\n", one);
  assert_string_equal(cut(text, 9), one);
  memset(filler, 'x', sizeof filler - 1);
  filler[sizeof filler - 1] = '\0';
  snprintf(text, sizeof text, "{\"step\":1,\"text\":\"%s\"}\n%s", filler, one);
  assert_string_equal(cut(text, 9), one);
}

static void a_line_a_step(void **state) {
  (void)state;
  g3_settings *s = settings("lines");
  g3_rundir d = {NULL, NULL, NULL};
  ok(g3_rundir_make("lines"));
  ok(g3_rundir_open(s, 0, &d));
  g3_metrics m = {.step = 1,
                  .loss = 0.1,
                  .lr = 1e-4,
                  .grad_norm = 2.5,
                  .tokens = 512,
                  .step_s = 0.5,
                  .tok_s = 1024,
                  .tflops = 0.25};
  ok(g3_rundir_metrics(&d, &m));
  m.step = 2;
  m.has_val = m.has_mfu = true;
  m.val_loss = 1.0 / 3.0;
  m.mfu = 0.5;
  ok(g3_rundir_metrics(&d, &m));
  m = (g3_metrics){.step = 3, .loss = NAN, .grad_norm = INFINITY, .skipped = true};
  ok(g3_rundir_metrics(&d, &m));
  /* there at once, without closing */
  assert_string_equal(
      read_text("lines/metrics.jsonl"),
      "{\"step\":1,\"loss\":0.1,\"lr\":0.0001,\"grad_norm\":2.5,\"tokens\":512,\"step_s\":0.5,"
      "\"tok_s\":1024,\"tflops\":0.25}\n"
      "{\"step\":2,\"loss\":0.1,\"lr\":0.0001,\"grad_norm\":2.5,\"tokens\":512,\"step_s\":0.5,"
      "\"tok_s\":1024,\"tflops\":0.25,\"mfu\":0.5,\"val_loss\":0.3333333333333333}\n"
      "{\"step\":3,\"loss\":null,\"lr\":0,\"grad_norm\":null,\"tokens\":0,\"step_s\":0,\"tok_s\":0,"
      "\"tflops\":0,\"skipped\":true}\n");
  g3_rundir_close(&d);
  g3_rundir_close(&d); /* twice is fine */
  ok(g3_rundir_metrics(&d, &m)); /* ranks that do not write */
  g3_settings_free(s);
}

static void config_reads_back(void **state) {
  (void)state;
  g3_settings *s = settings("again"), *back;
  g3_rundir d = {NULL, NULL, NULL};
  ok(g3_rundir_make("again"));
  ok(g3_rundir_open(s, 0, &d));
  g3_rundir_close(&d);
  char *args[] = {"--config", "again/config.yaml"};
  ok(g3_settings_load(2, args, &back));
  for (const g3_option *o = g3_options; o->flag; o++) {
    g3_text a, b;
    if (!*o->key) continue;
    g3_settings_text(&s->value, o, a, sizeof a);
    g3_settings_text(&back->value, o, b, sizeof b);
    assert_string_equal(a, b);
  }
  g3_settings_free(back);
  g3_settings_free(s);
}

/* What is logged while it is open goes to log.txt, after what an earlier run wrote. */
static void the_log(void **state) {
  (void)state;
  g3_settings *s = settings("log");
  g3_rundir d = {NULL, NULL, NULL};
  ok(g3_rundir_make("log"));
  write_text("log/log.txt", "earlier\n");
  ok(g3_rundir_open(s, 0, &d));
  G3_INFO("a line of the log");
  g3_rundir_close(&d);
  G3_INFO("a line after it");
  assert_string_equal(read_text("log/log.txt"), "earlier\na line of the log\n");
  g3_settings_free(s);
}

/* One run a folder: a second is refused while the first lives, and the lock goes with it. */
static void one_run_a_folder(void **state) {
  (void)state;
  g3_rundir first = {NULL, NULL, NULL}, second = {NULL, NULL, NULL};
  ok(g3_rundir_make("taken"));
  ok(g3_rundir_lock("taken", &first));
  assert_int_equal(g3_rundir_lock("taken", &second), G3_EINVAL);
  assert_message("another run is writing in taken");
  assert_message("--out");
  assert_null(second.lock);
  g3_settings *s = settings("taken");
  ok(g3_rundir_open(s, 0, &first)); /* keeps it */
  assert_int_equal(g3_rundir_lock("taken", &second), G3_EINVAL);
  ok(g3_rundir_clear("taken"));
  assert_int_equal(g3_rundir_lock("taken", &second), G3_EINVAL);
  g3_rundir_close(&first);
  ok(g3_rundir_lock("taken", &second));
  g3_rundir_close(&second);
  g3_settings_free(s);
}

static void full_disk(void **state) {
  (void)state;
  g3_rundir d = {.metrics = fopen("/dev/full", "w")};
  assert_non_null(d.metrics);
  assert_int_equal(g3_rundir_metrics(&d, &(g3_metrics){.step = 1}), G3_EIO);
  assert_message("metrics.jsonl");
  assert_message("No space left");
  g3_rundir_close(&d);
}

static void not_opened(void **state) {
  (void)state;
  g3_settings *s = settings("blocked");
  g3_rundir d = {NULL, NULL, NULL};
  static const char *const names[] = {"config.yaml", "metrics.jsonl", "log.txt"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    char path[64];
    ok(g3_rundir_make("blocked"));
    snprintf(path, sizeof path, "blocked/%s", names[i]);
    unlink(path);
    assert_int_equal(mkdir(path, 0777), 0);
    assert_int_equal(g3_rundir_open(s, 0, &d), G3_EIO);
    assert_message(path);
    assert_null(d.metrics);
    assert_int_equal(rmdir(path), 0);
  }
  g3_settings_free(s);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(made_with_parents),
                                     cmocka_unit_test(not_made),
                                     cmocka_unit_test(cleared),
                                     cmocka_unit_test(metrics_cut_back),
                                     cmocka_unit_test(what_is_no_line_of_ours),
                                     cmocka_unit_test(a_line_a_step),
                                     cmocka_unit_test(config_reads_back),
                                     cmocka_unit_test(the_log),
                                     cmocka_unit_test(one_run_a_folder),
                                     cmocka_unit_test(full_disk),
                                     cmocka_unit_test(not_opened)};
  return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
