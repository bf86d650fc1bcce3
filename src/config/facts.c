#include "config/facts.h"
#include <yaml.h>

void g3_config_facts(g3_facts *f) {
  g3_fact(f, G3_FACT_OK, "libyaml", "%s", yaml_get_version_string());
}
