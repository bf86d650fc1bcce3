/* The run directory: config.yaml, metrics.jsonl, log.txt, checkpoints/. Rank 0 writes it. */
#ifndef G3_TRAIN_RUNDIR_H
#define G3_TRAIN_RUNDIR_H
#include "config/config.h"

typedef struct {
  FILE *metrics, *log; /* NULL on ranks that do not write */
  FILE *lock; /* held while the run lasts; NULL where it could not be had */
} g3_rundir;

/* One line of metrics.jsonl. */
typedef struct {
  int64_t step, tokens; /* tokens seen so far */
  double loss, lr, grad_norm, step_s, tok_s, tflops, mfu;
  double val_loss; /* with has_val */
  bool has_val, has_mfu, skipped;
} g3_metrics;

/* Local; called on rank 0. Makes `out` and out/checkpoints and tries to write there. */
G3_MUST_USE g3_status g3_rundir_make(const char *out);

/* Local; called on rank 0 before anything else there is touched. Takes `out` for this run, by
 * flock() on out/.lock, until g3_rundir_close or the process ends. G3_EINVAL when another run holds
 * it; a file system that cannot lock costs a warning. */
G3_MUST_USE g3_status g3_rundir_lock(const char *out, g3_rundir *dir);

/* Local; called on rank 0. Removes checkpoints, metrics and log of an earlier run (--overwrite). */
G3_MUST_USE g3_status g3_rundir_clear(const char *out);

/* Local; called on rank 0. Cuts metrics.jsonl back to steps <= step, writes config.yaml, opens the
 * files; the lock in *dir stays as it is. */
G3_MUST_USE g3_status g3_rundir_open(const g3_settings *s, int64_t step, g3_rundir *dir);
void g3_rundir_close(g3_rundir *d);

/* Local. Appends a line; a full disk is an error, said once. */
G3_MUST_USE g3_status g3_rundir_metrics(g3_rundir *d, const g3_metrics *m);

#endif
