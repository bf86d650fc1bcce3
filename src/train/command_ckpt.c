/* gpt3d ckpt ls | verify | diff | import | export */
#include "ckpt/ckpt.h"
#include "ckpt/files.h"
#include "train/args.h"
#include "train/hf.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/text.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int64_t disk_bytes(const g3_ckpt_index *ix) {
  int64_t sum = 0;
  for (int i = 0; i < ix->nshards; i++)
    sum += ix->shard_bytes[i];
  return sum;
}

static void shape_text(const g3_ckpt_entry *e, char *out, size_t size) {
  size_t used = 0;
  out[0] = '\0';
  for (int d = 0; d < e->ndim && used < size; d++)
    used += (size_t)snprintf(out + used, size - used, "%s%" PRId64, d ? " x " : "", e->global[d]);
}

/* The tensors of one checkpoint. */
static void list_tensors(const g3_ckpt_index *ix) {
  g3_number_text bytes;
  printf("%s\nstep %" PRId64 ", %" PRId64 " samples, %" PRId64 " updates, %d shard%s of %s\n",
         ix->path, ix->meta.step, ix->meta.consumed_samples, ix->meta.applied_steps, ix->nshards,
         ix->nshards == 1 ? "" : "s", g3_text_bytes(disk_bytes(ix), bytes));
  for (int i = 0; i < ix->meta.nattrs; i++)
    printf("%s = %s\n", ix->meta.attr[i].key, ix->meta.attr[i].value);
  printf("\n%-56s %-5s %-24s %s\n", "tensor", "dtype", "shape", "pieces");
  for (int i = 0; i < ix->nentries; i++) {
    const g3_ckpt_entry *e = &ix->entry[i];
    char shape[96];
    shape_text(e, shape, sizeof shape);
    printf("%-56s %-5s %-24s %d\n", e->name, g3_dtype_name(e->dtype), shape, e->npieces);
  }
}

/* The folder of checkpoints that `dir` is or has. */
static g3_status checkpoints_of(const char *dir, char out[G3_CKPT_PATH]) {
  G3_TRY(g3_ckpt_path(out, "%s/checkpoints", dir));
  if (g3_ckpt_is(out, true)) return G3_OK;
  G3_TRY(g3_ckpt_path(out, "%s", dir));
  if (g3_ckpt_is(out, true)) return G3_OK;
  return G3_FAIL(G3_EIO, "%s is no directory; give a run, its checkpoints folder or a checkpoint",
                 dir);
}

typedef g3_status (*each_fn)(const char *path, int64_t *bad);

/* Calls `each` for the checkpoint that `dir` is, or for all that it has, oldest first. */
static g3_status for_each(const char *dir, each_fn each, int64_t *bad) {
  char folder[G3_CKPT_PATH], path[G3_CKPT_PATH];
  int64_t *steps, n;
  G3_TRY(checkpoints_of(dir, folder));
  G3_TRY(g3_ckpt_steps(folder, "", &steps, &n));
  g3_status st = G3_OK;
  if (n == 0)
    st = G3_FAIL(G3_EIO, "there is no checkpoint in %s, which would be a folder step-...", folder);
  for (int64_t i = 0; i < n && st == G3_OK; i++) {
    st = g3_ckpt_path(path, "%s/step-%08" PRId64, folder, steps[i]);
    if (st == G3_OK) st = each(path, bad);
  }
  free(steps);
  return st;
}

static bool is_checkpoint(const char *dir) {
  char path[G3_CKPT_PATH];
  return g3_ckpt_path(path, "%s/index.h5", dir) == G3_OK && g3_ckpt_is(path, false);
}

static g3_status list_one(const char *path, int64_t *bad) {
  g3_ckpt_index *ix;
  g3_number_text bytes;
  if (g3_ckpt_index_read(path, &ix) != G3_OK) {
    printf("%s  not whole: %s\n", path, g3_last_error());
    (*bad)++;
    return G3_OK;
  }
  printf("%s  step %" PRId64 ", %s in %d shard%s, %" PRId64 " samples, %d tensors\n", path,
         ix->meta.step, g3_text_bytes(disk_bytes(ix), bytes), ix->nshards,
         ix->nshards == 1 ? "" : "s", ix->meta.consumed_samples, ix->nentries);
  g3_ckpt_index_free(ix);
  return G3_OK;
}

