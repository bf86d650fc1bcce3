/* Learning-rate curves. */
#ifndef G3_OPTIM_LR_H
#define G3_OPTIM_LR_H
#include "config/config.h"

/* Pure. The learning rate of step 1, 2, ... : lr * step / warmup while step <= warmup (so that step
 * 1 is never 0 and step `warmup` is exactly lr), then the curve down to min_lr at the last step:
 *   cosine    min + (lr - min) (1 + cos(pi x)) / 2      (Loshchilov and Hutter, SGDR, 2017,
 * equation 5) linear    lr + (min - lr) x constant  lr wsd       lr until the last wsd_fraction of
 * the steps, then linear (Hu et al., MiniCPM, 2024, section 4) with x = (step - max(warmup, 1)) /
 * (decay_steps - max(warmup, 1)), clipped to [0, 1]: step max(warmup, 1) is exactly lr and step
 * decay_steps exactly min_lr. */
double g3_lr_at(const g3_optim_config *o, int64_t steps, int64_t step);

#endif
