#include "data/data.h"

int64_t g3_sample_train_token(const g3_split *s, int64_t sample) {
  G3_CHECK(sample >= 0, "sample %lld does not exist", (long long)sample);
  const int64_t n = s->train_samples;
  return g3_permute(sample % n, n, s->seed, sample / n) * s->seq;
}

g3_status g3_sample_train(const g3_tokens *t, const g3_split *s, int64_t sample, int32_t *out) {
  return g3_tokens_read(t, g3_sample_train_token(s, sample), s->seq + 1, out);
}

g3_status g3_sample_val(const g3_tokens *t, const g3_split *s, int64_t sample, int32_t *out) {
  G3_CHECK(sample >= 0 && sample < s->val_samples, "validation sample %lld of %lld does not exist",
           (long long)sample, (long long)s->val_samples);
  return g3_tokens_read(t, s->train_tokens + sample * s->seq, s->seq + 1, out);
}

int64_t g3_file_windows(int64_t tokens, int64_t seq) {
  return tokens > 1 ? (tokens - 2) / seq + 1 : 0;
}

g3_status g3_sample_file(const g3_tokens *t, const g3_split *s, int64_t window, int32_t *out) {
  const int64_t count = g3_tokens_count(t), windows = g3_file_windows(count, s->seq);
  G3_CHECK(window >= 0 && window < windows, "window %lld of %lld does not exist", (long long)window,
           (long long)windows);
  const int64_t start = window * s->seq, length = s->seq + 1;
  const int64_t there = count - start < length ? count - start : length;
  for (int64_t i = there; i < length; i++)
    out[i] = -1;
  return g3_tokens_read(t, start, there, out);
}
