#include "optim/optim.h"
#include "util/fixed.h"
#include "util/half.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { PARAMS = 4, DP = 4, MOST = 1 << 14 };

/* Sizes that fill no bucket; "a" has padding behind its real elements. */
static const struct {
  const char *name;
  int64_t real, held;
  bool decay;
} table[PARAMS] = {
    {"a", 300, 320, true}, {"b", 70, 70, false}, {"c", 5003, 5003, true}, {"d", 33, 33, false}};

static const g3_optim_config config = {
    .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1, .clip = 1};

/* `parts` ranks that share one set of weights, as after every gather, and of gradients, as after
 * every reduction. */
typedef struct {
  g3_device *dev;
  g3_stream *s;
  g3_flat *flat;
  int parts;
  g3_optim *rank[DP];
  void *memory[DP];
  g3_tensor params, grads;
} fleet;

static void make_flat(fleet *f, const g3_param *spoiled) {
  g3_param params[PARAMS];
  memset(params, 0, sizeof params);
  for (int i = 0; i < PARAMS; i++) {
    if (spoiled) params[i] = spoiled[i];
    snprintf(params[i].name, sizeof params[i].name, "%s", table[i].name);
    params[i].number = i;
    params[i].group = i;
    params[i].slice = g3_slice_whole(1, &table[i].real);
    params[i].count = table[i].held;
    params[i].decay = table[i].decay;
  }
  assert_int_equal(g3_flat_create(params, PARAMS, DP, 400, &f->flat), G3_OK);
  assert_in_range(f->flat->count, 1, MOST);
}

/* The optimizer of one rank, laid out on measuring arenas and then on real memory. */
static void make_rank(fleet *f, int index, const g3_optim_spec *spec) {
  g3_arenas plan = g3_arenas_measuring(), real = plan;
  g3_optim *measured = NULL;
  assert_int_equal(g3_optim_create(spec, &plan, &measured), G3_OK);
  g3_optim_destroy(measured);
  const size_t bytes = plan.of[G3_MEM_OPTIM].used;
  f->memory[index] = aligned_alloc(G3_ARENA_ALIGN, bytes);
  assert_non_null(f->memory[index]);
  memset(f->memory[index], 0, bytes);
  real.of[G3_MEM_OPTIM] = (g3_arena){f->memory[index], 0, bytes};
  assert_int_equal(g3_optim_create(spec, &real, &f->rank[index]), G3_OK);
  assert_int_equal(real.of[G3_MEM_OPTIM].used, bytes);
}

/* Weights are NaN where no parameter has an element: nothing may look at padding. */
static void fill_weights(fleet *f) {
  const bool low = f->params.dtype == G3_BF16;
  for (int64_t i = 0; i < f->flat->count; i++) {
    if (low)
      ((g3_bf16 *)f->params.data)[i] = g3_f32_to_bf16(NAN);
    else
      ((float *)f->params.data)[i] = NAN;
    ((float *)f->grads.data)[i] = NAN;
  }
  for (int p = 0; p < PARAMS; p++)
    for (int64_t i = 0; i < table[p].real; i++) {
      const float w = g3_bf16_to_f32(g3_f32_to_bf16(sinf((float)(i + 31 * p))));
      const int64_t at = f->flat->param[p].offset + i;
      if (low)
        ((g3_bf16 *)f->params.data)[at] = g3_f32_to_bf16(w);
      else
        ((float *)f->params.data)[at] = w;
    }
}

static fleet make(int parts, g3_dtype dtype, const g3_param *spoiled) {
  fleet f = {.parts = parts};
  assert_int_equal(g3_device_open("cpu", 2, &f.dev), G3_OK);
  assert_int_equal(f.dev->ops->stream_create(f.dev, false, g3_tensor_none(), &f.s), G3_OK);
  make_flat(&f, spoiled);
  f.params = g3_tensor_1d(calloc(MOST, 4), dtype, f.flat->count);
  f.grads = g3_tensor_1d(calloc(MOST, 4), G3_F32, f.flat->count);
  assert_true(f.params.data && f.grads.data);
  fill_weights(&f);
  for (int r = 0; r < parts; r++) {
    const g3_optim_spec spec = {.flat = f.flat,
                                .params = f.params,
                                .grads = f.grads,
                                .parts = parts,
                                .index = r,
                                .nsquares = PARAMS,
                                .counts_tp = true,
                                .counts_all = true};
    make_rank(&f, r, &spec);
    assert_int_equal(g3_optim_adopt(f.rank[r], f.s), G3_OK);
  }
  return f;
}

