/* gpt3d: a 3D-parallel trainer for GPT-style models. */
#include "train/train.h"
#include <stdio.h>
#include <string.h>

static const struct {
  const char *name;
  g3_command run;
} commands[] = {
    {"train", g3_command_train},
};

int main(int argc, char **argv) {
  if (argc < 2 || argv[1][0] == '-') return (int)g3_command_train(argc - 1, argv + 1);
  for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
    if (strcmp(argv[1], commands[i].name) == 0) return (int)commands[i].run(argc - 2, argv + 2);
  fprintf(stderr, "gpt3d: error: unknown command '%s'; known are:", argv[1]);
  for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
    fprintf(stderr, " %s", commands[i].name);
  fputc('\n', stderr);
  return G3_EXIT_USAGE;
}
