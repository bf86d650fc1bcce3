/* safetensors files: what is read, what is refused with which words, and that what is written is
 * read back. */
#include "unit/ckpt/st_files.h"
#include <math.h>
#include <stdbool.h>
#include <sys/stat.h>

static const char model[] = "model.safetensors";

#define ENTRY(name, dtype, shape, begin, end)                                                      \
  "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" begin "," end "]" \
  "}"

/* The whole header is one text, and true to its length. */
static void write_plain(const char *path, const char *header, const void *data, size_t n) {
  write_st(path, strlen(header), header, data, n);
}

static void reads_three_types_exactly(void **state) {
  (void)state;
  static const uint16_t data[] = {
      0x3C00, 0xC000, 0x0001, 0x7BFF, /* F16: 1, -2, 2^-24, 65504 */
      0x3F80, 0xC000, 0x0001, /* BF16: 1, -2, 2^-133 */
      0x0000, 0x3F80, 0x0000, 0xBF00 /* F32: 1, -0.5 */
  };
  static const char header[] = "{" ENTRY("b", "BF16", "[3]", "8", "14") "," ENTRY(
      "c", "F32", "[1,2]", "14",
      "22") ",\"__metadata__\":{\"format\":\"pt\"}," ENTRY("a", "F16", "[2,2]", "0", "8") "}   ";
  write_plain(model, header, data, sizeof data);
  g3_safetensors *set = opened();
  float x[4];
  assert_int_equal(g3_safetensors_count(set), 3);
  const g3_st_tensor *t = g3_safetensors_at(set, 0);
  assert_string_equal(t->name, "a");
  assert_int_equal(t->dtype, G3_ST_F16);
  assert_int_equal(t->ndim, 2);
  assert_int_equal(t->dim[0], 2);
  assert_int_equal(t->count, 4);
  assert_int_equal(g3_safetensors_read(set, t, x), G3_OK);
  assert_true(x[0] == 1.0f && x[1] == -2.0f && x[2] == 0x1p-24f && x[3] == 65504.0f);
  assert_int_equal(g3_safetensors_read(set, g3_safetensors_at(set, 1), x), G3_OK);
  assert_true(x[0] == 1.0f && x[1] == -2.0f && x[2] == 0x1p-133f);
  assert_int_equal(g3_safetensors_read(set, g3_safetensors_at(set, 2), x), G3_OK);
  assert_true(x[0] == 1.0f && x[1] == -0.5f);
  assert_int_equal(g3_safetensors_find(set, "c"), 2);
  assert_int_equal(g3_safetensors_find(set, "aa"), -1);
  assert_int_equal(g3_safetensors_find(set, ""), -1);
  g3_safetensors_close(set);
}

static void knows_types_that_it_does_not_read(void **state) {
  (void)state;
  static const char header[] =
      "{" ENTRY("mask", "BOOL", "[1,1,2,2]", "0", "4") "," ENTRY("big", "I64", "[]", "4", "12") "}";
  static const char data[12] = {0};
  char shape[G3_ST_SHAPE_TEXT];
  write_plain(model, header, data, sizeof data);
  g3_safetensors *set = opened();
  const g3_st_tensor *big = g3_safetensors_at(set, 0), *mask = g3_safetensors_at(set, 1);
  assert_int_equal(big->ndim, 0);
  assert_int_equal(big->count, 1);
  assert_string_equal(g3_st_shape_text(big->ndim, big->dim, shape), "[]");
  assert_string_equal(g3_st_shape_text(mask->ndim, mask->dim, shape), "[1, 1, 2, 2]");
  assert_string_equal(g3_st_dtype_name(mask->dtype), "BOOL");
  g3_safetensors_close(set);
}

