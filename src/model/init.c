/* Initial weights by counter: element i of a parameter is the same number in any layout. */
#include "model/internal.h"
#include "util/half.h"
#include "util/philox.h"
#include <math.h>

enum { CHUNK = 8192 }; /* elements staged at once */

/* N(centre, std^2). */
typedef struct {
  float centre, std;
} normal_law;

/* Four normal deviates of one counter (Box and Muller, 1958). */
static void normals(uint64_t key, uint64_t counter, float out[4]) {
  const g3_philox_block b = g3_philox((uint32_t)key, (uint32_t)(key >> 32), (uint32_t)counter,
                                      (uint32_t)(counter >> 32), 0, 0);
  for (int i = 0; i < 4; i += 2) {
    const float radius = sqrtf(-2.0f * logf(g3_unit(b.w[i])));
    const float angle = 6.28318530717958648f * g3_unit(b.w[i + 1]);
    out[i] = radius * cosf(angle);
    out[i + 1] = radius * sinf(angle);
  }
}

/* Elements [first, first + n) of the whole parameter. */
static void fill_normal(uint64_t key, normal_law law, int64_t first, int64_t n, float *out) {
  float four[4] = {0};
  uint64_t have = UINT64_MAX;
  for (int64_t i = 0; i < n; i++) {
    const uint64_t element = (uint64_t)(first + i);
    if (law.std > 0.0f && element / 4 != have) {
      have = element / 4;
      normals(key, have, four);
    }
    out[i] = law.centre + (law.std > 0.0f ? law.std * four[element % 4] : 0.0f);
  }
}

/* The number in the whole tensor of the slice's element with number `local` in its own order. */
static int64_t global_element(const g3_slice *s, int64_t local) {
  int64_t index = 0, stride = 1;
  for (int d = s->ndim - 1; d >= 0; d--) {
    index += (s->start[d] + local % s->count[d]) * stride;
    local /= s->count[d];
    stride *= s->global[d];
  }
  return index;
}

static g3_status store(g3_gpt *g, g3_stream *s, g3_tensor dst, const float *values) {
  g3_bf16 halves[CHUNK];
  const int64_t n = g3_tensor_count(dst);
  g3_tensor src = g3_tensor_1d((void *)values, G3_F32, n);
  if (dst.dtype == G3_BF16) {
    for (int64_t i = 0; i < n; i++)
      halves[i] = g3_f32_to_bf16(values[i]);
    src = g3_tensor_1d(halves, G3_BF16, n);
  }
  G3_TRY(g->dev->ops->copy(s, dst, src));
  return g->dev->ops->sync(s);
}

static normal_law law_of(const g3_gpt *g, const g3_param_row *row, bool all_random) {
  if (row->init_std <= 0.0f)
    return (normal_law){row->init_std < 0.0f ? 1.0f : 0.0f, all_random ? 0.1f : 0.0f};
  const float shrink = row->scaled ? sqrtf(2.0f * (float)g->spec.model.layers) : 1.0f;
  return (normal_law){0.0f, row->init_std / shrink};
}

static g3_status init_param(g3_gpt *g, g3_stream *s, const g3_param *p, normal_law law) {
  float values[CHUNK];
  const int64_t real = g3_slice_count(&p->slice);
  if (real == 0) return G3_OK;
  const int64_t run = p->slice.count[p->slice.ndim - 1]; /* neighbours here and in the whole */
  const uint64_t key = g3_rng_key(g->spec.seed, G3_RNG_INIT, (uint64_t)p->number);
  for (int64_t done = 0; done < real;) {
    int64_t n = run - done % run;
    if (n > CHUNK) n = CHUNK;
    fill_normal(key, law, global_element(&p->slice, done), n, values);
    G3_TRY(store(g, s, g3_tensor_part(g->spec.params, 0, p->offset + done, n), values));
    done += n;
  }
  return G3_OK;
}

g3_status g3_gpt_init(g3_gpt *g, g3_stream *s, bool all_random) {
  const g3_flat *flat = g->spec.flat;
  for (int i = 0; i < flat->nparams; i++)
    G3_TRY(init_param(g, s, &flat->param[i], law_of(g, &g3_gpt_rows[g->place[i].row], all_random)));
  return G3_OK;
}
