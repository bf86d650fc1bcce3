#include "ckpt/shard.h"
#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t g3_ckpt_hash(const void *bytes, size_t n) {
  return XXH3_64bits(bytes, n);
}
