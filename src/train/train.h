/* The subcommands that train. */
#ifndef G3_TRAIN_TRAIN_H
#define G3_TRAIN_TRAIN_H

/* Exit codes of the program. */
typedef enum {
  G3_EXIT_DONE,
  G3_EXIT_FAILED,
  G3_EXIT_USAGE, /* wrong usage or configuration */
  G3_EXIT_STOPPED /* by a signal, after saving */
} g3_exit;

/* A subcommand: its arguments without program and subcommand name; the code that every rank leaves
 * with. */
typedef g3_exit (*g3_command)(int argc, char **argv);

/* `gpt3d [train]`. Collective over all processes. */
g3_exit g3_command_train(int argc, char **argv);

#endif