/* Headers that are refused, over 8 bytes of data. */
static void refuses_headers(void **state) {
  (void)state;
  static const struct {
    const char *header, *part1, *part2;
  } bad[] = {
      {"", "is not JSON", "byte 0"},
      {"{", "is not JSON", "header of ./model.safetensors"},
      {"[]", "no object", ""},
      {"3", "no object", ""},
      {"{} {}", "is not JSON", ""},
      {"{}", "holds no tensors", ""},
      {"{\"__metadata__\":{}}", "holds no tensors", ""},
      {"{\"__metadata__\":3}", "__metadata__ wants dtype", ""},
      {"{\"a\":3}", "a wants dtype, shape and data_offsets", ""},
      {"{\"a\":[1,2,3]}", "a wants dtype, shape and data_offsets", ""},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", "a wants dtype, shape and data_offsets", ""},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"shape\":[2]}}", "once each", ""},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"x\":1}}", "alone", ""},
      {"{" ENTRY("a", "F31", "[2]", "0", "8") "}", "a has no type that is known", ""},
      {"{\"a\":{\"dtype\":7,\"shape\":[2],\"data_offsets\":[0,8]}}", "no type that is known", ""},
      {"{" ENTRY("a", "F32", "2", "0", "8") "}", "a wants a shape", ""},
      {"{" ENTRY("a", "F32", "[1,1,1,1,1,1,1,1,2]", "0", "8") "}", "at most 8 dimensions", ""},
      {"{" ENTRY("a", "F32", "[2,0]", "0", "0") "}", "dimension 1 of a", "above 0"},
      {"{" ENTRY("a", "F32", "[-2]", "0", "8") "}", "dimension 0 of a", "above 0"},
      {"{" ENTRY("a", "F32", "[1.5]", "0", "8") "}", "dimension 0 of a", "above 0"},
      {"{" ENTRY("a", "F32", "[1e999]", "0", "8") "}", "dimension 0 of a", "above 0"},
      {"{" ENTRY("a", "F32", "[\"2\"]", "0", "8") "}", "dimension 0 of a", "above 0"},
      {"{" ENTRY("a", "F32", "[4294967296,4294967296]", "0", "8") "}", "the shape of a", "counted"},
      {"{" ENTRY("a", "F64", "[4503599627370496,1024]", "0", "8") "}", "needs another size",
       "a has 8"},
      {"{" ENTRY("a", "F32", "[2]", "0", "4") "}", "a has 4 bytes, but [2] of F32", ""},
      {"{" ENTRY("a", "F16", "[2]", "0", "8") "}", "a has 8 bytes, but [2] of F16", ""},
      {"{" ENTRY("a", "F32", "[2]", "4", "12") "}", "a lies in bytes 4 to 12", "has 8 bytes"},
      {"{" ENTRY("a", "F32", "[2]", "8", "0") "}", "a lies in bytes 8 to 0", ""},
      {"{" ENTRY("a", "F32", "[2]", "-8", "0") "}", "a wants data_offsets", ""},
      {"{" ENTRY("a", "F32", "[2]", "0.5", "8.5") "}", "a wants data_offsets", ""},
      {"{" ENTRY("a", "F32", "[2]", "0", "18446744073709551616") "}", "a wants data_offsets", ""},
      {"{" ENTRY("a", "F32", "[2]", "0", "9007199254740992") "}", "a lies in bytes 0 to 9007", ""},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8,8]}}", "data_offsets, two",
       ""},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":8}}", "data_offsets, two", ""},
      {"{" ENTRY("a", "F32", "[1]", "0", "4") "," ENTRY("b", "F32", "[1]", "0", "4") "}",
       "a and b overlap", ""},
      {"{" ENTRY("a", "F32", "[1]", "0", "4") "," ENTRY("b", "F32", "[1]", "3", "7") "}",
       "a and b overlap", ""},
      {"{" ENTRY("a", "F32", "[1]", "4", "8") "}", "4 bytes before a belong to no tensor", ""},
      {"{" ENTRY("a", "F32", "[1]", "0", "4") "}", "the last 4 bytes belong to no tensor", ""},
      {"{" ENTRY("a", "F16", "[1]", "0", "2") "," ENTRY("b", "F16", "[2]", "4", "8") "}",
       "2 bytes before b belong to no tensor", ""},
      {"{" ENTRY("a", "F32", "[1]", "0", "4") "," ENTRY("a", "F32", "[1]", "4", "8") "}",
       "\"a\" is there twice", ""},
      {"{" ENTRY("", "F32", "[2]", "0", "8") "}", "name of a tensor has 0 bytes", ""},
      {"{" ENTRY("a b", "F32", "[2]", "0", "8") "}", "printable ASCII", ""},
      {"{" ENTRY("a\\u001b[2J", "F32", "[2]", "0", "8") "}", "printable ASCII", ""},
      {"{" ENTRY("\xc3\xa9", "F32", "[2]", "0", "8") "}", "printable ASCII", ""},
      {"{" ENTRY("a\\u0000b", "F32", "[2]", "0", "8") "}", "holds a NUL", ""},
  };
  static const char data[8] = {0};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    write_plain(model, bad[i].header, data, sizeof data);
    refused(G3_EFORMAT, bad[i].part1, bad[i].part2);
  }
}

