/* Layers to stages: all of them, one at least each, and no better way among all ways. */
#include "plan/stages.h"
#include "unit/util/cm.h"
#include <string.h>

enum { MOST = 8 };

static double costliest(const g3_model_config *m, int stages, const int *layers) {
  double most = 0.0;
  for (int s = 0; s < stages; s++) {
    const double share = g3_stage_share(m, layers[s], s == 0, s == stages - 1);
    if (share > most) most = share;
  }
  return most;
}

/* The best over all ways to deal `left` layers to the stages from `s` on. */
static double best(const g3_model_config *m, int stages, int s, int left, int *layers) {
  if (s == stages - 1) {
    layers[s] = left;
    return costliest(m, stages, layers);
  }
  double least = 2.0;
  for (int n = 1; n <= left - (stages - 1 - s); n++) {
    layers[s] = n;
    const double cost = best(m, stages, s + 1, left - n, layers);
    if (cost < least) least = cost;
  }
  return least;
}

static g3_model_config model(int64_t layers, int64_t width, int64_t seq, int64_t vocab) {
  return (g3_model_config){.layers = layers,
                           .heads = 1,
                           .width = width,
                           .ffn = 4 * width,
                           .seq = seq,
                           .vocab = vocab,
                           .tied = true};
}

static void check(const g3_model_config *m, int stages) {
  int layers[MOST], trial[MOST];
  double shares = 0.0;
  int64_t sum = 0;
  assert_int_equal(g3_stage_layers(m, stages, layers), G3_OK);
  for (int s = 0; s < stages; s++) {
    assert_in_range(layers[s], 1, m->layers);
    sum += layers[s];
    shares += g3_stage_share(m, layers[s], s == 0, s == stages - 1);
  }
  assert_int_equal(sum, m->layers);
  assert_true(shares > 1.0 - 1e-12 && shares < 1.0 + 1e-12);
  const double found = costliest(m, stages, layers);
  const double least = best(m, stages, 0, (int)m->layers, trial);
  if (found > least * (1.0 + 1e-12))
    fail_msg("%lld layers, vocabulary %lld, %d stages: the costliest has %g, could have %g",
             (long long)m->layers, (long long)m->vocab, stages, found, least);
}

static void against_all_ways(void **state) {
  (void)state;
  static const int64_t vocabs[] = {2, 257, 5000, 50257, 1000000};
  for (int64_t layers = 1; layers <= 10; layers++)
    for (int stages = 1; stages <= layers && stages <= MOST; stages++)
      for (size_t v = 0; v < sizeof vocabs / sizeof vocabs[0]; v++)
        for (int64_t width = 16; width <= 1024; width *= 8) {
          const g3_model_config m = model(layers, width, 128, vocabs[v]);
          check(&m, stages);
        }
}

/* A head that costs more than a stage's share leaves the last stage one layer. */
static void big_vocabulary(void **state) {
  (void)state;
  const g3_model_config m = model(12, 64, 64, 1000000);
  int layers[4];
  assert_int_equal(g3_stage_layers(&m, 4, layers), G3_OK);
  assert_int_equal(layers[3], 1);
  assert_int_equal(layers[0] + layers[1] + layers[2], 11);
  for (int s = 0; s < 3; s++)
    assert_in_range(layers[s], 3, 4);
}

/* What is large and even stays even. */
static void even(void **state) {
  (void)state;
  const g3_model_config m = model(128, 25600, 2048, 51200);
  int layers[64];
  assert_int_equal(g3_stage_layers(&m, 64, layers), G3_OK);
  for (int s = 0; s < 64; s++)
    assert_int_equal(layers[s], 2);
}

static void too_many_stages(void **state) {
  (void)state;
  const g3_model_config m = model(3, 64, 64, 100);
  int layers[4] = {9, 9, 9, 9};
  assert_int_equal(g3_stage_layers(&m, 4, layers), G3_EINVAL);
  assert_non_null(strstr(g3_last_error(), "4 pipeline stages"));
  assert_non_null(strstr(g3_last_error(), "model.layers = 3"));
  assert_int_equal(g3_stage_layers(&m, 0, layers), G3_EINVAL);
  for (int s = 0; s < 4; s++)
    assert_int_equal(layers[s], 9);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(against_all_ways),
                                     cmocka_unit_test(big_vocabulary), cmocka_unit_test(even),
                                     cmocka_unit_test(too_many_stages)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
