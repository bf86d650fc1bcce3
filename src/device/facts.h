/* What this folder tells `gpt3d doctor`. */
#ifndef G3_DEVICE_FACTS_H
#define G3_DEVICE_FACTS_H
#include "util/facts.h"

/* Local. The processor and what of it is used, oneDNN, and the state of the GPU backend. */
void g3_device_facts(g3_facts *f);

#endif
