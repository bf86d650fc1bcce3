/* Operands that do not fit are mistakes of the program: each op says what it was given. */
#include "device/device.h"
#include "unit/util/cm.h"
#include "unit/util/death.h"
#include <string.h>

static float memory[4096];
static int32_t ids[64];

static g3_tensor f32(int64_t m, int64_t n) {
  return g3_tensor_2d(memory, G3_F32, m, n);
}
static g3_tensor bf16(int64_t m, int64_t n) {
  return g3_tensor_2d(memory, G3_BF16, m, n);
}
static g3_tensor vec(int64_t n) {
  return g3_tensor_1d(memory, G3_F32, n);
}

static g3_stream *stream(void) {
  g3_device *dev;
  g3_stream *s;
  if (g3_device_open("cpu", 1, &dev) != G3_OK) _exit(0);
  if (dev->ops->stream_create(dev, false, g3_tensor_none(), &s) != G3_OK) _exit(0);
  return s;
}
/* A refused op must not return: what it returns is of no account here. */
#define CALL(op, ...)                                                                              \
  do {                                                                                             \
    if (g3_cpu_ops.op(stream(), __VA_ARGS__) != G3_OK) _exit(0);                                   \
  } while (0)

static void gemm_shape(void) {
  CALL(gemm, f32(4, 5), f32(4, 6), f32(7, 5), &(g3_gemm_spec){0});
}
static void gemm_transposed(void) {
  CALL(gemm, f32(4, 5), f32(4, 6), f32(6, 5), &(g3_gemm_spec){.trans_a = true});
}
static void gemm_types(void) {
  CALL(gemm, bf16(4, 5), f32(4, 6), f32(6, 5), &(g3_gemm_spec){0});
}
static void gemm_accumulate_low(void) {
  CALL(gemm, bf16(4, 5), bf16(4, 6), bf16(6, 5), &(g3_gemm_spec){.accumulate = true});
}
static void gemm_bias(void) {
  CALL(gemm, f32(4, 5), f32(4, 6), f32(6, 5), &(g3_gemm_spec){.bias = vec(4)});
}
static void column_sum(void) {
  CALL(column_sum, vec(4), f32(4, 5));
}
static void layernorm(void) {
  CALL(layernorm, f32(4, 8), vec(4), vec(4), f32(4, 8), vec(8), vec(7));
}
static void layernorm_bwd(void) {
  CALL(layernorm_bwd, f32(4, 8), g3_tensor_none(), vec(8), vec(8), f32(4, 8), bf16(4, 8), vec(8),
       vec(4), vec(4));
}
static void gelu(void) {
  CALL(gelu, vec(8), vec(9));
}
static void gelu_bwd(void) {
  CALL(gelu_bwd, vec(8), vec(8), g3_tensor_part(f32(4, 4), 1, 0, 2));
}
static void embedding(void) {
  CALL(embedding, f32(4, 8), g3_tensor_1d(ids, G3_I32, 3), f32(16, 8), 0);
}
static void embedding_bwd(void) {
  CALL(embedding_bwd, bf16(16, 8), g3_tensor_1d(ids, G3_I32, 4), bf16(4, 8), 0);
}
static void position(void) {
  CALL(position, f32(4, 8), f32(5, 8), 0, 6);
}
static void position_bwd(void) {
  CALL(position_bwd, bf16(6, 8), bf16(4, 8), 0, 6);
}
static void bias_dropout_add(void) {
  CALL(bias_dropout_add, f32(4, 8), f32(4, 8), vec(8), f32(4, 7), &(g3_dropout_spec){0});
}
static void dropout_all(void) {
  CALL(dropout_bwd, f32(4, 8), f32(4, 8), &(g3_dropout_spec){.p = 1.0f, .seq = 4});
}
static void copy(void) {
  CALL(copy, f32(4, 8), bf16(4, 8));
}
static void cast(void) {
  CALL(cast, f32(4, 8), f32(4, 8));
}
static void fill(void) {
  CALL(fill, g3_tensor_1d(ids, G3_I32, 4), 1.0f);
}
static void sum(void) {
  CALL(sum, vec(1), vec(8));
}
static void control(void) {
  CALL(control, g3_tensor_1d(memory, G3_U8, 8), g3_tensor_1d(memory, G3_F64, 4), 1.0f);
}
static void adamw_without_control(void) {
  g3_control c = {0};
  CALL(adamw, vec(8), g3_tensor_none(), vec(8), vec(8), vec(8), &(g3_adamw_spec){0},
       g3_tensor_1d(&c, G3_U8, sizeof c));
}
static void adamw_counts(void) {
  g3_control c = {.applied_steps = 1};
  CALL(adamw, vec(8), g3_tensor_none(), vec(8), vec(7), vec(8), &(g3_adamw_spec){0},
       g3_tensor_1d(&c, G3_U8, sizeof c));
}

static const struct {
  void (*mistake)(void);
  const char *says;
} mistakes[] = {
    {gemm_shape, "gemm: C [4, 5] is not the product of A [4, 6] and B [7, 5]"},
    {gemm_transposed, "A [4, 6]^T"},
    {gemm_types, "gemm: A f32, B f32, C bf16"},
    {gemm_accumulate_low, "accumulate wants C in f32"},
    {gemm_bias, "the bias is not 5 of f32"},
    {column_sum, "column_sum wants"},
    {layernorm, "layernorm: shapes or types differ from x [4, 8] f32"},
    {layernorm_bwd, "layernorm_bwd: shapes or types differ from x [4, 8] bf16"},
    {gelu, "gelu wants"},
    {gelu_bwd, "gelu_bwd wants"},
    {embedding, "embedding wants"},
    {embedding_bwd, "embedding_bwd wants"},
    {position, "position: x [4, 8] from row 0, table [5, 8], seq 6"},
    {position_bwd, "gradient is f32"},
    {bias_dropout_add, "bias_dropout_add: shapes"},
    {dropout_all, "dropout: p 1"},
    {copy, "copy from bf16 to f32: use cast"},
    {cast, "found f32 to f32"},
    {fill, "found i32"},
    {sum, "one float64"},
    {control, "not a g3_control"},
    {adamw_without_control, "before the first control"},
    {adamw_counts, "dense tensors of 8 elements"},
};

static void test_mistakes(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
    char text[4096];
    if (death_of(mistakes[i].mistake, text, sizeof text) == -1)
      fail_msg("mistake %zu, \"%s\", was not noticed", i, mistakes[i].says);
    if (!strstr(text, mistakes[i].says))
      fail_msg("wanted \"%s\" in \"%s\"", mistakes[i].says, text);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_mistakes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
