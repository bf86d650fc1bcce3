#include "data/data.h"
#include "util/philox.h"

/* Four rounds make a Feistel network a strong pseudo-random permutation (Luby and Rackoff, 1988);
 * small domains are served by a few more. */
enum { ROUNDS = 6 };

/* One pass over the domain of 2 * half bits. */
static uint64_t feistel(uint64_t x, int half, uint64_t key) {
  const uint32_t mask = (uint32_t)((UINT64_C(1) << half) - 1);
  uint32_t left = (uint32_t)(x >> half) & mask, right = (uint32_t)x & mask;
  for (uint32_t round = 0; round < ROUNDS; round++) {
    const g3_philox_block b = g3_philox((uint32_t)key, (uint32_t)(key >> 32), right, round, 0, 0);
    const uint32_t mixed = left ^ (b.w[0] & mask);
    left = right;
    right = mixed;
  }
  return (uint64_t)left << half | right;
}

int64_t g3_permute(int64_t i, int64_t n, uint64_t seed, int64_t epoch) {
  G3_CHECK(i >= 0 && i < n && epoch >= 0, "place %lld of %lld in epoch %lld does not exist",
           (long long)i, (long long)n, (long long)epoch);
  int half = 1; /* 2 * half bits hold n - 1, with less than two to spare: under four passes each */
  while (half < 32 && (uint64_t)(n - 1) >> (2 * half))
    half++;
  const uint64_t key = g3_rng_key(seed, G3_RNG_ORDER, (uint64_t)epoch);
  uint64_t x = (uint64_t)i;
  do
    x = feistel(x, half, key);
  while (x >= (uint64_t)n);
  return (int64_t)x;
}
