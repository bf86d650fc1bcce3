#include "device/cpu/kernels/adamw.h"
#include "device/cpu/cpu.h"
#include <math.h>
#include <string.h>

enum { BLOCK = 1 << 13 }; /* elements that a thread takes at a time */

static bool dense_of(g3_tensor t, g3_dtype dtype, int64_t count) {
  return t.data && t.dtype == dtype && g3_tensor_dense(t) && g3_tensor_count(t) == count;
}

g3_status g3_cpu_control(g3_stream *s, g3_tensor control, g3_tensor sums, float max_norm) {
  G3_TRY(g3_stream_drain(s));
  const int64_t n = g3_tensor_count(sums);
  G3_CHECK(dense_of(control, G3_U8, sizeof(g3_control)) && dense_of(sums, G3_F64, n) &&
               n >= G3_SUM_SQUARES,
           "control: not a g3_control and its float64 sums");
  g3_control c;
  memcpy(&c, control.data, sizeof c);
  const double *sum = sums.data;
  double squares = 0;
  for (int64_t i = G3_SUM_SQUARES; i < n; i++)
    squares += sum[i];
  c.loss_sum = sum[G3_SUM_LOSS];
  c.tokens = sum[G3_SUM_TOKENS];
  c.stop = sum[G3_SUM_STOP];
  c.norm = sqrt(squares);
  const double factor = (double)max_norm / (c.norm + 1e-6);
  const bool finite = isfinite(c.norm) && isfinite(c.loss_sum);
  c.clip = finite && max_norm > 0 && factor < 1 ? (float)factor : 1.0f;
  c.skip = !finite || c.norm * (double)c.clip >= G3_MOST_NORM;
  if (!c.skip) c.applied_steps++;
  memcpy(control.data, &c, sizeof c);
  return G3_OK;
}

static g3_adamw_step step_of(const g3_adamw_spec *spec, const g3_control *c) {
  const double t = (double)c->applied_steps;
  return (g3_adamw_step){
      .beta1 = spec->beta1,
      .beta2 = spec->beta2,
      .one_minus_beta1 = (float)(1 - (double)spec->beta1),
      .one_minus_beta2 = (float)(1 - (double)spec->beta2),
      .step = (float)((double)spec->lr / (1 - pow((double)spec->beta1, t))),
      .root = (float)(1 / sqrt(1 - pow((double)spec->beta2, t))),
      .eps = spec->eps,
      .keep = (float)(1 - (double)spec->lr * (double)spec->decay),
      .clip = c->clip,
  };
}

g3_status g3_cpu_adamw(g3_stream *s, g3_tensor p, g3_tensor low, g3_tensor m, g3_tensor v,
                       g3_tensor g, const g3_adamw_spec *spec, g3_tensor control) {
  G3_TRY(g3_stream_drain(s));
  const int64_t n = g3_tensor_count(p);
  G3_CHECK(dense_of(control, G3_U8, sizeof(g3_control)), "adamw: not a g3_control");
  g3_control c;
  memcpy(&c, control.data, sizeof c);
  if (c.skip || n == 0) return G3_OK;
  G3_CHECK(dense_of(p, G3_F32, n) && dense_of(m, G3_F32, n) && dense_of(v, G3_F32, n) &&
               dense_of(g, G3_F32, n) && (!low.data || dense_of(low, G3_BF16, n)),
           "adamw wants dense tensors of %lld elements, f32 and bf16 for the low one",
           (long long)n);
  G3_CHECK(c.applied_steps > 0, "adamw before the first control");
  const g3_adamw_kernels *k = g3_adamw();
  const g3_adamw_step step = step_of(spec, &c);
  const int threads = g3_cpu_threads(s, n);
#pragma omp parallel for num_threads(threads)
  for (int64_t i = 0; i < n; i += BLOCK)
    k->update((float *)p.data + i, low.data ? (uint16_t *)low.data + i : NULL, (float *)m.data + i,
              (float *)v.data + i, (const float *)g.data + i, n - i < BLOCK ? n - i : BLOCK, &step);
  return G3_OK;
}
