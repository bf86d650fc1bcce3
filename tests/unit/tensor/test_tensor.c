#include "tensor/tensor.h"
#include "unit/util/cm.h"
#include "unit/util/death.h"
#include <string.h>

static void test_dtypes(void **unused) {
  (void)unused;
  static const struct {
    g3_dtype t;
    const char *name;
    size_t bytes;
  } cases[] = {{G3_F32, "f32", 4},
               {G3_BF16, "bf16", 2},
               {G3_F64, "f64", 8},
               {G3_I32, "i32", 4},
               {G3_U8, "u8", 1}};
  assert_int_equal(sizeof cases / sizeof *cases, G3_DTYPE_COUNT);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_string_equal(g3_dtype_name(cases[i].t), cases[i].name);
    assert_int_equal(g3_dtype_bytes(cases[i].t), cases[i].bytes);
  }
}

static void test_dense_views(void **unused) {
  (void)unused;
  float x[120];
  const g3_tensor a = g3_tensor_1d(x, G3_F32, 120), b = g3_tensor_2d(x, G3_F32, 10, 12),
                  c = g3_tensor_3d(x, G3_F32, 4, 5, 6), d = g3_tensor_4d(x, G3_F32, 2, 3, 4, 5);
  static const int64_t strides[] = {60, 20, 5, 1};
  assert_int_equal(a.stride[0], 1);
  assert_int_equal(b.stride[0], 12);
  assert_int_equal(c.stride[0], 30);
  assert_memory_equal(d.stride, strides, sizeof strides);
  const g3_tensor all[] = {a, b, c, d};
  for (int i = 0; i < 4; i++) {
    assert_int_equal(all[i].ndim, i + 1);
    assert_int_equal(g3_tensor_count(all[i]), 120);
    assert_int_equal(g3_tensor_bytes(all[i]), sizeof x);
    assert_true(g3_tensor_dense(all[i]));
  }
  assert_ptr_equal(g3_tensor_at(b, 12 * 3 + 4), &x[40]);
}

static void test_none(void **unused) {
  (void)unused;
  const g3_tensor t = g3_tensor_none();
  assert_null(t.data);
  assert_int_equal(g3_tensor_count(t), 0);
  assert_int_equal(g3_tensor_bytes(t), 0);
}

static void test_parts(void **unused) {
  (void)unused;
  int32_t x[4][6];
  for (int i = 0; i < 24; i++)
    x[i / 6][i % 6] = i;
  const g3_tensor t = g3_tensor_2d(x, G3_I32, 4, 6);
  const g3_tensor rows = g3_tensor_part(t, 0, 1, 2), columns = g3_tensor_part(t, 1, 2, 3),
                  both = g3_tensor_part(columns, 0, 3, 1);
  assert_true(g3_tensor_dense(rows));
  assert_int_equal(*(int32_t *)rows.data, 6);
  assert_int_equal(g3_tensor_count(rows), 12);
  assert_false(g3_tensor_dense(columns));
  assert_int_equal(*(int32_t *)columns.data, 2);
  assert_int_equal(columns.stride[0], 6);
  assert_int_equal(*(int32_t *)both.data, 20);
  assert_true(g3_tensor_dense(both)); /* one row: its stride does not matter */
  assert_int_equal(g3_tensor_count(g3_tensor_part(t, 0, 4, 0)), 0);
  /* the shape of what is absent can be cut, too: plans do so */
  const g3_tensor absent = g3_tensor_part(g3_tensor_2d(NULL, G3_F32, 4, 6), 0, 2, 2);
  assert_null(absent.data);
  assert_int_equal(absent.dim[0], 2);
}

static void test_other_shapes(void **unused) {
  (void)unused;
  float x[24];
  const g3_tensor t = g3_tensor_3d(x, G3_F32, 2, 3, 4);
  const g3_tensor flat = g3_tensor_as_1d(t), table = g3_tensor_as_2d(t, 6, 4);
  assert_int_equal(flat.ndim, 1);
  assert_int_equal(flat.dim[0], 24);
  assert_int_equal(table.ndim, 2);
  assert_int_equal(table.dim[0], 6);
  assert_int_equal(table.stride[0], 4);
  assert_ptr_equal(table.data, x);
}

static void test_large_shapes_are_counted(void **unused) {
  (void)unused;
  const g3_tensor t = g3_tensor_2d(NULL, G3_F32, (int64_t)1 << 30, (int64_t)1 << 30);
  assert_true(g3_tensor_count(t) == (int64_t)1 << 60);
  assert_true(g3_tensor_bytes(t) == (size_t)1 << 62);
}

static g3_tensor small(void) {
  static float x[24];
  return g3_tensor_2d(x, G3_F32, 4, 6);
}
static void part_past_the_end(void) {
  g3_tensor_part(small(), 0, 3, 2);
}
static void part_before_the_start(void) {
  g3_tensor_part(small(), 0, -1, 2);
}
static void part_that_wraps(void) {
  g3_tensor_part(small(), 1, 2, INT64_MAX);
}
static void part_of_no_dimension(void) {
  g3_tensor_part(small(), 2, 0, 1);
}
static void flat_with_gaps(void) {
  g3_tensor_as_1d(g3_tensor_part(small(), 1, 0, 3));
}
static void wrong_shape(void) {
  g3_tensor_as_2d(small(), 5, 5);
}
static void shape_that_wraps(void) {
  g3_tensor_as_2d(small(), (int64_t)1 << 62, 8);
}
static void too_many_elements(void) {
  g3_tensor_2d(NULL, G3_F32, (int64_t)1 << 32, (int64_t)1 << 32);
}
static void negative(void) {
  g3_tensor_2d(NULL, G3_F32, 4, -1);
}
static void too_many_bytes(void) {
  g3_tensor_bytes(g3_tensor_1d(NULL, G3_F32, (int64_t)1 << 62));
}
static void no_dtype(void) {
  g3_dtype_bytes(G3_DTYPE_COUNT);
}

static void test_mistakes_end_the_job(void **unused) {
  (void)unused;
  static const struct {
    void (*mistake)(void);
    const char *says;
  } cases[] = {
      {part_past_the_end, "part [3, +2) of dimension 0 is outside the tensor"},
      {part_before_the_start, "part [-1, +2) of dimension 0 is outside the tensor"},
      {part_that_wraps, "of dimension 1 is outside the tensor"},
      {part_of_no_dimension, "part [0, +1) of dimension 2 is outside the tensor"},
      {flat_with_gaps, "only a dense tensor can take another shape"},
      {wrong_shape, "5 x 5 is not a shape of this tensor"},
      {shape_that_wraps, "4611686018427387904 x 8 is not a shape of this tensor"},
      {too_many_elements, "dimension 0 = 4294967296 is negative, or too large"},
      {negative, "dimension 1 = -1 is negative"},
      {too_many_bytes, "4611686018427387904 elements of f32 are more bytes than fit"},
      {no_dtype, "5 is no dtype"},
  };
  char said[512];
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_int_equal(death_of(cases[i].mistake, said, sizeof said), SIGABRT);
    assert_non_null(strstr(said, cases[i].says));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_dtypes),
      cmocka_unit_test(test_dense_views),
      cmocka_unit_test(test_none),
      cmocka_unit_test(test_parts),
      cmocka_unit_test(test_other_shapes),
      cmocka_unit_test(test_large_shapes_are_counted),
      cmocka_unit_test(test_mistakes_end_the_job),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
