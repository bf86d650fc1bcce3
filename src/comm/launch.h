/* What the environment says of the launcher. */
#ifndef G3_COMM_LAUNCH_H
#define G3_COMM_LAUNCH_H
#include <stdbool.h>

/* How many processes the launcher says that it started together; 0 when it does not say. Local. */
long g3_launch_size(void);

/* True when Slurm started several processes without giving MPI a way to find them: each would be
 * alone in its world. Local. */
bool g3_launch_lost(void);

#endif
