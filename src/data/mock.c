#include "data/mock.h"
#include "util/philox.h"
#include <stdbool.h>

/* A token at a multiple of this is always new, which bounds how far back a reader must look. */
enum { RESTART = 64 };

typedef struct {
  bool fresh;
  int64_t token; /* when fresh */
} draw;

static draw draw_at(uint64_t key, int64_t vocab, int64_t position) {
  const g3_philox_block b = g3_philox((uint32_t)key, (uint32_t)(key >> 32), (uint32_t)position,
                                      (uint32_t)((uint64_t)position >> 32), 0, 0);
  /* A product of two uniform numbers: density -ln x, dense near 0. */
  const uint64_t skewed = (uint64_t)b.w[1] * b.w[2] >> 32;
  return (draw){position % RESTART == 0 || b.w[0] >> 30 == 0,
                (int64_t)(skewed * (uint64_t)vocab >> 32)};
}

static int64_t follow(int64_t token, int64_t vocab) {
  return (token * 31 + 17) % vocab;
}

void g3_mock_read(int64_t vocab, int64_t start, int64_t n, int32_t *out) {
  const uint64_t key = g3_rng_key(0, G3_RNG_MOCK, 0);
  int64_t from = start, token = 0;
  while (!draw_at(key, vocab, from).fresh)
    from--;
  for (int64_t i = from; i < start + n; i++) {
    const draw d = draw_at(key, vocab, i);
    token = d.fresh ? d.token : follow(token, vocab);
    if (i >= start) out[i - start] = (int32_t)token;
  }
}
