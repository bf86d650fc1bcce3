#include "util/array.h"
#include <stdlib.h>

g3_status g3_alloc_array(int64_t n, size_t size, void **out) {
  if (n < 0 || (size != 0 && (uint64_t)n > SIZE_MAX / size))
    return G3_FAIL(G3_ENOMEM, "an array of %lld elements of %zu bytes is impossible", (long long)n,
                   size);
  void *p = calloc(n ? (size_t)n : 1, size ? size : 1);
  if (!p) return G3_FAIL(G3_ENOMEM, "no memory for %lld elements of %zu bytes", (long long)n, size);
  *out = p;
  return G3_OK;
}
