/* What `gpt3d doctor` finds out of the machine and the current folder. */
#ifndef G3_TRAIN_HOST_FACTS_H
#define G3_TRAIN_HOST_FACTS_H
#include "util/facts.h"
#include <stdbool.h>

/* Local. The program itself and what compiled it. */
void g3_program_facts(g3_facts *f);

/* Local. Programs that are started by name; `launched`: by mpirun, which then is there. */
void g3_command_facts(g3_facts *f, bool launched);

/* Local. Cores, memory, and the limits of this process. `fewest` cores are those of the rank that
 * has the fewest. */
void g3_machine_facts(g3_facts *f, int cores, int fewest);

/* Local. The current folder: whether it can be written to, room, file locks, the default data. */
void g3_folder_facts(g3_facts *f);

#endif
