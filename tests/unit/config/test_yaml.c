/* YAML files: what is taken, and what each kind of mistake is told. */
#include "unit/config/load.h"
#include <fcntl.h>

static void test_forms(void **unused) {
  (void)unused;
  static const char *const texts[] = {
      "model:\n  layers: 6\n  tied: false\ndata:\n  path: 'a b'\n",
      "model: {layers: 6, tied: false}\ndata: {path: \"a b\"}\n",
      "# comment\n---\nmodel.layers: 6\nmodel.tied: false\ndata.path: a b # end\n...\n",
      "\xEF\xBB\xBFmodel:\r\n  layers: \"6\"\r\nmodel.tied: 'false'\r\ndata:\r\n  path: a b\r\n",
      "data:\n  path: >-\n    a\n    b\nmodel:\n  layers: 6\ntrain:\nmodel.tied: false",
      "model:\n  layers: 6\ndata:\n  path: a b\nmodel:\n  tied: false\n",
  };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    write_file("configs/t.yaml", texts[i], strlen(texts[i]));
    g3_settings *s = load("--config configs/t.yaml");
    assert_non_null(s);
    assert_int_equal(s->value.model.layers, 6);
    assert_false(s->value.model.tied);
    assert_string_equal(s->value.data.path, "a b");
    g3_settings_free(s);
  }
}

static void test_nearly_nothing(void **unused) {
  (void)unused;
  static const char *const texts[] = {"",     "\n",       "# only a comment\n", "---\n...\n",
                                      "{}\n", "model:\n", "model: {}\nrun:\n"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    const char *error = error_of_file(texts[i]);
    if (strcmp(texts[i], "---\n...\n") == 0)
      assert_string_equal(error, "configs/t.yaml:2: wants keys with values, such as \"model:\"; "
                                 "found \"\"");
    else
      assert_string_equal(error, "");
  }
}

static void test_empty_texts(void **unused) {
  (void)unused;
  static const char yaml[] = "run:\n  out: \"\"\n  init: ''\n  name: \"~\"\n";
  write_file("configs/t.yaml", yaml, strlen(yaml));
  g3_settings *s = load("--config configs/t.yaml");
  assert_non_null(s);
  assert_string_equal(s->value.run.name, "~");
  assert_string_equal(s->value.run.out, "runs/~");
  assert_string_equal(s->value.run.init, "");
  g3_settings_free(s);
}