static void refuses_long_names_and_deep_headers(void **state) {
  (void)state;
  enum { DEEP = 100000 };
  static char text[DEEP + 16];
  char header[G3_ST_NAME + 128], name[G3_ST_NAME + 1];
  memset(name, 'n', sizeof name - 1);
  name[sizeof name - 1] = '\0';
  snprintf(header, sizeof header,
           "{\"%s\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", name);
  write_plain(model, header, "12345678", 8);
  refused(G3_EFORMAT, "name of a tensor has 256 bytes", "wanted 1 to 255");
  memset(text, '[', DEEP);
  write_plain(model, text, "", 0);
  refused(G3_EFORMAT, "is not JSON", "");
}

/* The first eight bytes, and files that end too early. */
static void refuses_lengths(void **state) {
  (void)state;
  static const char header[] = "{" ENTRY("a", "F32", "[2]", "0", "8") "}";
  static const uint64_t lengths[] = {
      0,          sizeof header - 2, sizeof header + 8, 1ull << 24 | 1, 1ull << 31,
      1ull << 32, 1ull << 63,        UINT64_MAX - 7,    UINT64_MAX};
  for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
    write_st(model, lengths[i], header, "12345678", 8);
    refused(G3_EFORMAT, "header", "./model.safetensors");
  }
  write_bytes(model, "", 0);
  refused(G3_EFORMAT, "has 0 bytes", "no room for a header's length");
  write_bytes(model, "1234567", 7);
  refused(G3_EFORMAT, "has 7 bytes", "");
  write_plain(model, header, "1234567", 7);
  refused(G3_EFORMAT, "a lies in bytes 0 to 8 of the data, which has 7 bytes", "");
  write_st(model, sizeof header + 1, header, "\0\0", 2);
  refused(G3_EFORMAT, "is not JSON", "is NUL");
}

static void sees_a_file_that_is_cut_later(void **state) {
  (void)state;
  static const char header[] = "{" ENTRY("a", "F32", "[2]", "0", "8") "}";
  float x[2];
  write_plain(model, header, "12345678", 8);
  g3_safetensors *set = opened();
  assert_int_equal(truncate(model, (off_t)(8 + strlen(header) + 5)), 0);
  assert_int_equal(g3_safetensors_read(set, g3_safetensors_at(set, 0), x), G3_EFORMAT);
  assert_non_null(strstr(g3_last_error(), "is cut"));
  g3_safetensors_close(set);
}

static void refuses_what_is_not_there(void **state) {
  (void)state;
  unlink(model);
  refused(G3_EIO, "neither model.safetensors nor model.safetensors.index.json", "");
  assert_int_equal(mkdir(model, 0777), 0);
  refused(G3_EIO, "neither", "");
  assert_int_equal(rmdir(model), 0);
}

static const char index_name[] = "model.safetensors.index.json";

