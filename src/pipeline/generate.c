/* The schedules: each generator says what a rank computes, in order, and nothing of transfers. */
#include "pipeline/schedule.h"
#include "util/array.h"
#include <limits.h>
#include <string.h>

static g3_status add(g3_schedule *s, int rank, g3_act_kind kind, int stage, int micro) {
  return g3_lane_add(&s->lane[rank], (g3_action){kind, stage, micro, -1});
}

/* All micro-batches through one chunk after another, from the first or from the last. */
static g3_status add_all(const g3_sched_shape *shape, g3_schedule *s, int rank, g3_act_kind kind) {
  for (int i = 0; i < shape->chunks; i++) {
    const int chunk = kind == G3_ACT_F ? i : shape->chunks - 1 - i;
    for (int m = 0; m < shape->micros; m++)
      G3_TRY(add(s, rank, kind, chunk * shape->ranks + rank, m));
  }
  return G3_OK;
}

/* Evaluation: no backward, nothing kept. */
static g3_status forward(const g3_sched_shape *shape, g3_schedule *s) {
  for (int r = 0; r < shape->ranks; r++)
    G3_TRY(add_all(shape, s, r, G3_ACT_F));
  return G3_OK;
}

/* Huang et al., "GPipe", NeurIPS'19, figure 2c; backwards in order of micro-batches, so that
 * gradients add up in the same order as in the other schedules. */
static g3_status gpipe(const g3_sched_shape *shape, g3_schedule *s) {
  for (int r = 0; r < shape->ranks; r++) {
    G3_TRY(add_all(shape, s, r, G3_ACT_F));
    G3_TRY(add_all(shape, s, r, G3_ACT_B));
  }
  return G3_OK;
}

/* Narayanan et al., "Efficient large-scale language model training on GPU clusters using
 * Megatron-LM", SC'21, section 2.2 (PipeDream-Flush): a rank goes ahead of the backwards by no more
 * forwards than there are ranks behind it. */
static g3_status one_f_one_b(const g3_sched_shape *shape, g3_schedule *s) {
  if (shape->chunks != 1)
    return G3_FAIL(G3_EINVAL,
                   "schedule 1f1b holds one chunk a rank, but %d are wanted; use 1 chunk, or gpipe",
                   shape->chunks);
  for (int r = 0; r < shape->ranks; r++) {
    const int behind = shape->ranks - 1 - r;
    const int ahead = behind < shape->micros ? behind : shape->micros;
    for (int m = 0; m < shape->micros + ahead; m++) {
      if (m < shape->micros) G3_TRY(add(s, r, G3_ACT_F, r, m));
      if (m >= ahead) G3_TRY(add(s, r, G3_ACT_B, r, m - ahead));
    }
  }
  return G3_OK;
}

const g3_sched_kind g3_sched_kinds[] = {
    {"gpipe", "all forwards, then all backwards; keeps every micro-batch's activations", gpipe},
    {"1f1b", "forwards and backwards by turns; keeps at most one micro-batch a later rank",
     one_f_one_b},
    {"forward", "forwards only, for evaluation", forward},
    {NULL, NULL, NULL},
};

static g3_status find(const char *kind, const g3_sched_kind **out) {
  char known[256] = "";
  for (const g3_sched_kind *k = g3_sched_kinds; k->name; k++) {
    if (strcmp(k->name, kind) == 0) {
      *out = k;
      return G3_OK;
    }
    const size_t used = strlen(known);
    snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "", k->name);
  }
  return G3_FAIL(G3_EINVAL, "no schedule is called \"%s\"; use one of %s", kind, known);
}

g3_status g3_sched_generate(const char *kind, const g3_sched_shape *shape, g3_schedule **out) {
  const g3_sched_kind *k = NULL;
  G3_TRY(find(kind, &k));
  int64_t stages;
  if (!g3_mul_ok(shape->ranks, shape->chunks, &stages) || stages > INT_MAX)
    return G3_FAIL(G3_EINVAL, "%d ranks of %d chunks are too many stages", shape->ranks,
                   shape->chunks);
  g3_schedule *s = NULL;
  G3_TRY(g3_sched_new(shape->ranks, (int)stages, shape->micros, &s));
  for (int i = 0; i < s->stages; i++)
    s->rank_of_stage[i] = i % s->ranks;
  const g3_status st = k->make(shape, s);
  if (st != G3_OK) {
    g3_sched_free(s);
    return g3_trace_up(st, __FILE__, __LINE__);
  }
  *out = s;
  return G3_OK;
}
