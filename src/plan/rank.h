/* Everything that one rank holds, laid out. The trainer builds it on real arenas, the plan on
 * measuring ones: by the same code, so that the prediction is the allocation. */
#ifndef G3_PLAN_RANK_H
#define G3_PLAN_RANK_H
#include "ckpt/ckpt.h"
#include "model/gpt.h"
#include "optim/optim.h"
#include "parallel/mesh.h"
#include "pipeline/runtime.h"

typedef struct {
  const g3_config *config; /* borrowed */
  g3_grid grid;
  g3_coord at;
  int64_t micros; /* micro-batches of a step on each data rank */
  int *layers_of_stage; /* [pp] */
  g3_gpt_part part;
  g3_flat *flat;
  g3_tensor params, grads;
  g3_schedule *train_schedule, *eval_schedule;
  g3_runtime *train, *eval;
  g3_gpt *gpt;
  g3_optim *optim;
  g3_tensor workspace; /* of the compute stream */
  g3_tensor comm_scratch; /* of the communicators */
  g3_fold fold; /* exact: sums up the samples of a step */
  g3_tensor tree_scratch; /* exact: of sums of buckets over dp */
  g3_tensor tokens; /* i32 [micros * micro_batch, seq + 1] */
  g3_ckpt_item *save; /* what this rank writes into a checkpoint */
  int nsave;
  g3_tensor stage; /* u8: staging of checkpoints */
} g3_rank;

/* Local; no MPI, no device. config must have passed g3_config_check for the grid. */
G3_MUST_USE g3_status g3_rank_build(const g3_config *config, const g3_grid *grid, g3_coord at,
                                    g3_arenas *arenas, g3_rank **out);
void g3_rank_destroy(g3_rank *r); /* NULL is fine */

/* Local. What this rank needs from a checkpoint: all its weights, and its shard of the optimizer's
 * state. The caller frees *out with free(). */
G3_MUST_USE g3_status g3_rank_load_items(const g3_rank *r, g3_ckpt_item **out, int *n);

/* Local. Bytes of each class that the rank at `at` will hold. */
G3_MUST_USE g3_status g3_rank_measure(const g3_config *config, const g3_grid *grid, g3_coord at,
                                      size_t bytes[G3_MEM_CLASSES]);

/* The backend that a configuration means; "auto" is the CPU where no other is in the build. */
const char *g3_config_backend(const g3_config *config);

#endif
