/* Which slot and which border buffers each action of one rank uses. Pure, so that it can be tested
 * without memory, streams or ranks. */
#ifndef G3_PIPELINE_BORDERS_H
#define G3_PIPELINE_BORDERS_H
#include "pipeline/schedule.h"

/* Buffers come in four kinds, which never take each other's place: so within a group of transfers,
 * which run in no order, no buffer is both sent and received into. */
typedef enum {
  G3_BORDER_IN, /* activation that came in; written by a receive, or by the stage before on this
                   rank */
  G3_BORDER_OUT, /* activation on its way out */
  G3_BORDER_DOUT, /* gradient that came in; written like IN */
  G3_BORDER_DIN, /* gradient on its way out */
  G3_BORDER_KINDS
} g3_border_kind;

typedef struct {
  g3_border_kind kind;
  int index; /* among the buffers of the kind; -1: none */
} g3_border;

/* What one action uses. */
typedef struct {
  int slot; /* of saved activations, within the stage; 0 for what is not compute */
  g3_border from, to; /* F: in, out. B, I: dout, din. W: dout. Transfer: `from` is what moves */
  bool last; /* the stage's last backward of the step: a B, or a W */
} g3_border_use;

typedef struct {
  int slots; /* that each stage of the rank needs, 1 at least */
  int count[G3_BORDER_KINDS]; /* buffers of each kind */
  bool train; /* the lane has backwards */
  g3_border_use *use; /* [count of the lane] */
} g3_borders;

/* Local. Plays the lane of `rank` in order, taking the lowest free slot and buffer each time. An IN
 * buffer lives from its receive, and a slot from its F, until the backward (its W, when split)
 * returns; in a list of forwards, IN ends with F and the slot is always 0. OUT and DIN live until
 * sent, DOUT as long as IN. The same buffer serves again as soon as the last action that used it is
 * enqueued, so all actions must go to one stream. `s` has passed g3_sched_check. Caller frees by
 * g3_borders_free. */
G3_MUST_USE g3_status g3_borders_make(const g3_schedule *s, int rank, g3_borders **out);
void g3_borders_free(g3_borders *b); /* NULL is fine */

#endif
