/* config.yaml and --print-config: what is written loads back to the same values. */
#include "config/internal.h"
#include "unit/config/load.h"

static char *dump(const g3_settings *s, bool origins) {
  char *text = NULL;
  size_t size = 0;
  FILE *f = open_memstream(&text, &size);
  assert_non_null(f);
  assert_int_equal(g3_settings_dump(s, f, origins), G3_OK);
  assert_int_equal(fclose(f), 0);
  return text;
}

/* All values but those of the command line alone, which config.yaml does not hold. */
static void assert_same_values(const g3_settings *a, const g3_settings *b) {
  for (const g3_option *o = g3_options; o->flag; o++) {
    g3_text x, y;
    if (!*o->key) continue;
    g3_settings_text(&a->value, o, x, sizeof x);
    g3_settings_text(&b->value, o, y, sizeof y);
    assert_string_equal(x, y);
  }
}

static void assert_comes_back(const g3_settings *s) {
  for (int origins = 0; origins <= 1; origins++) {
    char *text = dump(s, origins);
    write_file("configs/config.yaml", text, strlen(text));
    free(text);
    g3_settings *back = load("--config configs/config.yaml");
    if (!back) fail_msg("%s", g3_last_error());
    assert_same_values(s, back);
    for (const g3_option *o = g3_options; o->flag; o++)
      if (*o->key) assert_int_equal(back->origin[o - g3_options].kind, G3_FROM_FILE);
    g3_settings_free(back);
  }
}

static void test_comes_back(void **unused) {
  (void)unused;
  static const char *const lines[] = {
      "",
      "--tp 2 --pp 2 --dp 4 --dtype bf16 --lr-schedule wsd --overwrite --tied false",
      "--lr 0.1234567890123456789 --min-lr 1e-300 --eps 3e-9 --weight-decay 1000 --clip 1e22",
      "--seed 18446744073709551615 --steps 281474976710655 --heads 65535",
      "--ffn 12 --name x --out y/z --resume none --init a",
  };
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    g3_settings *s = load(lines[i]);
    assert_non_null(s);
    assert_comes_back(s);
    g3_settings_free(s);
  }
}

/* Texts that YAML would read as something else, or not at all, without quotes. */
static void test_odd_texts_come_back(void **unused) {
  (void)unused;
  static const struct {
    const char *text, *written;
  } cases[] = {
      {"data/kjv.txt", "data/kjv.txt"},
      {"a b", "'a b'"},
      {" led", "' led'"},
      {"trailed ", "'trailed '"},
      {"it's", "'it''s'"},
      {"'", "''''"},
      {"#no comment", "'#no comment'"},
      {"a: b", "'a: b'"},
      {"- a", "'- a'"},
      {"-", "'-'"},
      {"[1]", "'[1]'"},
      {"*x", "'*x'"},
      {"!x", "'!x'"},
      {"%x", "'%x'"},
      {"\"q\"", "'\"q\"'"},
      {"C:\\data\\x", "'C:\\data\\x'"},
      {"true", "'true'"},
      {"NO", "'NO'"},
      {"null", "'null'"},
      {"~", "'~'"},
      {"12", "'12'"},
      {"1e5", "'1e5'"},
      {"1f1b", "1f1b"},
      {"caf\xC3\xA9", "'caf\xC3\xA9'"},
      {"\xF0\x9F\x98\x80", "'\xF0\x9F\x98\x80'"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[64], line[128], *argv[] = {"--init", text};
    g3_settings *s = NULL;
    snprintf(text, sizeof text, "%s", cases[i].text);
    assert_int_equal(g3_settings_load(2, argv, &s), G3_OK);
    snprintf(line, sizeof line, "\n  init: %s ", cases[i].written);
    char *all = dump(s, false);
    assert_non_null(strstr(all, line));
    free(all);
    assert_comes_back(s);
    g3_settings_free(s);
  }
}

static void test_the_longest_text_comes_back(void **unused) {
  (void)unused;
  char text[G3_CONFIG_TEXT], *argv[] = {"--init", text};
  g3_settings *s = NULL;
  memset(text, '\'', sizeof text - 1); /* each is written twice */
  text[sizeof text - 1] = '\0';
  assert_int_equal(g3_settings_load(2, argv, &s), G3_OK);
  assert_comes_back(s);
  g3_settings_free(s);
}

/* Characters that YAML takes for line ends or refuses are refused by us, early and by name. */
static void test_texts_that_could_not_come_back(void **unused) {
  (void)unused;
  static const char *const texts[] = {"a\nb",         "a\x7F",        "\xC2\x85",
                                      "\xE2\x80\xA8", "\xE2\x80\xA9", "\xEF\xBB\xBF",
                                      "\xEF\xBF\xBE", "\xED\xA0\x80", "\xC2"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    char text[64], *argv[] = {"--init", text};
    g3_settings *s = NULL;
    snprintf(text, sizeof text, "%s", texts[i]);
    assert_int_equal(g3_settings_load(2, argv, &s), G3_EINVAL);
    assert_non_null(strstr(g3_last_error(),
                           "--init: run.init has a control character or bytes that "
                           "are not UTF-8 at byte "));
  }
}

static void test_values_as_text(void **unused) {
  (void)unused;
  static const struct {
    const char *key, *text;
  } cases[] = {
      {"model.layers", "4"},
      {"train.seed", "1234"},
      {"optim.lr", "0.002"},
      {"optim.eps", "1e-08"},
      {"model.tied", "true"},
      {"train.dtype", "f32"},
      {"run.init", ""},
      {"run.out", "runs/tiny"},
      {"parallel.bucket_elements", "4194304"},
      {"run.overwrite", "false"},
      {"optim.lr_schedule", "cosine"},
  };
  g3_settings *s = load("");
  assert_non_null(s);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    g3_text text;
    g3_settings_text(&s->value, g3_option_by_key(cases[i].key), text, sizeof text);
    assert_string_equal(text, cases[i].text);
  }
  char tight[4];
  g3_settings_text(&s->value, g3_option_by_key("run.out"), tight, sizeof tight);
  assert_string_equal(tight, "run");
  g3_settings_free(s);
}

