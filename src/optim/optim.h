/* AdamW with clipping on the shard of the flat space that a rank owns. */
#ifndef G3_OPTIM_OPTIM_H
#define G3_OPTIM_OPTIM_H
#include "comm/comm.h"
#include "config/config.h"
#include "device/device.h"
#include "parallel/flat.h"

typedef struct g3_optim g3_optim;

typedef struct {
  const g3_flat *flat; /* borrowed */
  g3_tensor params, grads; /* [flat->count]; params f32 or bf16, grads f32 */
  int parts, index; /* my range of each bucket: dp and my place with ZeRO, 1 and 0 without */
  int nsquares; /* parameters in the whole model */
  bool counts_tp; /* this rank counts parameters that are whole on tp: tp rank 0 */
  bool counts_all; /* false on ranks whose gradients are counted elsewhere (dp > 0 without ZeRO) */
  bool exact; /* loss and squares are summed without rounding (util/fixed.h) */
} g3_optim_spec;

/* Local. Takes moments (and f32 master weights when params are bf16) from the optimizer arena, and
 * the sums and control; the arena's memory is zeroed, which is where all of them begin. */
G3_MUST_USE g3_status g3_optim_create(const g3_optim_spec *spec, g3_arenas *arenas, g3_optim **out);
void g3_optim_destroy(g3_optim *o); /* NULL is fine */

/* The vector of sums, f64 [G3_SUM_SQUARES + nsquares], and the control block, u8. Where the loss is
 * added: f64 [1], its entry of the sums, or exact the sum f64 [G3_FIXED_SIZE] that it is rounded
 * from. Owned by o. */
g3_tensor g3_optim_loss(const g3_optim *o);
g3_tensor g3_optim_sums(const g3_optim *o);
g3_tensor g3_optim_control(const g3_optim *o);

/* Moments and master weights: f32 [shard count], in segment order; master is none for f32
 * parameters. */
g3_tensor g3_optim_exp_avg(const g3_optim *o);
g3_tensor g3_optim_exp_avg_sq(const g3_optim *o);
g3_tensor g3_optim_master(const g3_optim *o);
const g3_segment *g3_optim_segments(const g3_optim *o, int *n);

/* Local. Master weights := the weights (after initialisation or a load without masters). */
G3_MUST_USE g3_status g3_optim_adopt(g3_optim *o, g3_stream *s);

/* Local. Clears the sums: where a step or an evaluation begins. */
G3_MUST_USE g3_status g3_optim_clear(g3_optim *o, g3_stream *s);

/* Collective over all ranks. Sums the vector of sums over them; of it only the loss with
 * `loss_alone`. */
G3_MUST_USE g3_status g3_optim_sum_up(g3_optim *o, g3_stream *s, g3_comm *world, bool loss_alone);

/* Local. Adds each owned gradient's square to its entry of the sums (float64, in table order, each
 * element of the model once over all ranks). The caller clears the sums when a step begins, sums
 * them up over all ranks after this, then calls step. */
G3_MUST_USE g3_status g3_optim_squares(g3_optim *o, g3_stream *s);

/* Local. Control from the reduced sums, then AdamW on the shard; with bf16 the weights are rounded
 * from the masters. */
G3_MUST_USE g3_status g3_optim_step(g3_optim *o, g3_stream *s, const g3_optim_config *c, double lr);

#endif
