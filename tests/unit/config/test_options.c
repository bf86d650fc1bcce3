/* The table itself, and --help. */
#include "config/internal.h"
#include "unit/config/load.h"
#include <ctype.h>

static void test_rows_are_whole(void **unused) {
  (void)unused;
  int n = 0;
  for (const g3_option *o = g3_options; o->flag; o++, n++) {
    assert_non_null(o->key);
    assert_true(strncmp(o->flag, "--", 2) == 0);
    assert_true(o->about && *o->about && strlen(o->about) <= 80);
    assert_non_null(o->def);
    assert_int_equal(o->type == G3_OPT_ENUM, o->names != NULL);
    assert_true(o->min <= o->max);
    for (const char *c = o->key; *c; c++)
      assert_true(islower((unsigned char)*c) || isdigit((unsigned char)*c) || *c == '.' ||
                  *c == '_');
  }
  assert_int_equal(n, g3_option_count());
}

static void test_names_are_unique(void **unused) {
  (void)unused;
  for (const g3_option *o = g3_options; o->flag; o++) {
    assert_ptr_equal(g3_option_at(o->offset), o);
    assert_ptr_equal(g3_option_by_flag(o->flag), o);
    if (o->alias) assert_ptr_equal(g3_option_by_flag(o->alias), o);
    if (!*o->key) continue;
    char dotted[128];
    snprintf(dotted, sizeof dotted, "--%s", o->key);
    assert_ptr_equal(g3_option_by_key(o->key), o);
    assert_ptr_equal(g3_option_by_flag(dotted), o);
  }
  assert_null(g3_option_by_key(""));
  assert_null(g3_option_by_key("model"));
  assert_null(g3_option_by_key("model.layersx"));
  assert_null(g3_option_by_flag("--"));
  assert_null(g3_option_by_flag("tp"));
  assert_null(g3_option_at(1));
}

/* Every byte of g3_config but padding belongs to one option, so that no field is forgotten. */
static void test_every_field_has_a_row(void **unused) {
  (void)unused;
  static const size_t sizes[] = {[G3_OPT_INT] = sizeof(int64_t),  [G3_OPT_UINT] = sizeof(uint64_t),
                                 [G3_OPT_FLOAT] = sizeof(double), [G3_OPT_BOOL] = sizeof(bool),
                                 [G3_OPT_TEXT] = sizeof(g3_text), [G3_OPT_ENUM] = sizeof(int)};
  static unsigned char owned[sizeof(g3_config)];
  for (const g3_option *o = g3_options; o->flag; o++)
    for (size_t i = 0; i < sizes[o->type]; i++)
      assert_int_equal(owned[o->offset + i]++, 0);
  size_t run = 0;
  for (size_t i = 0; i < sizeof owned; i++) {
    run = owned[i] ? 0 : run + 1;
    assert_true(run < 8); /* padding before an 8-byte field is at most 7 */
  }
}

static void test_defaults_pass_the_checks(void **unused) {
  (void)unused;
  assert_string_equal(error_of_file(""), "");
}

static void test_sections(void **unused) {
  (void)unused;
  assert_true(g3_option_is_section("model"));
  assert_true(g3_option_is_section("run"));
  assert_false(g3_option_is_section("mod"));
  assert_false(g3_option_is_section("model.layers"));
  assert_false(g3_option_is_section(""));
}

static void test_nearest(void **unused) {
  (void)unused;
  static const struct {
    const char *word;
    g3_spelling spelling;
    const char *near;
  } cases[] = {
      {"model.layer", G3_SPELLED_KEY, "model.layers"},
      {"modle.layers", G3_SPELLED_KEY, "model.layers"},
      {"model.lr", G3_SPELLED_KEY, "optim.lr"},
      {"layers", G3_SPELLED_KEY, "model.layers"},
      {"tp", G3_SPELLED_KEY, "parallel.tp"},
      {"model.hidden_size", G3_SPELLED_KEY, "model.width"},
      {"train.micro-batch", G3_SPELLED_KEY, "train.micro_batch"},
      {"run.frobnicate", G3_SPELLED_KEY, NULL},
      {"--tpp", G3_SPELLED_FLAG, "--tp"},
      {"--micro-bach", G3_SPELLED_FLAG, "--micro-batch"},
      {"--micro_batch", G3_SPELLED_FLAG, "--micro-batch"},
      {"--tensor-model-paralel-size", G3_SPELLED_FLAG, "--tensor-model-parallel-size"},
      {"--model.layer", G3_SPELLED_FLAG, "--model.layers"},
      {"-tp", G3_SPELLED_FLAG, "--tp"},
      {"--frobnicate-it", G3_SPELLED_FLAG, NULL},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char near[128] = "";
    const char *found = g3_option_nearest(cases[i].word, cases[i].spelling, near, sizeof near);
    if (cases[i].near) {
      assert_non_null(found);
      assert_string_equal(found, cases[i].near);
    } else {
      assert_null(found);
    }
  }
}

static void test_lists(void **unused) {
  (void)unused;
  static const char *const words[] = {"a", "b", "c"};
  char out[64] = "";
  for (int i = 0; i < 3; i++)
    g3_list_append(out, sizeof out, i, 3, words[i]);
  assert_string_equal(out, "a, b or c");
  out[0] = '\0';
  g3_list_append(out, sizeof out, 0, 1, "alone");
  assert_string_equal(out, "alone");
  char tight[6] = "";
  for (int i = 0; i < 3; i++)
    g3_list_append(tight, sizeof tight, i, 3, "word");
  assert_string_equal(tight, "word,");
}

static void test_help(void **unused) {
  (void)unused;
  char *text = NULL;
  size_t size = 0;
  FILE *f = open_memstream(&text, &size);
  assert_non_null(f);
  g3_options_help(f);
  assert_int_equal(fclose(f), 0);
  for (const g3_option *o = g3_options; o->flag; o++) {
    char head[64];
    snprintf(head, sizeof head, "\n  %s ", o->flag);
    assert_non_null(strstr(text, head));
    if (o->alias) assert_non_null(strstr(text, o->alias));
  }
  assert_non_null(strstr(text,
                         "\nmodel:\n  --layers N                      transformer blocks [4]; "
                         "also --num-layers\n"));
  assert_non_null(strstr(text, "\n  --lr-schedule cosine|linear|constant|wsd\n"
                               "                                  curve of the learning rate"));
  assert_non_null(strstr(text, "\non the command line only:\n  --config TEXT"));
  for (char *rest = text, *line; (line = strsep(&rest, "\n"));)
    assert_true(strlen(line) <= 100 && (!*line || line[strlen(line) - 1] != ' '));
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rows_are_whole),
      cmocka_unit_test(test_names_are_unique),
      cmocka_unit_test(test_every_field_has_a_row),
      cmocka_unit_test(test_defaults_pass_the_checks),
      cmocka_unit_test(test_sections),
      cmocka_unit_test(test_nearest),
      cmocka_unit_test(test_lists),
      cmocka_unit_test(test_help),
  };
  return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
