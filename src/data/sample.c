#include "data/data.h"

g3_status g3_sample_train(const g3_tokens *t, const g3_split *s, int64_t sample, int32_t *out) {
  G3_CHECK(sample >= 0, "sample %lld does not exist", (long long)sample);
  const int64_t n = s->train_samples;
  const int64_t window = g3_permute(sample % n, n, s->seed, sample / n);
  return g3_tokens_read(t, window * s->seq, s->seq + 1, out);
}

g3_status g3_sample_val(const g3_tokens *t, const g3_split *s, int64_t sample, int32_t *out) {
  G3_CHECK(sample >= 0 && sample < s->val_samples, "validation sample %lld of %lld does not exist",
           (long long)sample, (long long)s->val_samples);
  return g3_tokens_read(t, s->train_tokens + sample * s->seq, s->seq + 1, out);
}
