/* What a run goes on from: checkpoints found, loaded and written. */
#ifndef G3_TRAIN_STATE_H
#define G3_TRAIN_STATE_H
#include "train/job.h"

/* Where training begins. */
typedef enum { G3_START_FRESH, G3_START_RESUME, G3_START_INIT } g3_start_kind;

typedef struct {
  g3_start_kind kind;
  g3_ckpt_index *index; /* NULL when fresh */
  bool clear; /* what an earlier run left in run.out is to be removed */
} g3_start;

/* Collective over world. Decides by run.resume, run.init, run.overwrite and what is on disk; the
 * model's shape (and on resume the seed) then come from the checkpoint, and a file or flag that
 * contradicts it is an error. Freed by g3_start_free. */
G3_MUST_USE g3_status g3_start_find(g3_settings *s, g3_comm *world, g3_start *out);

/* Collective over world. The checkpoint of run.resume, which must name one, for its weights alone:
 * what g3_start_find gives for run.init. */
G3_MUST_USE g3_status g3_start_find_weights(g3_settings *s, g3_comm *world, g3_start *out);
void g3_start_free(g3_start *start);

/* Collective over world. Initial weights, or weights, moments and position from the checkpoint;
 * G3_ENUMERIC when something in it is not finite. */
G3_MUST_USE g3_status g3_start_load(g3_job *job, const g3_start *start);

/* Local. What a checkpoint says of its model, as settings that g3_start_find takes back: keys and
 * values of this configuration. */
enum { G3_STATE_ATTRS = 8 };
void g3_state_describe(const g3_config *config, g3_ckpt_attr out[G3_STATE_ATTRS]);

/* Local. The same from a checkpoint into settings; `with_seed` takes train.seed too. G3_EFORMAT
 * when one is missing, G3_EINVAL when a file or flag has set another value. */
G3_MUST_USE g3_status g3_state_take(g3_settings *s, const g3_ckpt_index *ix, bool with_seed);

/* Local. Has the item look for the f32 master of its weight where the checkpoint holds one, as that
 * of a bf16 run does. */
void g3_state_prefer_master(const g3_ckpt_index *ix, g3_ckpt_item *item);

/* Collective over world. Writes out/checkpoints/step-...; G3_ENUMERIC, and nothing written, when
 * something to save is not finite. */
G3_MUST_USE g3_status g3_state_save(g3_job *job);

#endif