static void test_messages(void **unused) {
  (void)unused;
  static const bad_case cases[] = {
      {"model:\n  layer: 4\n",
       "configs/t.yaml:2: unknown key model.layer; did you mean model.layers?"},
      {"\n\nmodle:\n\n  layers: 4\n",
       "configs/t.yaml:5: unknown key modle.layers; did you mean model.layers?"},
      {"tp: 4\n", "configs/t.yaml:1: unknown key tp; did you mean parallel.tp?"},
      {"a:\n  b:\n    c: 4\n",
       "configs/t.yaml:3: unknown key a.b.c; gpt3d --print-config lists all"},
      {"model:\n  heads: 4x\n", "configs/t.yaml:2: model.heads wants a whole number from 1 to "
                                "65535; found \"4x\""},
      {"model:\n  tied: yes\n", "configs/t.yaml:2: model.tied wants true or false; found \"yes\""},
      {"optim:\n  lr: .nan\n",
       "configs/t.yaml:2: optim.lr wants a number from 0 to 1000; found \".nan\""},
      {"model:\n  layers: 4\n  heads: 4\n  layers: 5\n",
       "configs/t.yaml:4: model.layers stands here a second time; line 2 has it already"},
      {"model:\n  layers: 4\nmodel.layers: 4\n",
       "configs/t.yaml:3: model.layers stands here a second time; line 2 has it already"},
      {"model:\n  layers: [4, 5]\n",
       "configs/t.yaml:2: model.layers is a list; a configuration has "
       "only maps and single values"},
      {"- model\n", "configs/t.yaml:1: the file holds a list; a configuration has only maps and "
                    "single values"},
      {"model:\n  layers: &n 4\n  heads: *n\n",
       "configs/t.yaml:2: model.layers is marked with an anchor (&) or a tag (!); a configuration "
       "has only maps and single values"},
      {"model: &m\n  layers: 4\n", "configs/t.yaml:1: model is marked with an anchor (&) or a tag "
                                   "(!); a configuration has only "
                                   "maps and single values"},
      {"model:\n  layers: *n\n", "configs/t.yaml:2: model.layers is an alias (*); a configuration "
                                 "has only maps and single values"},
      {"model:\n  layers: !!int 4\n",
       "configs/t.yaml:2: model.layers is marked with an anchor (&) or a tag (!); a configuration "
       "has only maps and single values"},
      {"model: 4\n", "configs/t.yaml:1: model is a section, found the value \"4\"; write its keys "
                     "indented below it"},
      {"model:\n  layers:\n    most: 4\n",
       "configs/t.yaml:3: model.layers takes one value, found a map"},
      {"model:\n  layers: {}\n", "configs/t.yaml:2: model.layers takes one value, found a map"},
      {"model:\n  layers:\n", "configs/t.yaml:2: model.layers has no value; give one (\"\" is an "
                              "empty text) or leave the key out"},
      {"run:\n  init: ~\n", "configs/t.yaml:2: run.init has no value; give one (\"\" is an empty "
                            "text) or leave the key out"},
      {"run:\n  init: null\n",
       "configs/t.yaml:2: run.init has no value; give one (\"\" is an empty "
       "text) or leave the key out"},
      {"just words\n", "configs/t.yaml:1: wants keys with values, such as \"model:\"; found \"just "
                       "words\""},
      {"? {a: b}\n: c\n", "configs/t.yaml:1: a map cannot be a key"},
      {"model:\n  layers: 4\n---\nmodel:\n  layers: 5\n",
       "configs/t.yaml:3: a second document begins; a configuration is one"},
      {"run:\n  name: \"a\\nb\"\n",
       "configs/t.yaml:2: run.name has a control character or bytes that are not UTF-8 at byte 1, "
       "which config.yaml could not hold; use another name"},
      {"run:\n  name: \"a\\0b\"\n", "configs/t.yaml:2: a zero byte inside a text"},
      {"{a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: 1}}}}}}}}}}}}}}}}}\n",
       "configs/t.yaml:1: maps nest deeper than 16"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_string_equal(error_of_file(cases[i].words), cases[i].message);
}

/* Here libyaml says what is wrong; we say where, and what to look for. */
static void test_not_yaml(void **unused) {
  (void)unused;
  static const bad_case cases[] = {
      {"model:\n  layers: 4\n heads: 4\n", "configs/t.yaml:3: not YAML: "},
      {"model:\n\tlayers: 4\n", "configs/t.yaml:2: not YAML: "},
      {"model: {layers: 4\n", "configs/t.yaml:2: not YAML: "},
      {"run:\n  name: \"open\n", "configs/t.yaml:3: not YAML: "},
      {"run:\n  name: a: b\n", "configs/t.yaml:2: not YAML: "},
      {"model:\n  layers: 4\xFF\n", "configs/t.yaml: not a text file: "},
      {"\x01\x02\x03", "configs/t.yaml: not a text file: "},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const char *error = error_of_file(cases[i].words);
    assert_memory_equal(error, cases[i].message, strlen(cases[i].message));
    assert_true(strlen(error) > strlen(cases[i].message));
  }
}

static void test_long_keys(void **unused) {
  (void)unused;
  char yaml[600];
  memset(yaml, 'k', sizeof yaml);
  snprintf(yaml + 300, sizeof yaml - 300, ": 1\n");
  assert_non_null(strstr(error_of_file(yaml), "configs/t.yaml:1: a key is longer than 255 bytes: "
                                              "\"kkkk"));
  snprintf(yaml + 200, sizeof yaml - 200, ": 1\n");
  assert_non_null(strstr(error_of_file(yaml), "configs/t.yaml:1: unknown key kkkk"));
}

static void test_files_that_are_none(void **unused) {
  (void)unused;
  static const bad_case cases[] = {
      {"none.yaml", "--config: none.yaml cannot be read: No such file or directory"},
      {"configs", "--config: configs is a directory; wants a YAML file"},
      {"pipe", "--config: pipe is not a regular file; wants a YAML file"},
      {"/dev/null", "--config: /dev/null is not a regular file; wants a YAML file"},
      {"link", "--config: link cannot be read: Too many levels of symbolic links"},
  };
  assert_int_equal(mkfifo("pipe", 0600), 0); /* has no writer: must not be waited for */
  assert_int_equal(symlink("link", "link"), 0);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[64], *argv[] = {"--config", text};
    g3_settings *s = NULL;
    snprintf(text, sizeof text, "%s", cases[i].words);
    assert_int_equal(g3_settings_load(2, argv, &s), G3_EIO);
    assert_string_equal(g3_last_error(), cases[i].message);
    assert_null(s);
  }
}

/* A large file and a file of noise end in a message, never in a crash. */
static void test_noise(void **unused) {
  (void)unused;
  static char noise[1 << 16];
  static const char alphabet[] = "model:layers 4{}[]&*!|>'\"%#\n\n  -?,~\\\t";
  uint32_t x = 1;
  for (int round = 0; round < 40; round++) {
    const size_t n = round < 38 ? 256 : sizeof noise;
    for (size_t i = 0; i < n; i++) {
      x = x * 1664525u + 1013904223u;
      noise[i] = round % 2 ? (char)(x >> 24) : alphabet[(x >> 8) % (sizeof alphabet - 1)];
    }
    write_file("configs/t.yaml", noise, n);
    g3_settings *s = load("--config configs/t.yaml");
    if (!s) assert_non_null(strstr(g3_last_error(), "configs/t.yaml"));
    g3_settings_free(s);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_forms),
      cmocka_unit_test(test_nearly_nothing),
      cmocka_unit_test(test_empty_texts),
      cmocka_unit_test(test_messages),
      cmocka_unit_test(test_not_yaml),
      cmocka_unit_test(test_long_keys),
      cmocka_unit_test(test_files_that_are_none),
      cmocka_unit_test(test_noise),
  };
  return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