static void write_index(const char *map) {
  char text[1024];
  snprintf(text, sizeof text, "{\"metadata\":{\"total_size\":16},\"weight_map\":%s}", map);
  write_bytes(index_name, text, strlen(text));
}

static void write_shards(void) {
  static const float one[] = {1.0f, 2.0f}, two[] = {3.0f, 4.0f};
  static const char first[] =
      "{" ENTRY("a", "F32", "[1]", "0", "4") "," ENTRY("c", "F32", "[1]", "4", "8") "}";
  static const char second[] = "{" ENTRY("b", "F32", "[2]", "0", "8") "}";
  unlink(model);
  write_plain("x-1.safetensors", first, one, sizeof one);
  write_plain("x-2.safetensors", second, two, sizeof two);
}

#define FIRST "\"x-1.safetensors\""
#define SECOND "\"x-2.safetensors\""

static void reads_shards(void **state) {
  (void)state;
  float x[2];
  write_shards();
  write_index("{\"c\":" FIRST ",\"b\":" SECOND ",\"a\":" FIRST "}");
  g3_safetensors *set = opened();
  assert_int_equal(g3_safetensors_count(set), 3);
  const g3_st_tensor *b = g3_safetensors_at(set, 1), *c = g3_safetensors_at(set, 2);
  assert_string_equal(b->name, "b");
  assert_string_equal(g3_safetensors_path(set, b), "./x-2.safetensors");
  assert_int_equal(g3_safetensors_read(set, b, x), G3_OK);
  assert_true(x[0] == 3.0f && x[1] == 4.0f);
  assert_int_equal(g3_safetensors_read(set, c, x), G3_OK);
  assert_true(x[0] == 2.0f);
  g3_safetensors_close(set);
}

static void refuses_indexes(void **state) {
  (void)state;
  static const struct {
    const char *map, *part1, *part2;
  } bad[] = {
      {"{}", "no weight_map", ""},
      {"[1]", "no weight_map", ""},
      {"{\"a\":3}", "the shard of \"a\" is not the plain name", ""},
      {"{\"a\":\"../x-1.safetensors\"}", "the shard of \"a\" is not the plain name", ""},
      {"{\"a\":\"/etc/x.safetensors\"}", "the shard of \"a\" is not the plain name", ""},
      {"{\"a\":\"x\\\\y.safetensors\"}", "the shard of \"a\" is not the plain name", ""},
      {"{\"a\":\"..safetensors\"}", "the shard of \"a\" is not the plain name", ""},
      {"{\"a\":\".safetensors\"}", "the shard of \"a\" is not the plain name", ""},
      {"{\"a\":\"x-1.bin\"}", "the shard of \"a\" is not the plain name", ""},
      {"{\"a\":\"\"}", "the shard of \"a\" is not the plain name", ""},
      {"{\"a\":" FIRST ",\"b\":" SECOND "}", "x-1.safetensors holds c", "does not name"},
      {"{\"a\":" FIRST ",\"b\":" SECOND ",\"c\":" SECOND "}", "c is not in ./x-2.safetensors",
       "but in ./x-1.safetensors"},
      {"{\"a\":" FIRST ",\"b\":" SECOND ",\"c\":" FIRST ",\"d\":" FIRST "}", "names \"d\"",
       "does not hold"},
      {"{\"a\":" FIRST ",\"a\":" FIRST ",\"b\":" SECOND ",\"c\":" FIRST "}", "\"a\" is there twice",
       ""},
  };
  write_shards();
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    write_index(bad[i].map);
    refused(G3_EFORMAT, bad[i].part1, bad[i].part2);
  }
  write_index("{\"a\":\"x-3.safetensors\"}");
  refused(G3_EIO, "cannot open ./x-3.safetensors", "");
  write_bytes(index_name, "not JSON", 8);
  refused(G3_EFORMAT, "model.safetensors.index.json is not JSON", "");
  /* A name in two shards. */
  write_plain("x-2.safetensors", "{" ENTRY("a", "F32", "[2]", "0", "8") "}", "12345678", 8);
  write_index("{\"a\":" FIRST ",\"b\":" SECOND ",\"c\":" FIRST "}");
  refused(G3_EFORMAT, "a, which", "twice");
  unlink(index_name);
}