static g3_status list(const char **word, int64_t *bad) {
  if (!is_checkpoint(word[0])) return for_each(word[0], list_one, bad);
  g3_ckpt_index *ix;
  G3_TRY(g3_ckpt_index_read(word[0], &ix));
  list_tensors(ix);
  g3_ckpt_index_free(ix);
  return G3_OK;
}

/* Host memory for pieces, from the CPU backend. */
static g3_status with_stage(size_t bytes, g3_device **dev, g3_tensor *out) {
  void *p;
  g3_device *d;
  G3_TRY(g3_device_open("cpu", 1, &d));
  const g3_status st = d->ops->alloc(d, bytes, &p);
  if (st != G3_OK) {
    g3_device_close(d);
    return st;
  }
  *dev = d;
  *out = g3_tensor_1d(p, G3_U8, (int64_t)bytes);
  return G3_OK;
}

static void without_stage(g3_device *dev, g3_tensor stage) {
  dev->ops->release(dev, stage.data);
  g3_device_close(dev);
}

static g3_status verify_index(const g3_ckpt_index *ix, int64_t *bytes) {
  g3_device *dev;
  g3_tensor stage;
  G3_TRY(with_stage(g3_ckpt_index_stage_bytes(ix), &dev, &stage));
  const g3_status st = g3_ckpt_verify(ix, stage, bytes);
  without_stage(dev, stage);
  return st;
}

/* Damage is a finding, so that the other checkpoints are looked at, too. */
static g3_status verify_one(const char *path, int64_t *bad) {
  g3_ckpt_index *ix = NULL;
  g3_number_text text, rate;
  int64_t bytes = 0;
  const double begin = g3_now();
  g3_status st = g3_ckpt_index_read(path, &ix);
  if (st == G3_OK) st = verify_index(ix, &bytes);
  const double seconds = g3_now() - begin;
  g3_ckpt_index_free(ix);
  if (st != G3_OK) {
    printf("%s  damaged: %s\n", path, g3_last_error());
    (*bad)++;
    return G3_OK;
  }
  printf("%s  whole: %s read, every hash right, %s/s\n", path, g3_text_bytes(bytes, text),
         g3_text_bytes(seconds > 0 ? (int64_t)((double)bytes / seconds) : 0, rate));
  return G3_OK;
}

static g3_status verify(const char **word, int64_t *bad) {
  return is_checkpoint(word[0]) ? verify_one(word[0], bad) : for_each(word[0], verify_one, bad);
}

static g3_status open_newest(const char *dir, g3_ckpt_index **out) {
  char path[G3_CKPT_PATH];
  G3_TRY(g3_ckpt_latest(dir, path, sizeof path));
  if (!path[0]) return G3_FAIL(G3_EIO, "there is no checkpoint in %s", dir);
  return g3_ckpt_index_read(path, out);
}

static g3_status diff_indexes(const g3_ckpt_index *a, const g3_ckpt_index *b, int64_t *bad) {
  g3_device *dev;
  g3_tensor stage;
  const size_t bytes = g3_ckpt_index_stage_bytes(a) + g3_ckpt_index_stage_bytes(b);
  G3_TRY(with_stage(bytes, &dev, &stage));
  const g3_status st = g3_ckpt_diff(a, b, stage, stdout, bad);
  without_stage(dev, stage);
  if (st == G3_OK && *bad)
    printf("%" PRId64 " tensors differ between %s and %s\n", *bad, a->path, b->path);
  else if (st == G3_OK)
    printf("the %d tensors of %s and %s are equal, bit by bit\n", a->nentries, a->path, b->path);
  return st;
}

static g3_status diff(const char **word, int64_t *bad) {
  g3_ckpt_index *a = NULL, *b = NULL;
  g3_status st = open_newest(word[0], &a);
  if (st == G3_OK) st = open_newest(word[1], &b);
  if (st == G3_OK) st = diff_indexes(a, b, bad);
  g3_ckpt_index_free(a);
  g3_ckpt_index_free(b);
  return st;
}

