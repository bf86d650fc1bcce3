/* gpt3d doctor */
#include "ckpt/facts.h"
#include "comm/facts.h"
#include "config/facts.h"
#include "device/facts.h"
#include "train/args.h"
#include "train/host_facts.h"
#include "train/session.h"
#include "train/threads.h"
#include "util/log.h"

/* Cores that the machine's ranks may use together, and those of the rank that has the fewest. */
static g3_status count_cores(g3_comm *world, int *cores, int *fewest) {
  int64_t v[] = {g3_cores_allowed(), -g3_cores_allowed()};
  G3_TRY(world->ops->host_all_reduce(world, v, 2, G3_MAX));
  const int whole = g3_cores_of_launcher();
  *fewest = (int)-v[1];
  *cores = whole > (int)v[0] ? whole : (int)v[0];
  return G3_OK;
}

static g3_status examine(g3_comm *world, g3_facts *f) {
  int cores = 1, fewest = 1;
  G3_TRY(count_cores(world, &cores, &fewest));
  g3_program_facts(f);
  g3_device_facts(f);
  g3_machine_facts(f, cores, fewest);
  G3_TRY(g3_comm_facts(f, world, cores));
  g3_command_facts(f, g3_comm_launched());
  g3_ckpt_facts(f);
  g3_config_facts(f);
  g3_folder_facts(f);
  return G3_OK;
}

/* Rank 0 speaks, and its finding is everyone's exit code. */
static g3_status report(g3_comm *world, g3_exit *done) {
  g3_facts f = {.out = world->rank == 0 ? stdout : NULL};
  G3_TRY(examine(world, &f));
  int64_t missing = world->rank == 0 ? f.count[G3_FACT_MISSING] : 0;
  G3_TRY(world->ops->host_all_reduce(world, &missing, 1, G3_MAX));
  G3_INFO("%d facts fine, %d could be better, %d missing", f.count[G3_FACT_OK],
          f.count[G3_FACT_WARN], f.count[G3_FACT_MISSING]);
  *done = missing > 0 ? G3_EXIT_FAILED : G3_EXIT_DONE;
  return G3_OK;
}

g3_exit g3_command_doctor(int argc, char **argv) {
  const g3_args args = {.command = "gpt3d doctor",
                        .words = "",
                        .about =
                            "Prints what this machine, its libraries and this build have, and "
                            "what is missing with the command\nthat brings it. Alone, or under "
                            "mpirun for what ranks find there. Exit code 1 when something is "
                            "missing."};
  bool help;
  g3_session s = {NULL, NULL};
  g3_exit done = G3_EXIT_DONE;
  g3_status st = g3_args_parse(&args, argc, argv, &help);
  if (st != G3_OK || help) return g3_args_verdict(st, G3_EXIT_DONE);
  st = g3_comm_launched() ? g3_comm_mpi_world(&s.world) : g3_comm_self(&s.world);
  if (st == G3_OK) {
    g3_log_setup(s.world->rank, G3_LOG_INFO);
    st = g3_comm_agree(s.world, report(s.world, &done));
  }
  const g3_exit code = g3_session_verdict(&s, st, done);
  g3_session_end(&s);
  return code;
}