static void drop(fleet *f) {
  for (int r = 0; r < f->parts; r++) {
    g3_optim_destroy(f->rank[r]);
    free(f->memory[r]);
  }
  free(f->params.data);
  free(f->grads.data);
  g3_flat_destroy(f->flat);
  f->dev->ops->stream_destroy(f->s);
  g3_device_close(f->dev);
}

/* Multiples of 1/64, so that sums of squares are exact in any order; every ninth is zero. */
static float gradient(int step, int p, int64_t i) {
  const uint32_t h = (uint32_t)(i * 2654435761 + step * 40503 + p * 977) * 2246822519u;
  return i % 9 == 4 ? 0 : (float)((int)(h >> 26) - 32) / 64 * (step % 3 ? 1 : 0.015625f);
}

static void fill_gradients(fleet *f, int step) {
  for (int p = 0; p < PARAMS; p++)
    for (int64_t i = 0; i < table[p].real; i++)
      ((float *)f->grads.data)[f->flat->param[p].offset + i] = gradient(step, p, i);
}

static g3_control control_of(const g3_optim *o) {
  g3_control c;
  memcpy(&c, g3_optim_control(o).data, sizeof c);
  return c;
}

/* One step of all ranks; the reduction of the sums is ours. */
static void step_with(fleet *f, const g3_optim_config *c, double lr, double loss) {
  enum { N = G3_SUM_SQUARES + PARAMS };
  double total[N] = {0};
  total[G3_SUM_LOSS] = loss;
  for (int r = 0; r < f->parts; r++) {
    double *sums = g3_optim_sums(f->rank[r]).data;
    assert_int_equal(g3_tensor_count(g3_optim_sums(f->rank[r])), N);
    memset(sums, 0, N * sizeof *sums);
    assert_int_equal(g3_optim_squares(f->rank[r], f->s), G3_OK);
    for (int i = 0; i < N; i++)
      total[i] += sums[i];
  }
  for (int r = 0; r < f->parts; r++) {
    memcpy(g3_optim_sums(f->rank[r]).data, total, sizeof total);
    assert_int_equal(g3_optim_step(f->rank[r], f->s, c, lr), G3_OK);
  }
  assert_int_equal(f->dev->ops->sync(f->s), G3_OK);
}

static double rate(int step) {
  return 2e-3 * step / 10;
}

/* Algorithm 2 of Loshchilov and Hutter in float64, with the clipping of the whole norm before it.
 */
static double reference[PARAMS][MOST];

static void run_reference(int steps) {
  static double m[PARAMS][MOST], v[PARAMS][MOST];
  memset(m, 0, sizeof m);
  memset(v, 0, sizeof v);
  for (int p = 0; p < PARAMS; p++)
    for (int64_t i = 0; i < table[p].real; i++)
      reference[p][i] = (double)g3_bf16_to_f32(g3_f32_to_bf16(sinf((float)(i + 31 * p))));
  for (int t = 1; t <= steps; t++) {
    double squares = 0;
    for (int p = 0; p < PARAMS; p++)
      for (int64_t i = 0; i < table[p].real; i++)
        squares += (double)gradient(t, p, i) * (double)gradient(t, p, i);
    const double factor = fmin(1, config.clip / (sqrt(squares) + 1e-6));
    for (int p = 0; p < PARAMS; p++)
      for (int64_t i = 0; i < table[p].real; i++) {
        const double g = factor * (double)gradient(t, p, i);
        m[p][i] = config.beta1 * m[p][i] + (1 - config.beta1) * g;
        v[p][i] = config.beta2 * v[p][i] + (1 - config.beta2) * g * g;
        const double mhat = m[p][i] / (1 - pow(config.beta1, t));
        const double vhat = v[p][i] / (1 - pow(config.beta2, t));
        const double decay = table[p].decay ? config.weight_decay : 0;
        reference[p][i] -= rate(t) * (mhat / (sqrt(vhat) + config.eps) + decay * reference[p][i]);
      }
  }
}

