/* Settings files of other programs: what a JSON object becomes, and what is no such file. */
#include "ckpt/fields.h"
#include "unit/ckpt/st_files.h"
#include <sys/stat.h>

static const char path[] = "config.json";

static void each_kind(void **state) {
  (void)state;
  static const char text[] =
      "\xef\xbb\xbf {\"n_layer\": 12, \"eps\": 1e-05, \"tied\": true, \"off\": false,\n"
      "\"inner\": null, \"act\": \"gelu_new\", \"list\": [1, [2, 3]], \"none\": {}, \"esc\": "
      "\"a\\u001b\xc3\xa9\"}\n";
  g3_field *f;
  int n;
  write_bytes(path, text, sizeof text - 1);
  assert_int_equal(g3_fields_read(path, &f, &n), G3_OK);
  assert_int_equal(n, 9);
  static const g3_field want[] = {
      {"n_layer", G3_FIELD_NUMBER, 12, ""}, {"eps", G3_FIELD_NUMBER, 1e-5, ""},
      {"tied", G3_FIELD_BOOL, 1, ""},       {"off", G3_FIELD_BOOL, 0, ""},
      {"inner", G3_FIELD_NULL, 0, ""},      {"act", G3_FIELD_TEXT, 0, "gelu_new"},
      {"list", G3_FIELD_LIST, 2, ""},       {"none", G3_FIELD_LIST, 0, ""},
      {"esc", G3_FIELD_TEXT, 0, "a???"}};
  for (int i = 0; i < n; i++) {
    assert_string_equal(f[i].key, want[i].key);
    assert_int_equal(f[i].kind, want[i].kind);
    assert_true(f[i].number == want[i].number);
    assert_string_equal(f[i].text, want[i].text);
  }
  free(f);
}

static void refuse(const char *text, size_t size, const char *part) {
  g3_field *f = NULL;
  int n = -1;
  write_bytes(path, text, size);
  assert_int_equal(g3_fields_read(path, &f, &n), G3_EFORMAT);
  if (!strstr(g3_last_error(), part) || !strstr(g3_last_error(), path))
    fail_msg("\"%s\" lacks \"%s\"", g3_last_error(), part);
  assert_null(f);
  assert_int_equal(n, -1);
}

static void no_such_files(void **state) {
  (void)state;
  static const struct {
    const char *text, *part;
  } bad[] = {{"", "is not JSON"},
             {"   ", "is not JSON"},
             {"{\"a\":1", "is not JSON: it makes no sense at byte 6 of 6"},
             {"{\"a\":1,}", "is not JSON"},
             {"{\"a\":1} x", "is not JSON"},
             {"{\"a\":tru}", "is not JSON"},
             {"{a:1}", "is not JSON"},
             {"{\"a\":\"\\ud800\"}", "is not JSON"},
             {"[{\"a\":1}]", "no object"},
             {"\"a\"", "no object"},
             {"{\"a\":1,\"b\":2,\"a\":1}", "\"a\" is there twice"},
             {"{\"a\":\"x\\u0000y\"}", "holds a NUL"},
             {"{\"a\\n\":1}", "the key \"a?\""},
             {"{\"1234567890123456789012345678901234567890123456789012345678901234\":1}",
              "longer than 63 bytes"}};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    refuse(bad[i].text, strlen(bad[i].text), bad[i].part);
  refuse("{\"a\":\0 1}", 9, "byte 5 is NUL");
}

static void unreadable_files(void **state) {
  (void)state;
  g3_field *f;
  int n;
  unlink(path);
  assert_int_equal(g3_fields_read(path, &f, &n), G3_EIO);
  assert_non_null(strstr(g3_last_error(), "cannot open config.json: No such file"));
  assert_int_equal(mkdir(path, 0777), 0);
  assert_int_equal(g3_fields_read(path, &f, &n), G3_EIO);
  assert_int_equal(rmdir(path), 0);
  /* A hole of 16 MiB and a byte. */
  write_bytes(path, "", 0);
  assert_int_equal(truncate(path, (16 << 20) + 1), 0);
  assert_int_equal(g3_fields_read(path, &f, &n), G3_EFORMAT);
  assert_non_null(strstr(g3_last_error(), "has 16777217 bytes; at most 16777216"));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(each_kind), cmocka_unit_test(no_such_files),
                                     cmocka_unit_test(unreadable_files)};
  return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
