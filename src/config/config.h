/* The configuration of a run. One table of options (config/options.c) is behind the parser, the
 * checks of single values, --help, --print-config and config.yaml. */
#ifndef G3_CONFIG_CONFIG_H
#define G3_CONFIG_CONFIG_H
#include "util/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { G3_CONFIG_TEXT = 1024 };
typedef char g3_text[G3_CONFIG_TEXT];

typedef enum { G3_TYPE_F32, G3_TYPE_BF16, G3_TYPE_FP16 } g3_config_dtype;
typedef enum { G3_LR_COSINE, G3_LR_LINEAR, G3_LR_CONSTANT, G3_LR_WSD } g3_lr_schedule;
typedef enum { G3_DEVICE_AUTO, G3_DEVICE_CPU, G3_DEVICE_CUDA } g3_config_device;

typedef struct {
  int64_t layers, heads, width;
  int64_t ffn; /* 0 in a file means 4 * width; resolved after loading */
  int64_t seq, vocab;
  bool tied;
  double dropout;
} g3_model_config;

typedef struct {
  int64_t tp, pp;
  int64_t dp; /* 0 means world / (tp * pp); resolved once the world is known */
  g3_text schedule; /* a name in g3_sched_kinds */
  bool sequence_parallel;
  int64_t zero; /* 0 or 1 */
  int64_t bucket_elements;
  int64_t exact_chunks; /* with train.exact: blocks that products are cut into; a power of two */
} g3_parallel_config;

typedef struct {
  int64_t micro_batch, global_batch, steps;
  uint64_t seed;
  g3_config_dtype dtype;
  bool exact; /* one set of bits for all layouts; micro_batch is then 1, whatever was asked */
  int64_t bad_steps; /* stop after so many skipped steps in a row; 0 = never */
} g3_train_config;

typedef struct {
  double lr, min_lr, beta1, beta2, eps, weight_decay, clip;
  int64_t warmup;
  g3_lr_schedule schedule;
  int64_t decay_steps; /* 0 means train.steps */
  double wsd_fraction; /* share of the steps in which WSD decays */
} g3_optim_config;

typedef struct {
  g3_text path; /* text, PREFIX.bin, or "mock" */
  double val_split; /* share of the tokens, at the end, that only evaluation sees */
  int64_t eval_interval, eval_samples; /* 0: never; 0: all */
} g3_data_config;

typedef struct {
  g3_text name; /* of the configuration: its file without folder and .yaml, "tiny" by default */
  g3_text out; /* "" in a file means runs/NAME; resolved after loading */
  bool overwrite;
  g3_text resume; /* auto, none, a run directory or a checkpoint */
  g3_text init; /* a checkpoint whose weights alone are taken; "" = none */
  int64_t save_interval, keep; /* 0: never; 0: all */
  int64_t log_interval;
  g3_config_device device;
  int64_t threads; /* 0 means the cores this process may use / ranks on this node */
  double peak_tflops; /* of one rank's device, for MFU; 0 = unknown */
} g3_run_config;

/* What the command asks for instead of, or beside, the work. */
typedef struct {
  bool help, version, print_config, dry_run, json, debug, shrink;
  g3_text config; /* --config FILE; "" = the embedded tiny.yaml */
  g3_text debug_nan; /* where to put one NaN; "" = nowhere */
} g3_command_config;

/* All of it. */
typedef struct {
  g3_model_config model;
  g3_parallel_config parallel;
  g3_train_config train;
  g3_optim_config optim;
  g3_data_config data;
  g3_run_config run;
  g3_command_config command;
} g3_config;

/* Where a value came from, lowest first: a later source wins. */
typedef enum {
  G3_FROM_DEFAULT, /* the option table */
  G3_FROM_EMBEDDED, /* configs/tiny.yaml inside the binary */
  G3_FROM_CHECKPOINT,
  G3_FROM_FILE,
  G3_FROM_COMMAND
} g3_origin_kind;

