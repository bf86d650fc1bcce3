#include "train/session.h"
#include "util/log.h"
#include <stdio.h>
#include <stdlib.h>

static g3_comm *fatal_world;

static void end_job(int code) {
  if (fatal_world) fatal_world->ops->abort(fatal_world, code);
}

g3_exit g3_session_verdict(const g3_session *s, g3_status st, g3_exit done) {
  if (st == G3_OK) return done;
  if (!s->world || s->world->rank == 0) {
    G3_ERROR("%s", g3_last_error());
    G3_DEBUG("%s", g3_last_trace());
  }
  return st == G3_EINVAL || st == G3_EUNSUPPORTED ? G3_EXIT_USAGE : G3_EXIT_FAILED;
}

/* True when the command line asked for words instead of work. */
static bool answer(const g3_session *s) {
  const g3_command_config *ask = &s->settings->value.command;
  if (!ask->help && !ask->version && !ask->print_config) return false;
  if (s->world->rank != 0) return true;
  if (ask->help)
    g3_options_help(stdout);
  else if (ask->version)
    printf("gpt3d %s\n", GPT3D_VERSION);
  else if (g3_settings_dump(s->settings, stdout, true) != G3_OK)
    G3_ERROR("%s", g3_last_error());
  return true;
}

static g3_status join(bool needs_mpi, g3_comm **world) {
  if (needs_mpi || g3_comm_launched()) return g3_comm_mpi_world(world);
  return g3_comm_self(world);
}

bool g3_session_begin(int argc, char **argv, bool needs_mpi, g3_session *out, g3_exit *code) {
  *out = (g3_session){NULL, NULL};
  const g3_status loaded = g3_settings_load(argc, argv, &out->settings);
  const bool words = loaded == G3_OK &&
                     (out->settings->value.command.help || out->settings->value.command.version ||
                      out->settings->value.command.print_config);
  char message[2048];
  snprintf(message, sizeof message, "%s", g3_last_error());
  const g3_status joined = join(needs_mpi && loaded == G3_OK && !words, &out->world);
  if (joined != G3_OK) {
    *code = g3_session_verdict(out, joined, G3_EXIT_DONE);
    return false;
  }
  fatal_world = out->world;
  g3_set_fatal_hook(end_job);
  const bool debug = loaded == G3_OK && out->settings->value.command.debug;
  g3_log_setup(out->world->rank, debug ? G3_LOG_DEBUG : G3_LOG_INFO);
  if (loaded != G3_OK) (void)G3_FAIL(loaded, "%s", message);
  const g3_status st = g3_comm_agree(out->world, loaded);
  *code = g3_session_verdict(out, st, G3_EXIT_DONE);
  return st == G3_OK && !answer(out);
}

void g3_session_end(g3_session *s) {
  if (s->world) {
    fflush(NULL);
    (void)s->world->ops->barrier(s->world);
    g3_set_fatal_hook(NULL);
    fatal_world = NULL;
    g3_comm_destroy(s->world);
  }
  g3_settings_free(s->settings);
  *s = (g3_session){NULL, NULL};
}
