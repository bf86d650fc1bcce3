/* Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as
 * 1, 2, 3", SC'11, section 3.3). There is no generator state: the same (key, counter) gives the
 * same four words on any rank, thread or device. C++-clean, so that CUDA files may include it. */
#ifndef G3_UTIL_PHILOX_H
#define G3_UTIL_PHILOX_H
#include <stdint.h>

#ifdef __CUDACC__
#define G3_HD __host__ __device__
#else
#define G3_HD
#endif

/* What one counter gives. */
typedef struct {
  uint32_t w[4];
} g3_philox_block;

/* The four words of one counter. */
G3_HD static inline g3_philox_block g3_philox(uint32_t k0, uint32_t k1, uint32_t c0, uint32_t c1,
                                              uint32_t c2, uint32_t c3) {
  for (int round = 0; round < 10; round++) {
    const uint64_t p0 = (uint64_t)0xD2511F53u * c0;
    const uint64_t p1 = (uint64_t)0xCD9E8D57u * c2;
    c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
    c1 = (uint32_t)p1;
    c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
    c3 = (uint32_t)p0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  g3_philox_block b = {{c0, c1, c2, c3}};
  return b;
}

/* What a stream of numbers is for; part of every key, so that no two uses share numbers. */
typedef enum {
  G3_RNG_INIT = 1,
  G3_RNG_ORDER = 2,
  G3_RNG_DROP_EMBED = 3,
  G3_RNG_DROP_ATTENTION = 4,
  G3_RNG_DROP_RESIDUAL = 5,
  G3_RNG_MOCK = 6
} g3_rng_use;

/* A key for (seed, use, item), where `item` is a layer or a parameter's number. */
G3_HD static inline uint64_t g3_rng_key(uint64_t seed, g3_rng_use use, uint64_t item) {
  const g3_philox_block b = g3_philox((uint32_t)seed, (uint32_t)(seed >> 32), (uint32_t)item,
                                      (uint32_t)(item >> 32), (uint32_t)use, 0x67336433u);
  return (uint64_t)b.w[1] << 32 | b.w[0];
}

/* A word as a float in (0, 1]: never 0, so that its logarithm is finite. */
G3_HD static inline float g3_unit(uint32_t w) {
  return ((float)(w >> 8) + 1.0f) * (1.0f / 16777216.0f);
}

#endif
