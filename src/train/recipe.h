/* How a run trains, apart from its model: kept in checkpoints so that a resume can say what it
 * changes. */
#ifndef G3_TRAIN_RECIPE_H
#define G3_TRAIN_RECIPE_H
#include "ckpt/ckpt.h"
#include "config/config.h"

/* Local. The recipe of a configuration, as a checkpoint keeps it. */
enum { G3_RECIPE_ATTRS = 13 };
void g3_recipe_describe(const g3_config *config, g3_ckpt_attr out[G3_RECIPE_ATTRS]);

/* Local; rank 0's voice. One line, "optim.lr 0.0003 -> 1e-05, ...", of what differs between a
 * checkpoint and the configuration that goes on from it, which wins; nothing when they agree. What
 * the checkpoint does not say is passed over. */
void g3_recipe_say_changes(const g3_config *config, const g3_ckpt_meta *meta);

#endif
