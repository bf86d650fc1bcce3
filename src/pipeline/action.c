#include "pipeline/action.h"
#include <stdio.h>

/* A backward does two products for each one of the forward. */
const g3_act_info g3_act_table[G3_ACT_KINDS] = {
    [G3_ACT_F] = {.name = "F", .cost = 1, .compute = true, .gives = true},
    [G3_ACT_B] = {.name = "B", .cost = 2, .compute = true, .backward = true, .gives = true},
    [G3_ACT_I] = {.name = "I", .cost = 1, .compute = true, .backward = true, .gives = true},
    [G3_ACT_W] = {.name = "W", .cost = 1, .compute = true, .backward = true},
    [G3_ACT_SEND_F] = {.name = "SEND_F", .other = 1},
    [G3_ACT_RECV_F] = {.name = "RECV_F", .other = -1},
    [G3_ACT_SEND_B] = {.name = "SEND_B", .other = -1},
    [G3_ACT_RECV_B] = {.name = "RECV_B", .other = 1},
    [G3_ACT_REDUCE] = {.name = "REDUCE"},
};

const char *g3_act_text(g3_action a, char buf[G3_ACT_TEXT]) {
  const char *name = (unsigned)a.kind < G3_ACT_KINDS ? g3_act_table[a.kind].name : "?";
  if (a.kind == G3_ACT_REDUCE && a.micro == -1)
    snprintf(buf, G3_ACT_TEXT, "%d%s", a.stage, name);
  else
    snprintf(buf, G3_ACT_TEXT, "%d%s%d", a.stage, name, a.micro);
  return buf;
}