/* One value's source, for messages and --print-config. */
typedef struct {
  g3_origin_kind kind;
  char where[160]; /* "configs/tiny.yaml:7", "--tp", ... */
} g3_origin;

/* What text a value is made from. */
typedef enum {
  G3_OPT_INT,
  G3_OPT_UINT,
  G3_OPT_FLOAT,
  G3_OPT_BOOL,
  G3_OPT_TEXT,
  G3_OPT_ENUM
} g3_opt_type;

/* One row a key. */
typedef struct {
  const char *key; /* "parallel.tp"; "" for what stands on the command line only */
  const char *flag; /* "--tp" */
  const char *alias; /* a second spelling, mostly Megatron's: "--num-layers"; NULL = none */
  g3_opt_type type;
  size_t offset; /* into g3_config */
  const char *def; /* default, as text */
  double min, max; /* of a number, both allowed */
  const char *const *names; /* of an enum, in order of its values; ends with NULL */
  const char *about; /* one line for --help, with the unit */
} g3_option;

/* The table, and how many rows it has. */
extern const g3_option g3_options[]; /* ends with a NULL flag */
int g3_option_count(void);
/* The option of a key ("parallel.tp") or of a field of g3_config; NULL when there is none. */
const g3_option *g3_option_by_key(const char *key);
const g3_option *g3_option_at(size_t offset);

/* A configuration and where each of its values came from. */
typedef struct {
  g3_config value;
  g3_origin *origin; /* [g3_option_count()] */
} g3_settings;

/* Local. The table's defaults, then the embedded tiny.yaml or the file of --config, then the
 * command line (argv[0 .. argc - 1], without program and subcommand) in order, a later one wins.
 * Everything is checked as far as one value goes (type, range, unknown key with the nearest one
 * suggested); relations between values are g3_config_check's. model.ffn, run.name and run.out are
 * resolved, and optim.min_lr comes down to an optim.lr from a stronger source. With --help or
 * --version the file is not read. G3_EINVAL with file, line and key; G3_EIO when the file of
 * --config cannot be read. Freed by g3_settings_free. */
G3_MUST_USE g3_status g3_settings_load(int argc, char *const *argv, g3_settings **out);
void g3_settings_free(g3_settings *s); /* NULL is fine */

/* Local. Sets one key from text, strictly ("4x" is an error), with its origin, unless a stronger
 * origin has set it already (of equal origins the later wins). A value that loses is checked, too.
 */
G3_MUST_USE g3_status g3_settings_set(g3_settings *s, const char *key, const char *text,
                                      g3_origin origin);

/* A value as text that g3_settings_set takes back to the same value: floats in the shortest form
 * that reads back exactly, texts without quotes. Local; `out` always ends with NUL; G3_CONFIG_TEXT
 * bytes hold any value. */
void g3_settings_text(const g3_config *c, const g3_option *o, char *out, size_t size);

/* Local. Relations between values: heads divide the width, tp divides heads and ffn, stages <=
 * layers, tokens over tp under sequence parallelism, learning rates, warm-up (which may be longer
 * than a run that a stronger origin has shortened), fp16 only on cuda, exact only on the cpu and
 * what its chunks must divide, and products that must fit their counters. With dp = 0 the
 * micro-batch must divide the global batch, with dp > 0 micro_batch
 * * dp must: call it again after g3_config_world. G3_EINVAL; messages give the origin, the numbers,
 * and what would do. */
G3_MUST_USE g3_status g3_config_check(const g3_settings *s);

/* Local. Fills parallel.dp from the number of ranks when it is 0, then checks tp * pp * dp = world.
 * G3_EINVAL with the arithmetic. */
G3_MUST_USE g3_status g3_config_world(g3_settings *s, int64_t world);

/* Local. All keys as YAML, each with its about line as a comment; with `origins`, where it came
 * from stands before that. What it writes loads back to the same values. G3_EIO when `out` fails.
 */
G3_MUST_USE g3_status g3_settings_dump(const g3_settings *s, FILE *out, bool origins);

/* --help: printed from the table. */
void g3_options_help(FILE *out);

#endif
