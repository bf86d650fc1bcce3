/* What this folder tells `gpt3d doctor`. */
#ifndef G3_CONFIG_FACTS_H
#define G3_CONFIG_FACTS_H
#include "util/facts.h"

/* Local. The library that reads YAML. */
void g3_config_facts(g3_facts *f);

#endif
