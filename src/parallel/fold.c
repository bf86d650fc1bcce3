#include "parallel/fold.h"

int g3_fold_levels(int64_t samples) {
  G3_CHECK(samples > 0 && (samples & (samples - 1)) == 0, "%lld samples are no power of two",
           (long long)samples);
  return __builtin_ctzll((unsigned long long)samples);
}

/* A bucket within a tensor over the flat space. */
static g3_tensor in(g3_tensor t, int64_t first, const g3_bucket *b) {
  return g3_tensor_1d(g3_tensor_at(t, first + b->offset), G3_F32, b->count);
}

g3_status g3_fold_bucket(const g3_fold *f, g3_stream *s, int bucket, int64_t sample) {
  const g3_device_ops *ops = s->dev->ops;
  const g3_bucket *b = &f->flat->bucket[bucket];
  const g3_tensor grads = in(f->grads, 0, b);
  int64_t level = 0;
  /* as adding 1 to a binary number: each full digit carries */
  for (; sample >> level & 1; level++)
    G3_TRY(ops->add(s, grads, in(f->levels, level * f->flat->count, b)));
  if (sample + 1 == f->samples) return G3_OK;
  G3_TRY(ops->copy(s, in(f->levels, level * f->flat->count, b), grads));
  return ops->fill(s, grads, 0.0f);
}
