/* Arguments of small commands: what is taken, and what is refused with which words. */
#include "train/args.h"
#include "unit/util/cm.h"
#include <string.h>

/* What a command line became. */
typedef struct {
  const char *text, *word[2];
  int64_t count;
  bool help;
} taken;

enum { MOST = 8 };

static g3_status parse(taken *t, int nwords, const char *const *argv) {
  const g3_arg flags[] = {
      {.flag = "--input", .meta = "FILE", .about = "a file", .text = &t->text, .required = true},
      {.flag = "--micros",
       .meta = "N",
       .about = "a count",
       .count = &t->count,
       .min = 1,
       .max = 99},
      {.flag = NULL}};
  const g3_args args = {.command = "gpt3d try",
                        .words = nwords ? "A B" : "",
                        .about = "Tries.",
                        .flags = flags,
                        .word = t->word,
                        .nwords = nwords};
  char *copy[MOST];
  int argc = 0;
  for (; argv[argc]; argc++)
    copy[argc] = (char *)(uintptr_t)argv[argc];
  return g3_args_parse(&args, argc, copy, &t->help);
}

#define ARGV(...)                                                                                  \
  (const char *const[]) {                                                                          \
    __VA_ARGS__, NULL                                                                              \
  }

static void takes_flags_and_words(void **state) {
  (void)state;
  taken t = {.count = 8};
  assert_int_equal(parse(&t, 0, ARGV("--input", "a b")), G3_OK);
  assert_string_equal(t.text, "a b");
  assert_int_equal(t.count, 8);
  assert_false(t.help);
  assert_int_equal(parse(&t, 0, ARGV("--micros=12", "--input=x=y")), G3_OK);
  assert_string_equal(t.text, "x=y");
  assert_int_equal(t.count, 12);
  assert_int_equal(parse(&t, 2, ARGV("one", "--input", "-", "-", "--micros", "99")), G3_OK);
  assert_string_equal(t.text, "-");
  assert_string_equal(t.word[0], "one");
  assert_string_equal(t.word[1], "-");
  assert_int_equal(t.count, 99);
  assert_int_equal(parse(&t, 0, ARGV("--input", "first", "--input", "last")), G3_OK);
  assert_string_equal(t.text, "last");
}

static void help_needs_nothing_else(void **state) {
  (void)state;
  taken t = {0};
  assert_int_equal(parse(&t, 2, ARGV("--help")), G3_OK);
  assert_true(t.help);
  t.help = false;
  assert_int_equal(parse(&t, 0, ARGV("--nonsense", "-h")), G3_OK);
  assert_true(t.help);
  assert_null(t.text);
}

static void refuses(int nwords, const char *const *argv, const char *wanted) {
  taken t = {0};
  assert_int_equal(parse(&t, nwords, argv), G3_EINVAL);
  if (!strstr(g3_last_error(), wanted)) fail_msg("%s: not %s", g3_last_error(), wanted);
}

static void refuses_with_reason(void **state) {
  (void)state;
  refuses(0, ARGV("--inptu", "x"), "unknown flag --inptu; did you mean --input?");
  refuses(0, ARGV("--inp=x"), "unknown flag --inp; did you mean --input?");
  refuses(0, ARGV("--entirely-else"), "unknown flag --entirely-else; gpt3d try --help");
  refuses(0, ARGV("-x"), "unknown flag -x; gpt3d try --help");
  refuses(0, ARGV("--micros", "4"), "--input FILE is missing");
  refuses(0, ARGV("--input"), "--input wants FILE; found the end of the command line");
  refuses(0, ARGV("--input="), "--input wants FILE; found an empty text");
  refuses(0, ARGV("--input", "--micros", "2"), "--input wants FILE; found --micros");
  refuses(0, ARGV("--input", "x", "y"), "stray word \"y\"");
  refuses(2, ARGV("--input", "x", "y"), "wants A B; found 1 of 2 words");
  refuses(2, ARGV("--input", "x", "a", "b", "c"), "stray word \"c\"");
  static const char *const numbers[] = {"0",  "100", "4x",  "x",   "-1",
                                        "+4", " 4",  "4.0", "0x4", "99999999999999999999"};
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
    refuses(0, ARGV("--input", "x", "--micros", numbers[i]),
            "--micros wants a whole number from 1 to 99; found");
}

static void nearest_is_near(void **state) {
  (void)state;
  static const char *const names[] = {"train", "ckpt", "schedule", "tokenize"};
  assert_string_equal(g3_args_nearest("tokenise", names, 4), "tokenize");
  assert_string_equal(g3_args_nearest("TRAIN", names, 4), "train");
  assert_string_equal(g3_args_nearest("chkpt", names, 4), "ckpt");
  assert_null(g3_args_nearest("quantum", names, 4));
  assert_null(g3_args_nearest("", names, 4));
  assert_null(g3_args_nearest("x", names, 4));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(takes_flags_and_words),
      cmocka_unit_test(help_needs_nothing_else),
      cmocka_unit_test(refuses_with_reason),
      cmocka_unit_test(nearest_is_near),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
