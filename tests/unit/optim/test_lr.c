#include "optim/lr.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const double LR = 1e-3, MIN = 1e-4;

static g3_optim_config curve(g3_lr_schedule schedule, int64_t warmup) {
  return (g3_optim_config){
      .lr = LR, .min_lr = MIN, .schedule = schedule, .warmup = warmup, .wsd_fraction = 0.2};
}

static void assert_near(double found, double wanted) {
  if (!(fabs(found - wanted) <= 1e-12 * fabs(wanted)))
    fail_msg("%.17g is not %.17g", found, wanted);
}

static void assert_same(double found, double wanted) {
  if (!(found == wanted)) fail_msg("%.17g is not exactly %.17g", found, wanted);
}

/* For all curves and awkward warm-ups: finite, positive, never above lr, never below min_lr after
 * the peak, the peak and the last step exact. */
static void invariants_of_every_curve(void **state) {
  (void)state;
  static const int64_t warmups[] = {0, 1, 2, 4, 7, 8, 9, 20}, totals[] = {1, 2, 3, 8, 400};
  for (int schedule = G3_LR_COSINE; schedule <= G3_LR_WSD; schedule++)
    for (size_t w = 0; w < sizeof warmups / sizeof *warmups; w++)
      for (size_t n = 0; n < sizeof totals / sizeof *totals; n++) {
        const g3_optim_config c = curve((g3_lr_schedule)schedule, warmups[w]);
        const int64_t steps = totals[n], peak = warmups[w] > 1 ? warmups[w] : 1;
        double last = 0;
        for (int64_t t = 1; t <= steps + 5; t++) {
          const double lr = g3_lr_at(&c, steps, t);
          assert_true(isfinite(lr) && lr > 0 && lr <= LR);
          if (t <= peak) {
            assert_true(lr > last);
          } else {
            assert_true(lr <= last && lr >= MIN);
          }
          last = lr;
        }
        assert_same(g3_lr_at(&c, steps, peak), LR);
        if (steps > peak)
          assert_same(g3_lr_at(&c, steps, steps), schedule == G3_LR_CONSTANT ? LR : MIN);
        assert_same(g3_lr_at(&c, steps, steps + peak + 1000),
                    schedule == G3_LR_CONSTANT ? LR : MIN);
      }
}

static void warm_up_is_a_straight_line_from_the_first_step(void **state) {
  (void)state;
  const g3_optim_config c = curve(G3_LR_COSINE, 8);
  for (int t = 1; t <= 8; t++)
    assert_near(g3_lr_at(&c, 100, t), LR * t / 8);
}

/* A warm-up as long as the run, or longer, is the ramp alone. */
static void a_long_warm_up_only_rises(void **state) {
  (void)state;
  for (int warmup = 8; warmup <= 20; warmup += 12) {
    const g3_optim_config c = curve(G3_LR_LINEAR, warmup);
    for (int t = 1; t <= 8; t++)
      assert_near(g3_lr_at(&c, 8, t), LR * t / warmup);
  }
}

static void points_of_the_curves(void **state) {
  (void)state;
  static const struct {
    g3_lr_schedule schedule;
    int64_t warmup, steps, step;
    double left; /* of lr - min_lr */
  } points[] = {
      {G3_LR_COSINE, 10, 110, 60, 0.5},  {G3_LR_COSINE, 10, 110, 35, 0.85355339059327378},
      {G3_LR_COSINE, 0, 101, 51, 0.5}, /* step 1 is the peak */
      {G3_LR_LINEAR, 10, 110, 35, 0.75}, {G3_LR_LINEAR, 1, 5, 2, 0.75},
      {G3_LR_CONSTANT, 10, 110, 109, 1}, {G3_LR_WSD, 10, 100, 80, 1},
      {G3_LR_WSD, 10, 100, 90, 0.5},     {G3_LR_WSD, 10, 100, 95, 0.25},
      {G3_LR_WSD, 90, 100, 95, 0.5}, /* a tail of 20 steps begins with the end of the warm-up */
  };
  for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
    const g3_optim_config c = curve(points[i].schedule, points[i].warmup);
    assert_near(g3_lr_at(&c, points[i].steps, points[i].step), MIN + (LR - MIN) * points[i].left);
  }
}

/* decay_steps sets another end than the run's. */
static void the_end_of_the_decay_may_be_set(void **state) {
  (void)state;
  g3_optim_config c = curve(G3_LR_LINEAR, 0);
  c.decay_steps = 5;
  assert_near(g3_lr_at(&c, 100, 3), (LR + MIN) / 2);
  assert_same(g3_lr_at(&c, 100, 5), MIN);
  assert_same(g3_lr_at(&c, 100, 100), MIN);
  c.decay_steps = 1001;
  assert_near(g3_lr_at(&c, 100, 101), MIN + (LR - MIN) * 0.9);
}

static void steps_beyond_32_bits(void **state) {
  (void)state;
  const g3_optim_config c = curve(G3_LR_COSINE, INT64_C(2500000000));
  assert_near(g3_lr_at(&c, INT64_C(3000000000), 3), 3 * 4e-13);
  assert_near(g3_lr_at(&c, INT64_C(3000000000), INT64_C(2750000000)), (LR + MIN) / 2);
}

static void a_share_of_zero_decays_at_the_last_step_alone(void **state) {
  (void)state;
  g3_optim_config c = curve(G3_LR_WSD, 2);
  c.wsd_fraction = 0;
  assert_same(g3_lr_at(&c, 100, 99), LR);
  assert_same(g3_lr_at(&c, 100, 100), MIN);
}

static void a_rate_of_zero_stays_zero(void **state) {
  (void)state;
  g3_optim_config c = curve(G3_LR_COSINE, 3);
  c.lr = c.min_lr = 0;
  for (int t = 1; t < 20; t++)
    assert_same(g3_lr_at(&c, 10, t), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(invariants_of_every_curve),
      cmocka_unit_test(warm_up_is_a_straight_line_from_the_first_step),
      cmocka_unit_test(a_long_warm_up_only_rises),
      cmocka_unit_test(points_of_the_curves),
      cmocka_unit_test(the_end_of_the_decay_may_be_set),
      cmocka_unit_test(steps_beyond_32_bits),
      cmocka_unit_test(a_share_of_zero_decays_at_the_last_step_alone),
      cmocka_unit_test(a_rate_of_zero_stays_zero),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