static void test_layout(void **unused) {
  (void)unused;
  g3_settings *s = load("--tp 2 --eps 1e-8");
  assert_non_null(s);
  char *plain = dump(s, false), *origins = dump(s, true);
  assert_non_null(strstr(plain, "model:\n  layers: 4                        # transformer blocks\n"
                                "  heads: 4 "));
  assert_non_null(strstr(plain, "\n  eps: 1.0e-08 ")); /* a float to YAML 1.1 readers as well */
  assert_null(strstr(plain, "command line"));
  assert_non_null(strstr(origins, "\n  tp: 2                            # command line --tp"
                                  "          tensor-parallel ranks"));
  assert_non_null(strstr(origins, "# default   "));
  assert_non_null(strstr(origins, "# built-in tiny.yaml:5       transformer blocks\n"));
  assert_non_null(strstr(origins, "# 4 x model.width "));
  assert_null(strstr(origins, "print_config"));
  free(plain);
  free(origins);
  assert_int_equal(
      g3_settings_set(s, "model.vocab", "300",
                      (g3_origin){.kind = G3_FROM_CHECKPOINT, .where = "runs/a/latest"}),
      G3_OK);
  origins = dump(s, true);
  assert_non_null(
      strstr(origins, "\n  vocab: 300                       # checkpoint runs/a/latest"));
  free(origins);
  g3_settings_free(s);
}

static void test_a_full_disk_is_told(void **unused) {
  (void)unused;
  g3_settings *s = load("");
  FILE *full = fopen("/dev/full", "w");
  assert_true(s && full);
  assert_int_equal(g3_settings_dump(s, full, false), G3_EIO);
  assert_string_equal(g3_last_error(),
                      "the configuration cannot be written: No space left on device");
  fclose(full);
  g3_settings_free(s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_comes_back),
      cmocka_unit_test(test_odd_texts_come_back),
      cmocka_unit_test(test_the_longest_text_comes_back),
      cmocka_unit_test(test_texts_that_could_not_come_back),
      cmocka_unit_test(test_values_as_text),
      cmocka_unit_test(test_layout),
      cmocka_unit_test(test_a_full_disk_is_told),
  };
  return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
