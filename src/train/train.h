/* The subcommands of the program, each in its command_NAME.c, and what they exit with. */
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

/* `gpt3d bench train`: where a step's time goes. Collective over all processes. */
g3_exit g3_command_bench(int argc, char **argv);

/* `gpt3d doctor`: what this machine and this build have, and what is missing. Collective over all
 * processes. G3_EXIT_FAILED when something is missing. */
g3_exit g3_command_doctor(int argc, char **argv);

/* `gpt3d eval`: the mean loss of a checkpoint over a whole file. Collective over all processes. */
g3_exit g3_command_eval(int argc, char **argv);

/* `gpt3d verify`: a step of this layout against one rank, parameter by parameter. Collective over
 * all processes. */
g3_exit g3_command_verify(int argc, char **argv);

/* `gpt3d tokenize`: a text becomes token files. Local. */
g3_exit g3_command_tokenize(int argc, char **argv);

/* `gpt3d ckpt ls|verify|diff|import|export`. Local. G3_EXIT_FAILED also for damage or differences
 * found. */
g3_exit g3_command_ckpt(int argc, char **argv);

/* `gpt3d schedule`: prints a pipeline schedule. Local. */
g3_exit g3_command_schedule(int argc, char **argv);

#endif
