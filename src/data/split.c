#include "data/data.h"

/* Whole windows of seq + 1 tokens that lie seq apart. */
static int64_t windows(int64_t tokens, int64_t seq) {
  return tokens > seq ? (tokens - 1) / seq : 0;
}

g3_status g3_split_make(int64_t tokens, double val_split, int64_t seq, uint64_t seed,
                        g3_split *out) {
  G3_CHECK(tokens >= 0 && seq > 0 && val_split >= 0 && val_split <= 1,
           "no split of %lld tokens into windows of %lld with a share of %g", (long long)tokens,
           (long long)seq, val_split);
  g3_split s = {.seq = seq, .seed = seed};
  s.val_tokens = (int64_t)((double)tokens * val_split + 0.5);
  if (s.val_tokens > tokens) s.val_tokens = tokens;
  s.train_tokens = tokens - s.val_tokens;
  s.train_samples = windows(s.train_tokens, seq);
  s.val_samples = windows(s.val_tokens, seq);
  if (s.train_samples == 0)
    return G3_FAIL(G3_EINVAL,
                   "too little data: %lld tokens, of which %lld are for training, but one sample "
                   "needs seq + 1 = %lld + 1; give more data, a smaller --seq%s",
                   (long long)tokens, (long long)s.train_tokens, (long long)seq,
                   s.val_tokens > 0 ? " or a smaller --val-split" : "");
  if (val_split > 0 && s.val_samples == 0)
    return G3_FAIL(G3_EINVAL,
                   "--val-split %g leaves %lld of %lld tokens for validation, but one sample needs "
                   "seq + 1 = %lld + 1; use a larger share, or --val-split 0 for none",
                   val_split, (long long)s.val_tokens, (long long)tokens, (long long)seq);
  *out = s;
  return G3_OK;
}
