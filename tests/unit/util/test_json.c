#include "unit/util/cm.h"
#include "unit/util/death.h"
#include "util/json.h"
#include <math.h>
#include <string.h>

static void test_a_line_of_metrics(void **unused) {
  (void)unused;
  char text[256];
  g3_json j = g3_json_begin(text, sizeof text);
  g3_json_object(&j);
  g3_json_key(&j, "step");
  g3_json_int(&j, 12);
  g3_json_key(&j, "loss");
  g3_json_double(&j, 2.0625);
  g3_json_key(&j, "lr");
  g3_json_double(&j, 2e-3);
  g3_json_key(&j, "mfu");
  g3_json_null(&j);
  g3_json_key(&j, "skipped");
  g3_json_bool(&j, false);
  g3_json_object_end(&j);
  assert_int_equal(g3_json_end(&j), G3_OK);
  assert_string_equal(text,
                      "{\"step\":12,\"loss\":2.0625,\"lr\":0.002,\"mfu\":null,\"skipped\":false}");
  assert_int_equal(j.used, strlen(text));
}

static void test_levels(void **unused) {
  (void)unused;
  char text[256];
  g3_json j = g3_json_begin(text, sizeof text);
  g3_json_array(&j);
  g3_json_object(&j);
  g3_json_object_end(&j);
  g3_json_array(&j);
  g3_json_array_end(&j);
  g3_json_object(&j);
  g3_json_key(&j, "a");
  g3_json_array(&j);
  g3_json_int(&j, 1);
  g3_json_int(&j, -2);
  g3_json_array_end(&j);
  g3_json_key(&j, "b");
  g3_json_object(&j);
  g3_json_key(&j, "c");
  g3_json_bool(&j, true);
  g3_json_object_end(&j);
  g3_json_object_end(&j);
  g3_json_string(&j, "end");
  g3_json_array_end(&j);
  assert_int_equal(g3_json_end(&j), G3_OK);
  assert_string_equal(text, "[{},[],{\"a\":[1,-2],\"b\":{\"c\":true}},\"end\"]");
}

static void test_numbers(void **unused) {
  (void)unused;
  char text[256];
  g3_json j = g3_json_begin(text, sizeof text);
  g3_json_array(&j);
  g3_json_int(&j, INT64_MIN);
  g3_json_uint(&j, UINT64_MAX);
  g3_json_double(&j, 0.1);
  g3_json_double(&j, 1e-8);
  g3_json_double(&j, (double)NAN);
  g3_json_double(&j, (double)INFINITY);
  g3_json_double(&j, -(double)INFINITY);
  g3_json_array_end(&j);
  assert_int_equal(g3_json_end(&j), G3_OK);
  assert_string_equal(text, "[-9223372036854775808,18446744073709551615,0.1,1e-08,null,null,null]");
}

static void test_a_number_may_be_all(void **unused) {
  (void)unused;
  char text[8];
  g3_json j = g3_json_begin(text, sizeof text);
  g3_json_int(&j, 5);
  assert_int_equal(g3_json_end(&j), G3_OK);
  assert_string_equal(text, "5");
}

static void test_strings_are_escaped(void **unused) {
  (void)unused;
  static const struct {
    const char *in, *out;
  } cases[] = {
      {"", "\"\""},
      {"plain / text", "\"plain / text\""},
      {"say \"hi\" \\ there", "\"say \\\"hi\\\" \\\\ there\""},
      {"\b\f\n\r\t", "\"\\b\\f\\n\\r\\t\""},
      {"\x01\x1F\x7F", "\"\\u0001\\u001f\x7F\""},
      {"caf\xC3\xA9 \xF0\x9F\x98\x80", "\"caf\xC3\xA9 \xF0\x9F\x98\x80\""},
      {"a\xFFz", "\"a\xEF\xBF\xBDz\""},
      {"cut \xE2\x82", "\"cut \xEF\xBF\xBD\xEF\xBF\xBD\""},
  };
  char text[128];
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    g3_json j = g3_json_begin(text, sizeof text);
    g3_json_string(&j, cases[i].in);
    assert_int_equal(g3_json_end(&j), G3_OK);
    assert_string_equal(text, cases[i].out);
  }
}

