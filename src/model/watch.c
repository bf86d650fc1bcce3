/* Tensors shown to who watches: for finding where a number went bad, and for making one bad. */
#include "model/internal.h"

const char *const g3_seen_names[G3_SEEN_KINDS] = {
    [G3_SEEN_EMBED] = "embed", [G3_SEEN_LN1] = "ln1",     [G3_SEEN_QKV] = "qkv",
    [G3_SEEN_ATT] = "att",     [G3_SEEN_MID] = "mid",     [G3_SEEN_LN2] = "ln2",
    [G3_SEEN_UP] = "up",       [G3_SEEN_ACT] = "act",     [G3_SEEN_OUT] = "out",
    [G3_SEEN_FINAL] = "final", [G3_SEEN_LOSS] = "loss",   [G3_SEEN_D_FINAL] = "d_final",
    [G3_SEEN_D_ACT] = "d_act", [G3_SEEN_D_UP] = "d_up",   [G3_SEEN_D_MID] = "d_mid",
    [G3_SEEN_D_ATT] = "d_att", [G3_SEEN_D_QKV] = "d_qkv", [G3_SEEN_D_IN] = "d_in",
};

void g3_gpt_watch(g3_gpt *g, g3_see_fn see, void *ctx) {
  g->see = see;
  g->see_ctx = ctx;
}

g3_status g3_gpt_show(g3_gpt *g, g3_stream *s, g3_seen_kind kind, int micro, int layer, int64_t row,
                      g3_tensor t) {
  const g3_gpt_part *part = &g->spec.part;
  const bool cut = g->region.sequence && kind != G3_SEEN_LOSS && t.dim[0] == g->p;
  const g3_seen seen = {.kind = kind,
                        .micro = micro,
                        .layer = part->first_layer + layer,
                        .row = cut ? part->tp_rank * g->p : row,
                        .t = t};
  return g->see(g->see_ctx, s, &seen);
}