static bool exists(const char *path) {
  return access(path, F_OK) == 0;
}

static void writes_what_it_reads(void **state) {
  (void)state;
  static const float one[] = {1.0f, -0.0f, INFINITY, 0x1p-149f, 5.0f, 6.0f}, two[] = {7.0f};
  const g3_st_tensor tensors[] = {{.name = "z.weight", .ndim = 2, .dim = {2, 3}},
                                  {.name = "b", .ndim = 1, .dim = {1}}};
  g3_st_writer w;
  float x[6];
  uint8_t start[8];
  assert_int_equal(g3_st_writer_begin(model, tensors, 2, &w), G3_OK);
  assert_int_equal(g3_st_writer_put(&w, one, 2), G3_OK);
  assert_int_equal(g3_st_writer_put(&w, one + 2, 4), G3_OK);
  assert_false(exists(model));
  assert_int_equal(g3_st_writer_put(&w, two, 1), G3_OK);
  assert_int_equal(g3_st_writer_end(&w), G3_OK);
  assert_false(exists("model.safetensors.tmp"));
  FILE *f = fopen(model, "rb");
  assert_int_equal(fread(start, 1, sizeof start, f), sizeof start);
  fclose(f);
  assert_int_equal(start[0] % 8, 0); /* so that the data is aligned */
  g3_safetensors *set = opened();
  const g3_st_tensor *z = g3_safetensors_at(set, 1);
  assert_string_equal(z->name, "z.weight");
  assert_int_equal(z->ndim, 2);
  assert_int_equal(z->dim[1], 3);
  assert_int_equal(g3_safetensors_read(set, z, x), G3_OK);
  assert_memory_equal(x, one, sizeof one);
  assert_int_equal(g3_safetensors_read(set, g3_safetensors_at(set, 0), x), G3_OK);
  assert_memory_equal(x, two, sizeof two);
  g3_safetensors_close(set);
}

static void leaves_nothing_of_a_write_that_fails(void **state) {
  (void)state;
  const g3_st_tensor one = {.name = "a", .ndim = 1, .dim = {1 << 20}};
  static const float zeros[1 << 20];
  g3_st_writer w;
  unlink(model);
  assert_int_equal(g3_st_writer_begin("nowhere/x", &one, 1, &w), G3_EIO);
  assert_non_null(strstr(g3_last_error(), "cannot write nowhere/x.tmp"));
  assert_int_equal(g3_st_writer_begin(model, &one, 1, &w), G3_OK);
  g3_st_writer_drop(&w);
  assert_false(exists(model) || exists("model.safetensors.tmp"));
  /* A disk that is full. */
  if (access("/dev/full", W_OK) != 0) return;
  assert_int_equal(symlink("/dev/full", "full.tmp"), 0);
  assert_int_equal(g3_st_writer_begin("full", &one, 1, &w), G3_OK);
  g3_status st = g3_st_writer_put(&w, zeros, 1 << 20);
  if (st == G3_OK)
    st = g3_st_writer_end(&w);
  else
    g3_st_writer_drop(&w);
  assert_int_equal(st, G3_EIO);
  assert_false(exists("full") || exists("full.tmp"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reads_three_types_exactly),
      cmocka_unit_test(knows_types_that_it_does_not_read),
      cmocka_unit_test(refuses_headers),
      cmocka_unit_test(refuses_long_names_and_deep_headers),
      cmocka_unit_test(refuses_lengths),
      cmocka_unit_test(sees_a_file_that_is_cut_later),
      cmocka_unit_test(refuses_what_is_not_there),
      cmocka_unit_test(reads_shards),
      cmocka_unit_test(refuses_indexes),
      cmocka_unit_test(writes_what_it_reads),
      cmocka_unit_test(leaves_nothing_of_a_write_that_fails),
  };
  return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