/* For every size: either the whole text, or an error, never a byte past the end. */
static void test_overflow_is_reported(void **unused) {
  (void)unused;
  static const char whole[] = "{\"key\":\"a\\u0001b\",\"n\":-17}";
  char text[64];
  for (size_t size = 1; size < sizeof text; size++) {
    memset(text, '#', sizeof text);
    g3_json j = g3_json_begin(text, size);
    g3_json_object(&j);
    g3_json_key(&j, "key");
    g3_json_string(&j, "a\x01"
                       "b");
    g3_json_key(&j, "n");
    g3_json_int(&j, -17);
    g3_json_object_end(&j);
    const g3_status st = g3_json_end(&j);
    if (size >= sizeof whole) {
      assert_int_equal(st, G3_OK);
      assert_string_equal(text, whole);
    } else {
      char wanted[128];
      snprintf(wanted, sizeof wanted,
               "a JSON text is longer than its %zu bytes (the first %zu fitted)", size, j.used);
      assert_int_equal(st, G3_EINVAL);
      assert_string_equal(g3_last_error(), wanted);
      assert_true(strlen(text) < size);
      assert_memory_equal(text, whole, strlen(text));
    }
    for (size_t i = size; i < sizeof text; i++)
      assert_int_equal(text[i], '#');
  }
}

static g3_json fresh(void) {
  static char text[64];
  return g3_json_begin(text, sizeof text);
}

static void value_without_key(void) {
  g3_json j = fresh();
  g3_json_object(&j);
  g3_json_int(&j, 1);
}
static void key_in_array(void) {
  g3_json j = fresh();
  g3_json_array(&j);
  g3_json_key(&j, "k");
}
static void key_after_key(void) {
  g3_json j = fresh();
  g3_json_object(&j);
  g3_json_key(&j, "k");
  g3_json_key(&j, "l");
}
static void wrong_end(void) {
  g3_json j = fresh();
  g3_json_object(&j);
  g3_json_array_end(&j);
}
static void end_after_key(void) {
  g3_json j = fresh();
  g3_json_object(&j);
  g3_json_key(&j, "k");
  g3_json_object_end(&j);
}
static void two_values(void) {
  g3_json j = fresh();
  g3_json_int(&j, 1);
  g3_json_int(&j, 2);
}
static void too_deep(void) {
  g3_json j = fresh();
  for (int i = 0; i <= G3_JSON_DEPTH; i++)
    g3_json_array(&j);
}
static void not_whole(void) {
  g3_json j = fresh();
  g3_json_array(&j);
  if (g3_json_end(&j) != G3_OK) exit(3);
}
static void nothing(void) {
  g3_json j = fresh();
  if (g3_json_end(&j) != G3_OK) exit(3);
}

static void test_bad_grammar_ends_the_job(void **unused) {
  (void)unused;
  static const struct {
    void (*mistake)(void);
    const char *says;
  } cases[] = {
      {value_without_key, "a JSON object's value lacks its key"},
      {key_in_array, "the JSON key \"k\" stands outside an object"},
      {key_after_key, "the JSON key \"l\""},
      {wrong_end, "JSON's ']' ends nothing that is open"},
      {end_after_key, "JSON's '}' ends nothing that is open"},
      {two_values, "a second JSON value after the whole one"},
      {too_deep, "JSON nests deeper than 16"},
      {not_whole, "a JSON value ends before it is whole"},
      {nothing, "a JSON value ends before it is whole"},
  };
  char said[512];
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_int_equal(death_of(cases[i].mistake, said, sizeof said), SIGABRT);
    assert_non_null(strstr(said, cases[i].says));
  }
}

static void test_deepest(void **unused) {
  (void)unused;
  char text[64];
  g3_json j = g3_json_begin(text, sizeof text);
  for (int i = 0; i < G3_JSON_DEPTH; i++)
    g3_json_array(&j);
  for (int i = 0; i < G3_JSON_DEPTH; i++)
    g3_json_array_end(&j);
  assert_int_equal(g3_json_end(&j), G3_OK);
  assert_string_equal(text, "[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_line_of_metrics),
      cmocka_unit_test(test_levels),
      cmocka_unit_test(test_numbers),
      cmocka_unit_test(test_a_number_may_be_all),
      cmocka_unit_test(test_strings_are_escaped),
      cmocka_unit_test(test_overflow_is_reported),
      cmocka_unit_test(test_bad_grammar_ends_the_job),
      cmocka_unit_test(test_deepest),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
