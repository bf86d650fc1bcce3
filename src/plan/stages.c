#include "plan/stages.h"

/* Arithmetic for one token, forward, in multiply-adds. A look-up moves one row of the embedding. */
static double layer_cost(const g3_model_config *m) {
  const double w = (double)m->width;
  return 4.0 * w * w + 2.0 * w * (double)m->ffn + w * (double)m->seq;
}

static double stage_cost(const g3_model_config *m, int layers, bool first, bool last) {
  const double w = (double)m->width;
  return layer_cost(m) * layers + (first ? w : 0.0) + (last ? w * (double)m->vocab : 0.0);
}

double g3_stage_share(const g3_model_config *m, int layers, bool first, bool last) {
  return stage_cost(m, layers, first, last) / stage_cost(m, (int)m->layers, true, true);
}

g3_status g3_stage_layers(const g3_model_config *m, int stages, int *layers) {
  if (stages < 1 || stages > m->layers)
    return G3_FAIL(G3_EINVAL,
                   "%d pipeline stages need as many layers at least, but model.layers = %lld",
                   stages, (long long)m->layers);
  for (int s = 0; s < stages; s++)
    layers[s] = 1;
  /* Layers are alike, so giving each next one to the stage that stays cheapest is optimal. */
  for (int64_t left = m->layers - stages; left > 0; left--) {
    int best = 0;
    double best_cost = 0.0;
    for (int s = 0; s < stages; s++) {
      const double cost = stage_cost(m, layers[s] + 1, s == 0, s == stages - 1);
      if (s == 0 || cost < best_cost) {
        best = s;
        best_cost = cost;
      }
    }
    layers[best]++;
  }
  return G3_OK;
}
