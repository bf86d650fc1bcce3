/* Which layers a pipeline stage holds. */
#ifndef G3_PLAN_STAGES_H
#define G3_PLAN_STAGES_H
#include "config/config.h"

/* Pure. Contiguous layers for `stages` stages, each at least one, so that the costliest stage is as
 * cheap as can be; embedding and head count where they stand. layers [stages] gets the numbers;
 * their sum is the model's. G3_EINVAL when there are more stages than layers. */
G3_MUST_USE g3_status g3_stage_layers(const g3_model_config *m, int stages, int *layers);

/* Pure. Share of the model's arithmetic that falls to a stage with so many layers, in [0, 1]. */
double g3_stage_share(const g3_model_config *m, int layers, bool first, bool last);

#endif