/* One row a subcommand: it runs on its words alone, or converts one word into --out. */
static const struct {
  const char *name, *command, *words, *about;
  int nwords;
  g3_status (*run)(const char **word, int64_t *bad);
  g3_status (*convert)(const char *from, const char *out);
} actions[] = {
    {"ls", "gpt3d ckpt ls", "DIR",
     "Lists the checkpoints of a run, or the tensors of one checkpoint.", 1, list, NULL},
    {"verify", "gpt3d ckpt verify", "DIR",
     "Reads all of a checkpoint, or of each of a run, against its hashes.", 1, verify, NULL},
    {"diff", "gpt3d ckpt diff", "A B",
     "Compares two checkpoints (or the newest ones of two runs), bit by bit. Exit code 1 when they "
     "differ.",
     2, diff, NULL},
    {"import", "gpt3d ckpt import", "DIR",
     "Makes a checkpoint of weights from a model of transformers: DIR with config.json and "
     "model.safetensors.",
     1, NULL, g3_hf_import},
    {"export", "gpt3d ckpt export", "CKPT",
     "Makes a model that transformers loads from a checkpoint, or the newest one of a run.", 1,
     NULL, g3_hf_export},
};

enum { ACTIONS = sizeof actions / sizeof actions[0], MOST_WORDS = 2 };

static int find_action(const char *name) {
  for (int i = 0; i < ACTIONS; i++)
    if (strcmp(actions[i].name, name) == 0) return i;
  return -1;
}

static g3_status unknown_action(const char *name) {
  const char *names[ACTIONS];
  for (int i = 0; i < ACTIONS; i++)
    names[i] = actions[i].name;
  const char *near = name ? g3_args_nearest(name, names, ACTIONS) : NULL;
  if (near)
    return G3_FAIL(G3_EINVAL, "gpt3d ckpt: unknown command '%.40s'; did you mean %s?", name, near);
  return G3_FAIL(G3_EINVAL, "gpt3d ckpt wants ls, verify, diff, import or export; found %s%.40s",
                 name ? "" : "nothing", name ? name : "");
}

static const char hf[] = "hf";

static g3_status run_action(int i, int argc, char **argv, int64_t *bad) {
  const char *word[MOST_WORDS], *format = hf, *out = NULL;
  const g3_arg flags[] = {{.flag = "--format",
                           .meta = "hf",
                           .about = "of the model outside: Hugging Face's GPT-2",
                           .text = &format,
                           .required = true},
                          {.flag = "--out",
                           .meta = "FOLDER",
                           .about = "where the result goes; made when it is not there",
                           .text = &out,
                           .required = true},
                          {.flag = NULL}};
  const g3_args args = {.command = actions[i].command,
                        .words = actions[i].words,
                        .about = actions[i].about,
                        .flags = actions[i].convert ? flags : NULL,
                        .word = word,
                        .nwords = actions[i].nwords};
  bool help;
  G3_TRY(g3_args_parse(&args, argc, argv, &help));
  if (help) return G3_OK;
  if (strcmp(format, hf) != 0)
    return G3_FAIL(G3_EINVAL, "%s: --format wants hf; found \"%.40s\"", args.command, format);
  return actions[i].convert ? actions[i].convert(word[0], out) : actions[i].run(word, bad);
}

static void print_help(void) {
  for (int i = 0; i < ACTIONS; i++)
    printf("%s%s %s\n    %s\n", actions[i].command,
           actions[i].convert ? " --format hf --out FOLDER" : "", actions[i].words,
           actions[i].about);
}

g3_exit g3_command_ckpt(int argc, char **argv) {
  const char *name = argc > 0 ? argv[0] : NULL;
  int64_t bad = 0; /* what was found: no failure, but a reason for exit code 1 */
  if (name && (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)) {
    print_help();
    return G3_EXIT_DONE;
  }
  const int i = name ? find_action(name) : -1;
  const g3_status st = i < 0 ? unknown_action(name) : run_action(i, argc - 1, argv + 1, &bad);
  return g3_args_verdict(st, bad ? G3_EXIT_FAILED : G3_EXIT_DONE);
}
