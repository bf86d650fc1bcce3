#include "optim/lr.h"
#include <math.h>

/* What is left of lr - min_lr at x in [0, 1] of the way; `tail` is the share of the way in which
 * WSD decays. Exactly 1 at x = 0, and exactly 0 at x = 1 where a curve falls at all. */
typedef double curve(double x, double tail);

static double cosine(double x, double tail) {
  (void)tail;
  return (1 + cos(M_PI * x)) / 2;
}

static double linear(double x, double tail) {
  (void)tail;
  return 1 - x;
}

static double constant(double x, double tail) {
  (void)x;
  (void)tail;
  return 1;
}

static double wsd(double x, double tail) {
  return x <= 1 - tail ? 1 : (1 - x) / tail;
}

static curve *const curves[] = {
    [G3_LR_COSINE] = cosine,
    [G3_LR_LINEAR] = linear,
    [G3_LR_CONSTANT] = constant,
    [G3_LR_WSD] = wsd,
};

double g3_lr_at(const g3_optim_config *o, int64_t steps, int64_t step) {
  const int64_t peak = o->warmup > 1 ? o->warmup : 1;
  const int64_t end = o->decay_steps > 0 ? o->decay_steps : steps;
  if (step <= peak) return o->lr * ((double)step / (double)peak);
  double x = 1, tail = 1;
  if (step < end) {
    const double way = (double)(end - peak);
    x = (double)(step - peak) / way;
    tail = fmin(1, o->wsd_fraction * (double)end / way);
  }
  const double left = curves[o->schedule](x, tail);
  return left >= 1 ? o->lr : o->min_lr + (o->lr - o->min_lr) * left;
}
