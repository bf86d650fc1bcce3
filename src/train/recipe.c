#include "train/recipe.h"
#include "util/log.h"
#include <string.h>

static const char *const keys[] = {
    "optim.lr",          "optim.min_lr",       "optim.warmup", "optim.lr_schedule",
    "optim.decay_steps", "optim.wsd_fraction", "train.steps",  "train.global_batch",
    "optim.beta1",       "optim.beta2",        "optim.eps",    "optim.weight_decay",
    "optim.clip",
};
_Static_assert(sizeof keys / sizeof *keys == G3_RECIPE_ATTRS, "one attribute a key");

void g3_recipe_describe(const g3_config *config, g3_ckpt_attr out[G3_RECIPE_ATTRS]) {
  for (int i = 0; i < G3_RECIPE_ATTRS; i++) {
    snprintf(out[i].key, sizeof out[i].key, "%s", keys[i]);
    g3_settings_text(config, g3_option_by_key(keys[i]), out[i].value, sizeof out[i].value);
  }
}

void g3_recipe_say_changes(const g3_config *config, const g3_ckpt_meta *meta) {
  g3_ckpt_attr now[G3_RECIPE_ATTRS];
  char text[G3_RECIPE_ATTRS * 128] = "";
  size_t used = 0;
  g3_recipe_describe(config, now);
  for (int i = 0; i < G3_RECIPE_ATTRS && used < sizeof text; i++) {
    const char *saved = g3_ckpt_attr_get(meta, now[i].key);
    if (!saved || strcmp(saved, now[i].value) == 0) continue;
    used += (size_t)snprintf(text + used, sizeof text - used, "%s%s %s -> %s", used ? ", " : "",
                             now[i].key, saved, now[i].value);
  }
  if (used) G3_INFO("changed since the checkpoint: %s", text);
}
