/* Learning-rate curves. */
#ifndef G3_OPTIM_LR_H
#define G3_OPTIM_LR_H
#include "config/config.h"

/* Pure. The learning rate of step 1, 2, ... With peak = max(warmup, 1) and end = decay_steps (0:
 * `steps`), it is lr * step / peak while step <= peak, so that step 1 is never 0 and step `peak` is
 * exactly lr; then it falls, with x = (step - peak) / (end - peak) up to 1, by
 *
 * - cosine: min + (lr - min) (1 + cos(pi x)) / 2 (Loshchilov and Hutter, SGDR, 2017, equation 5);
 * - linear: min + (lr - min) (1 - x);
 * - constant: not at all;
 * - wsd: not until the last wsd_fraction of the `end` steps (or the end of the warm-up, when that
 * is later), then linearly (Hu et al., MiniCPM, 2024, section 4).
 *
 * Step `end` and all later ones are exactly min_lr, but for `constant`, and but for steps of the
 * warm-up: with warmup >= end the rate only rises. Never NaN. */
double g3_lr_at(const g3_optim_config *o, int64_t steps, int64_t step);

#endif
