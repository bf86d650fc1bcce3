/* What this folder tells `gpt3d doctor`. */
#ifndef G3_CKPT_FACTS_H
#define G3_CKPT_FACTS_H
#include "util/facts.h"

/* Local. The libraries of checkpoints, and whether HDF5 is the one that the program was compiled
 * with. */
void g3_ckpt_facts(g3_facts *f);

#endif