static void ten_steps_follow_the_algorithm(void **state) {
  (void)state;
  fleet f = make(1, G3_F32, NULL);
  run_reference(10);
  for (int t = 1; t <= 10; t++) {
    fill_gradients(&f, t);
    step_with(&f, &config, rate(t), 1);
  }
  for (int p = 0; p < PARAMS; p++) {
    double wrong = 0, moved = 0;
    for (int64_t i = 0; i < table[p].real; i++) {
      const double found = (double)((float *)f.params.data)[f.flat->param[p].offset + i];
      const double start = (double)g3_bf16_to_f32(g3_f32_to_bf16(sinf((float)(i + 31 * p))));
      wrong += pow(found - reference[p][i], 2);
      moved += pow(reference[p][i] - start, 2);
      /* Without a gradient only decay moves a weight. */
      if (i % 9 == 4 && !table[p].decay) assert_true(found == start);
      if (i % 9 == 4 && table[p].decay && i > 0) assert_true(fabs(found) < fabs(start));
    }
    if (!(sqrt(wrong / moved) < 3e-5))
      fail_msg("%s: off by %g of the way", table[p].name, sqrt(wrong / moved));
  }
  assert_int_equal(control_of(f.rank[0]).applied_steps, 10);
  drop(&f);
}

static void the_norm_counts_real_elements_and_clips_as_pytorch_does(void **state) {
  (void)state;
  static const double limits[] = {1, 0.05, 1e6, 0};
  for (size_t k = 0; k < sizeof limits / sizeof *limits; k++) {
    fleet f = make(1, G3_F32, NULL);
    g3_optim_config c = config;
    c.clip = limits[k];
    double squares = 0;
    for (int p = 0; p < PARAMS; p++)
      for (int64_t i = 0; i < table[p].real; i++)
        squares += (double)gradient(1, p, i) * (double)gradient(1, p, i);
    fill_gradients(&f, 1);
    step_with(&f, &c, 1e-3, 1);
    const g3_control found = control_of(f.rank[0]);
    assert_true(found.norm == sqrt(squares));
    const double factor =
        limits[k] > 0 ? fmin(1, (double)(float)limits[k] / (sqrt(squares) + 1e-6)) : 1;
    assert_true(found.clip == (float)factor);
    assert_int_equal(found.skip, 0);
    drop(&f);
  }
}

/* The first moment shows the clipped gradient itself: (1 - beta1) * factor * g. */
static void moments_hold_clipped_gradients(void **state) {
  (void)state;
  fleet f = make(1, G3_F32, NULL);
  fill_gradients(&f, 1);
  step_with(&f, &config, 1e-3, 1);
  const double factor = (double)control_of(f.rank[0]).clip;
  assert_true(factor < 0.1);
  int n = 0;
  const g3_segment *segment = g3_optim_segments(f.rank[0], &n);
  const float *m = g3_optim_exp_avg(f.rank[0]).data, *v = g3_optim_exp_avg_sq(f.rank[0]).data;
  int64_t seen = 0;
  for (int k = 0; k < n; k++)
    for (int64_t i = 0; i < segment[k].count; i++, seen++) {
      const double g = factor * (double)gradient(1, segment[k].param, segment[k].start + i);
      assert_true(fabs((double)m[segment[k].shard + i] - 0.1 * g) <= 1e-6 * fabs(g));
      assert_true(fabs((double)v[segment[k].shard + i] - 0.05 * g * g) <= 1e-6 * g * g);
    }
  assert_int_equal(seen, 300 + 70 + 5003 + 33);
  drop(&f);
}

