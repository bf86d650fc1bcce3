/* What every subcommand under mpirun begins and ends with: settings, the world, one voice, one exit
 * code. */
#ifndef G3_TRAIN_SESSION_H
#define G3_TRAIN_SESSION_H
#include "comm/comm.h"
#include "config/config.h"
#include "train/train.h"

/* Settings and world of this process; either may be NULL after a failure. */
typedef struct {
  g3_settings *settings;
  g3_comm *world;
} g3_session;

/* Collective over all processes. Reads the settings and joins the world: MPI's when a launcher
 * started this process or `needs_mpi`, else a world of one. A failure on any rank is said once, by
 * rank 0, and *code is what all leave with (call g3_session_end all the same). False: leave. Also
 * false, with G3_EXIT_DONE, after
 * --help, --version and --print-config. */
bool g3_session_begin(int argc, char **argv, bool needs_mpi, g3_session *out, g3_exit *code);

/* Collective. Rank 0 says the last error when `st` is one; returns the code to leave with: `done`
 * or what the status means. Every rank must pass the same kind of status. */
g3_exit g3_session_verdict(const g3_session *s, g3_status st, g3_exit done);

/* Collective. A last barrier, so that nobody is killed by the launcher while others still write. */
void g3_session_end(g3_session *s);

#endif
