/* Runs a schedule's list of actions: buffers at the borders of stages, grouped exchanges, calls
 * into stages. */
#ifndef G3_PIPELINE_RUNTIME_H
#define G3_PIPELINE_RUNTIME_H
#include "comm/comm.h"
#include "pipeline/schedule.h"
#include "pipeline/stage.h"

typedef struct g3_runtime g3_runtime;

typedef struct {
  const g3_schedule *schedule; /* borrowed; made by g3_sched_make, or read and checked */
  int rank; /* in the pipeline */
  int64_t rows, width; /* of what crosses between stages: [rows, width] */
  g3_dtype dtype;
} g3_runtime_spec;

/* Local. Works out slots and border buffers and takes them from the boundary arena (which may be
 * measuring): only those that this rank needs. The schedule must outlive the runtime. */
G3_MUST_USE g3_status g3_runtime_create(const g3_runtime_spec *spec, g3_arenas *arenas,
                                        g3_runtime **out);
void g3_runtime_destroy(g3_runtime *r); /* NULL is fine */

/* Slots of saved activations that each of this rank's stages needs: 1 at least. */
int g3_runtime_slots(const g3_runtime *r);

/* Local. Gives it the stages of this rank (in order of index, all of them; borrowed), the
 * pipeline's ranks and the stream. Ends the job when they are not those of the schedule. */
void g3_runtime_attach(g3_runtime *r, g3_stage *const *stages, int nstages, g3_comm *pp,
                       g3_stream *compute);

/* Called for REDUCE. */
typedef g3_status (*g3_reduce_fn)(void *ctx, int stage, g3_stream *s);

/* Collective over pp. Runs the whole list once, everything on the compute stream; it may return
 * before the stream is done. `done` and `reduce` may be NULL (evaluation). No allocation. On
 * failure the other ranks of pp may be left waiting: the caller ends the job. */
G3_MUST_USE g3_status g3_runtime_run(g3_runtime *r, g3_bucket_done done, g3_reduce_fn reduce,
                                     void *ctx);

#endif
