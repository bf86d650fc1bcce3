/* Opening devices, their memory, and what cannot be opened. */
#include "device/cpu/isa.h"
#include "device/device.h"
#include "unit/util/cm.h"
#include <stdlib.h>
#include <string.h>

static void test_open_close(void **state) {
  (void)state;
  g3_device *dev;
  assert_int_equal(g3_device_open("cpu", 2, &dev), G3_OK);
  assert_ptr_equal(dev->ops, &g3_cpu_ops);
  assert_string_equal(dev->ops->name, "cpu");
  assert_int_equal(dev->threads, 2);
  g3_device_close(dev);
  g3_device_close(NULL);
}

static void test_refusals(void **state) {
  (void)state;
  static const struct {
    const char *where;
    int threads;
    g3_status want;
    const char *says;
  } cases[] = {
      {"tpu", 1, G3_EINVAL, "device 'tpu' is unknown; use cpu or cuda"},
      {"", 1, G3_EINVAL, "unknown"},
      {"cpu", 0, G3_EINVAL, "at least 1 thread, found 0"},
      {"cpu", -3, G3_EINVAL, "found -3"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    g3_device *dev = (g3_device *)state;
    assert_int_equal(g3_device_open(cases[i].where, cases[i].threads, &dev), cases[i].want);
    assert_non_null(strstr(g3_last_error(), cases[i].says));
    assert_ptr_equal(dev, state); /* out is untouched */
  }
}

static void test_tables_by_name(void **state) {
  (void)state;
  assert_ptr_equal(g3_device_ops_named("cpu"), &g3_cpu_ops);
  assert_null(g3_device_ops_named("tpu"));
}

/* Either this build has CUDA, or it says at open that it has not, and offers no half-empty table.
 */
static void test_cuda_by_name(void **state) {
  (void)state;
  assert_string_equal(g3_cuda_ops.name, "cuda");
  if (g3_cuda_ops.gemm) {
    assert_ptr_equal(g3_device_ops_named("cuda"), &g3_cuda_ops);
    return;
  }
  assert_null(g3_device_ops_named("cuda"));
  g3_device *dev = NULL;
  assert_int_equal(g3_device_open("cuda", 1, &dev), G3_EUNSUPPORTED);
  assert_non_null(strstr(g3_last_error(), "built without CUDA; use --device cpu"));
  assert_null(dev);
}

static void test_alloc(void **state) {
  (void)state;
  static const size_t sizes[] = {0, 1, 4095, 4097, 100000, (2 << 20) - 1, (2 << 20) + 1, 9000001};
  g3_device *dev;
  assert_int_equal(g3_device_open("cpu", 2, &dev), G3_OK);
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    void *p;
    assert_int_equal(dev->ops->alloc(dev, sizes[i], &p), G3_OK);
    assert_int_equal((uintptr_t)p % 4096, 0);
    const unsigned char *bytes = p;
    for (size_t k = 0; k < sizes[i]; k++)
      if (bytes[k] != 0) fail_msg("byte %zu of %zu is not zero", k, sizes[i]);
    memset(p, 0xFF, sizes[i]); /* so that memory that comes back is seen to be zeroed again */
    dev->ops->release(dev, p);
  }
  g3_device_close(dev);
}

static void test_alloc_too_much(void **state) {
  g3_device *dev;
  assert_int_equal(g3_device_open("cpu", 1, &dev), G3_OK);
  void *p = state;
  assert_int_equal(dev->ops->alloc(dev, SIZE_MAX - 5, &p), G3_ENOMEM); /* rounding up overflows */
  assert_non_null(strstr(g3_last_error(), "18446744073709551610 bytes"));
  assert_ptr_equal(p, state);
  g3_device_close(dev);
}

/* A plan made anywhere must hold everywhere: nothing but the workload may count. */
static void test_workspace_is_pure(void **state) {
  (void)state;
  const g3_workload f32 = {
      .tokens = 2048, .width = 768, .ffn = 3072, .vocab = 50257, .head_dim = 64, .dtype = G3_F32};
  g3_workload bf16 = f32;
  bf16.dtype = G3_BF16;
  assert_int_equal(g3_cpu_ops.workspace(&f32), 0);
  const size_t plain = g3_cpu_ops.workspace(&bf16);
  assert_int_equal(plain, 3 * 512 * 528 * 4);
  bf16.cut = 3072; /* blocks of [tokens, cut] and [width, cut] in f32, and 64 KiB for their edges */
  const size_t cut = g3_cpu_ops.workspace(&bf16);
  assert_int_equal(cut, plain + (size_t)(2048 + 768) * 3072 * 4 + 65536);
  g3_device *dev;
  assert_int_equal(g3_device_open("cpu", 5, &dev), G3_OK);
  assert_int_equal(dev->ops->workspace(&bf16), cut);
  g3_device_close(dev);
}

static void test_isa_can_only_be_lowered(void **state) {
  (void)state;
  unsetenv("GPT3D_ISA");
  const g3_isa best = g3_cpu_isa();
  assert_int_equal(g3_cpu_isa(), best);
  setenv("GPT3D_ISA", "v2", 1);
  assert_int_equal(g3_cpu_isa(), G3_ISA_V2);
  setenv("GPT3D_ISA", "v4", 1);
  assert_int_equal(g3_cpu_isa(), best);
  setenv("GPT3D_ISA", "v9", 1);
  assert_int_equal(g3_cpu_isa(), best);
  unsetenv("GPT3D_ISA");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_open_close),
      cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_tables_by_name),
      cmocka_unit_test(test_cuda_by_name),
      cmocka_unit_test(test_alloc),
      cmocka_unit_test(test_alloc_too_much),
      cmocka_unit_test(test_workspace_is_pure),
      cmocka_unit_test(test_isa_can_only_be_lowered),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
