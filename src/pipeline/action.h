/* What a pipeline rank does, one thing at a time. */
#ifndef G3_PIPELINE_ACTION_H
#define G3_PIPELINE_ACTION_H
#include <stdbool.h>
#include <stdint.h>

/* F forward; B whole backward = I (gradient of the input) then W (gradients of the weights). */
typedef enum {
  G3_ACT_F,
  G3_ACT_B,
  G3_ACT_I,
  G3_ACT_W,
  G3_ACT_SEND_F,
  G3_ACT_RECV_F,
  G3_ACT_SEND_B,
  G3_ACT_RECV_B,
  G3_ACT_REDUCE, /* flush what is left of one stage's data-parallel reduction */
  G3_ACT_KINDS
} g3_act_kind;

typedef struct {
  g3_act_kind kind;
  int stage; /* global stage number. A transfer bears the stage at this end: SEND_F s goes to s + 1,
                RECV_F s comes from s - 1, SEND_B s goes to s - 1, RECV_B s comes from s + 1 */
  int micro; /* micro-batch; -1 for REDUCE */
  int group; /* transfers of one group are issued as one exchange; -1 for others */
} g3_action;

/* One row a kind. */
typedef struct {
  const char *name; /* in text form: "F", "SEND_F", ... */
  int cost; /* time, in units of one stage's forward; 0 for what is not compute */
  bool compute;
  bool backward; /* B, I or W */
  bool gives; /* its result goes on to a neighbouring stage: F, B or I */
  int other; /* of a transfer: the stage at the other end, less this one: -1 or 1; else 0 */
} g3_act_info;

extern const g3_act_info g3_act_table[G3_ACT_KINDS]; /* by kind */

enum { G3_ACT_TEXT = 40 }; /* bytes that any action's text takes, with its end */

/* Local. Writes "2F0" (stage, kind, micro-batch if any) into `buf` and returns it. */
const char *g3_act_text(g3_action a, char buf[G3_ACT_TEXT]);

#endif
