/* Strict arguments of the subcommands that no option table configures: some flags with a value
 * each, and words. */
#ifndef G3_TRAIN_ARGS_H
#define G3_TRAIN_ARGS_H
#include "train/train.h"
#include "util/status.h"
#include <stdbool.h>
#include <stdint.h>

/* A flag with a value, "--pp 4" or "--pp=4": a text, or a count within its limits. */
typedef struct {
  const char *flag; /* "--input" */
  const char *meta; /* what stands for its value in --help: "FILE" */
  const char *about; /* one line for --help */
  const char **text; /* where a text goes; NULL for a count */
  int64_t *count, min, max; /* where a count goes, both limits allowed; NULL for a text */
  bool required;
} g3_arg;

/* What a command takes. */
typedef struct {
  const char *command; /* "gpt3d tokenize" */
  const char *words; /* what stands for its words in --help: "DIR", "A B"; "" without any */
  const char *about; /* one or a few lines for --help */
  const g3_arg *flags; /* ends with a NULL flag; NULL without any */
  const char **word; /* [nwords] where the words go, all of them wanted */
  int nwords;
} g3_args;

/* Local. Fills in what the arguments say; flags that are not there leave their place as it was.
 * With
 * --help or -h it prints what the command takes to stdout instead, and *help is true. G3_EINVAL for
 * an unknown flag (with the nearest one that there is), a value that is not what was wanted, too
 * few words or too many; what was read before that may be set. */
G3_MUST_USE g3_status g3_args_parse(const g3_args *args, int argc, char **argv, bool *help);

/* Local. Says the last error when `st` is one, and gives the exit code for it; `done` otherwise. */
g3_exit g3_args_verdict(g3_status st, g3_exit done);

/* Local. The word of `names` [n] that is nearest to `word`, or NULL when none is near. */
const char *g3_args_nearest(const char *word, const char *const *names, int n);

#endif