static void a_step_that_is_not_finite_changes_nothing(void **state) {
  (void)state;
  static const struct {
    float gradient;
    double loss;
  } bad[] = {{NAN, 1}, {INFINITY, 1}, {-INFINITY, 1}, {0, NAN}, {0, INFINITY}};
  static uint8_t before[MOST * 4], after[MOST * 4];
  for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
    fleet f = make(1, G3_F32, NULL);
    fill_gradients(&f, 1);
    step_with(&f, &config, rate(1), 1);
    g3_optim *o = f.rank[0];
    const size_t bytes = g3_tensor_bytes(f.params), shard = g3_tensor_bytes(g3_optim_exp_avg(o));
    memcpy(before, f.params.data, bytes);
    memcpy(after, g3_optim_exp_avg(o).data, shard);
    fill_gradients(&f, 2);
    ((float *)f.grads.data)[f.flat->param[2].offset + 17] = bad[k].gradient;
    step_with(&f, &config, rate(2), bad[k].loss);
    assert_int_equal(control_of(o).skip, 1);
    assert_int_equal(control_of(o).applied_steps, 1);
    assert_memory_equal(f.params.data, before, bytes);
    assert_memory_equal(g3_optim_exp_avg(o).data, after, shard);
    /* The next good one goes on with t = 2. */
    fill_gradients(&f, 2);
    step_with(&f, &config, rate(2), 1);
    assert_int_equal(control_of(o).skip, 0);
    assert_int_equal(control_of(o).applied_steps, 2);
    assert_memory_not_equal(f.params.data, before, bytes);
    drop(&f);
  }
}

static void four_shards_make_the_same_bits_as_one(void **state) {
  (void)state;
  static const g3_dtype dtypes[] = {G3_F32, G3_BF16};
  for (size_t k = 0; k < 2; k++) {
    fleet one = make(1, dtypes[k], NULL), four = make(DP, dtypes[k], NULL);
    for (int t = 1; t <= 5; t++) {
      fill_gradients(&one, t);
      fill_gradients(&four, t);
      step_with(&one, &config, rate(t), 1);
      step_with(&four, &config, rate(t), 1);
      assert_memory_equal(one.params.data, four.params.data, g3_tensor_bytes(one.params));
    }
    assert_int_equal(g3_tensor_count(g3_optim_exp_avg(four.rank[0])), one.flat->count / DP);
    assert_true(control_of(one.rank[0]).norm == control_of(four.rank[3]).norm);
    drop(&one);
    drop(&four);
  }
}

/* bf16 weights are the rounded masters, and these go the way of f32 weights. */
static void bf16_weights_follow_f32_masters(void **state) {
  (void)state;
  fleet full = make(1, G3_F32, NULL), low = make(1, G3_BF16, NULL);
  assert_null(g3_optim_master(full.rank[0]).data);
  const float *master = g3_optim_master(low.rank[0]).data;
  for (int t = 0; t <= 6; t++) {
    if (t > 0) {
      fill_gradients(&full, t);
      fill_gradients(&low, t);
      step_with(&full, &config, rate(t), 1);
      step_with(&low, &config, rate(t), 1);
    }
    int n = 0, inexact = 0;
    const g3_segment *segment = g3_optim_segments(low.rank[0], &n);
    for (int k = 0; k < n; k++)
      for (int64_t i = 0; i < segment[k].count; i++) {
        const float m = master[segment[k].shard + i];
        assert_true(m == ((float *)full.params.data)[segment[k].flat + i]);
        const g3_bf16 w = ((g3_bf16 *)low.params.data)[segment[k].flat + i];
        assert_int_equal(w, g3_f32_to_bf16(m));
        inexact += g3_bf16_to_f32(w) != m;
      }
    assert_true(t == 0 ? inexact == 0 : inexact > 1000);
  }
  drop(&full);
  drop(&low);
}

/* Over all ranks each element counts once: not the second copy of a tied embedding, what is whole
 * on tp only where tp is 0, and nothing on ranks that hold what others count. */
static void each_element_counts_once(void **state) {
  (void)state;
  g3_param marks[PARAMS];
  memset(marks, 0, sizeof marks);
  marks[1].whole_on_tp = true;
  marks[3].copy = true;
  for (int tp = 0; tp < 2; tp++)
    for (int all = 0; all < 2; all++) {
      fleet f = make(1, G3_F32, marks);
      fill_gradients(&f, 1);
      const g3_optim_spec spec = {.flat = f.flat,
                                  .params = f.params,
                                  .grads = f.grads,
                                  .parts = 1,
                                  .nsquares = PARAMS,
                                  .counts_tp = tp == 0,
                                  .counts_all = all == 1};
      make_rank(&f, 1, &spec);
      f.parts = 2; /* drop both */
      assert_int_equal(g3_optim_squares(f.rank[1], f.s), G3_OK);
      const double *sums = g3_optim_sums(f.rank[1]).data;
      for (int p = 0; p < PARAMS; p++) {
        const bool counted = all && p != 3 && (p != 1 || tp == 0);
        assert_true((sums[G3_SUM_SQUARES + p] > 0) == counted);
      }
      drop(&f);
    }
}

