/* Samples' gradients folded one by one: the tree's bits, bucket by bucket, and no others touched.
 */
#include "parallel/fold.h"
#include "unit/util/cm.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 16, COUNT = 3 * 256 };

static float leaf(int64_t sample, int64_t i) {
  const uint32_t x = (uint32_t)(sample * 2654435761) ^ (uint32_t)(i * 40503 + 977);
  return (float)(x % 1000003u) / (float)(1 + x % 97u) - 700.0f;
}

static float tree(int64_t first, int64_t count, int64_t i) {
  if (count == 1) return leaf(first, i);
  return tree(first, count / 2, i) + tree(first + count / 2, count / 2, i);
}

static g3_flat *make_flat(void) {
  g3_param p[3];
  g3_flat *f;
  const int64_t size = COUNT / 3;
  memset(p, 0, sizeof p);
  for (int i = 0; i < 3; i++) {
    snprintf(p[i].name, sizeof p[i].name, "p%d", i);
    p[i].number = p[i].group = i;
    p[i].slice = g3_slice_whole(1, &size);
    p[i].count = size;
  }
  assert_int_equal(g3_flat_create(p, 3, 1, 1, &f), G3_OK);
  assert_int_equal(f->nbuckets, 3);
  assert_int_equal(f->count, COUNT);
  return f;
}

static void run(int64_t samples) {
  g3_device *dev;
  g3_stream *s;
  static float grads[COUNT], levels[4 * COUNT];
  const int n = g3_fold_levels(samples);
  assert_in_range(n, 0, 4);
  assert_int_equal(g3_device_open("cpu", 1, &dev), G3_OK);
  assert_int_equal(dev->ops->stream_create(dev, false, g3_tensor_none(), &s), G3_OK);
  g3_flat *flat = make_flat();
  const g3_fold f = {.flat = flat,
                     .grads = g3_tensor_1d(grads, G3_F32, COUNT),
                     .levels = n ? g3_tensor_2d(levels, G3_F32, n, COUNT) : g3_tensor_none(),
                     .samples = samples};
  memset(grads, 0, sizeof grads);
  memset(levels, 0xff, sizeof levels); /* NaN: nothing is read that was not written */
  for (int64_t sample = 0; sample < samples; sample++)
    for (int b = 0; b < 3; b++) {
      const g3_bucket *bucket = &flat->bucket[b];
      for (int64_t i = bucket->offset; i < bucket->offset + bucket->count; i++)
        grads[i] += leaf(sample, i);
      assert_int_equal(g3_fold_bucket(&f, s, b, sample), G3_OK);
    }
  for (int64_t i = 0; i < COUNT; i++) {
    const float want = tree(0, samples, i);
    assert_memory_equal(&grads[i], &want, sizeof want);
  }
  g3_flat_destroy(flat);
  dev->ops->stream_destroy(s);
  g3_device_close(dev);
}

static void test_powers_of_two(void **state) {
  (void)state;
  for (int64_t samples = 1; samples <= SAMPLES; samples *= 2)
    run(samples);
}

static void test_levels(void **state) {
  (void)state;
  assert_int_equal(g3_fold_levels(1), 0);
  assert_int_equal(g3_fold_levels(2), 1);
  assert_int_equal(g3_fold_levels(INT64_C(1) << 40), 40);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_powers_of_two),
      cmocka_unit_test(test_levels),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
