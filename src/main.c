/* gpt3d: a 3D-parallel trainer for GPT-style models. */
#include "comm/comm.h"
#include "train/args.h"
#include <stdio.h>
#include <string.h>

/* One row a subcommand. */
static const struct {
  const char *name;
  g3_command run;
  const char *about;
} commands[] = {
    {"train", g3_command_train, "train a model; what gpt3d does without a subcommand"},
    {"bench", g3_command_bench, "measure where a step's time goes"},
    {"ckpt", g3_command_ckpt, "list, verify, compare, import and export checkpoints"},
    {"doctor", g3_command_doctor, "say what this machine has, and what is missing"},
    {"eval", g3_command_eval, "mean loss of a checkpoint over a whole file"},
    {"schedule", g3_command_schedule, "print a pipeline schedule"},
    {"verify", g3_command_verify, "compare a step of this layout with one rank's"},
    {"tokenize", g3_command_tokenize, "turn a text into token files"},
};

enum { COMMANDS = sizeof commands / sizeof commands[0] };

static bool asks_for_help(const char *word) {
  return strcmp(word, "help") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static void print_commands(void) {
  printf("usage: gpt3d [COMMAND] [OPTIONS], alone or under mpirun -np RANKS\n\n");
  for (int i = 0; i < COMMANDS; i++)
    printf("  gpt3d %-10s %s\n", commands[i].name, commands[i].about);
  printf("\ngpt3d COMMAND --help says what a command takes; gpt3d train takes these:\n\n");
  fflush(stdout);
}

static int unknown(const char *name) {
  const char *names[COMMANDS];
  for (int i = 0; i < COMMANDS; i++)
    names[i] = commands[i].name;
  const char *near = g3_args_nearest(name, names, COMMANDS);
  fprintf(stderr, "gpt3d: error: unknown command '%s'", name);
  if (near) fprintf(stderr, "; did you mean %s?", near);
  fprintf(stderr, "%s gpt3d help lists all\n", near ? "" : ";");
  return G3_EXIT_USAGE;
}

int main(int argc, char **argv) {
  char help[] = "--help", *help_argv[] = {help};
  if (argc >= 2 && asks_for_help(argv[1])) {
    /* Under a launcher, who speaks is known only once ranks are. */
    if (!g3_comm_launched()) print_commands();
    return (int)g3_command_train(1, help_argv);
  }
  if (argc < 2 || argv[1][0] == '-') return (int)g3_command_train(argc - 1, argv + 1);
  for (int i = 0; i < COMMANDS; i++)
    if (strcmp(argv[1], commands[i].name) == 0) return (int)commands[i].run(argc - 2, argv + 2);
  return unknown(argv[1]);
}