/* What each of `parts` ranks adds to the exact sums, summed up as an all-reduce does: whole numbers
 * in the limbs. */
static void exact_sums_of(int parts, double norm_and_loss[2]) {
  fleet f = make(parts, G3_F32, NULL);
  g3_comm *self;
  g3_tensor total = g3_tensor_none();
  double limbs[(1 + PARAMS) * G3_FIXED_SIZE] = {0};
  assert_int_equal(g3_comm_self(&self), G3_OK);
  for (int p = 0; p < PARAMS; p++)
    for (int64_t i = 0; i < table[p].real; i++)
      ((float *)f.grads.data)[f.flat->param[p].offset + i] =
          sinf((float)(i * 31 + p)) * ldexpf(1, (int)(i % 40) - 20);
  const int64_t n = (1 + PARAMS) * G3_FIXED_SIZE;
  for (int r = 0; r < parts; r++) {
    g3_optim_destroy(f.rank[r]);
    free(f.memory[r]);
    const g3_optim_spec spec = {.flat = f.flat,
                                .params = f.params,
                                .grads = f.grads,
                                .parts = parts,
                                .index = r,
                                .nsquares = PARAMS,
                                .counts_tp = true,
                                .counts_all = true,
                                .exact = true};
    make_rank(&f, r, &spec);
    float loss[3] = {1.1f, 2.7f, (float)(1 + r) * 0.3f};
    const g3_tensor at = g3_optim_loss(f.rank[r]);
    assert_int_equal(g3_tensor_count(at), G3_FIXED_SIZE);
    assert_int_equal(f.dev->ops->exact_sum(f.s, at, g3_tensor_1d(loss, G3_F32, 2), false), G3_OK);
    assert_int_equal(g3_optim_clear(f.rank[r], f.s), G3_OK);
    if (r == 0)
      assert_int_equal(f.dev->ops->exact_sum(f.s, at, g3_tensor_1d(loss, G3_F32, 2), false), G3_OK);
    assert_int_equal(g3_optim_squares(f.rank[r], f.s), G3_OK);
    for (int64_t k = 0; k < n; k++)
      limbs[k] += ((const double *)at.data)[k];
    total = at;
  }
  memcpy(total.data, limbs, (size_t)n * sizeof *limbs);
  g3_optim *last = f.rank[parts - 1];
  assert_int_equal(g3_optim_sum_up(last, f.s, self, false), G3_OK);
  assert_int_equal(g3_optim_step(last, f.s, &config, 0), G3_OK);
  const g3_control c = control_of(last);
  norm_and_loss[0] = c.norm;
  norm_and_loss[1] = c.loss_sum;
  g3_comm_destroy(self);
  drop(&f);
}

/* However ZeRO cuts the gradients, the norm is the same to the bit, and right. */
static void the_exact_norm_is_that_of_any_ranges(void **state) {
  (void)state;
  double one[2], four[2];
  long double want = 0;
  for (int p = 0; p < PARAMS; p++)
    for (int64_t i = 0; i < table[p].real; i++) {
      const long double g =
          (long double)(sinf((float)(i * 31 + p)) * ldexpf(1, (int)(i % 40) - 20));
      want += g * g;
    }
  exact_sums_of(1, one);
  exact_sums_of(DP, four);
  assert_memory_equal(one, four, sizeof one);
  assert_true(fabsl((long double)one[0] - sqrtl(want)) < 1e-14L * sqrtl(want));
  assert_true(one[1] == (double)1.1f + (double)2.7f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ten_steps_follow_the_algorithm),
      cmocka_unit_test(the_norm_counts_real_elements_and_clips_as_pytorch_does),
      cmocka_unit_test(moments_hold_clipped_gradients),
      cmocka_unit_test(a_step_that_is_not_finite_changes_nothing),
      cmocka_unit_test(four_shards_make_the_same_bits_as_one),
      cmocka_unit_test(bf16_weights_follow_f32_masters),
      cmocka_unit_test(each_element_counts_once),
      cmocka_unit_test(the_exact_norm_is_that_of_any_ranges),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
