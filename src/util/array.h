/* Memory for small host structures: zeroed, checked for overflow. Big buffers come from arenas
 * instead. */
#ifndef G3_UTIL_ARRAY_H
#define G3_UTIL_ARRAY_H
#include "util/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* `*out` = zeroed room for n elements of `size` bytes (n = 0 gives a freeable pointer). G3_ENOMEM
 * on failure or overflow. Freed with free(). Local. */
G3_MUST_USE g3_status g3_alloc_array(int64_t n, size_t size, void **out);

#define G3_NEW_ARRAY(n, ptr) g3_alloc_array((n), sizeof **(ptr), (void **)(ptr))

/* a * b and a + b in int64_t; false when the true result does not fit. */
static inline bool g3_mul_ok(int64_t a, int64_t b, int64_t *out) {
  return !__builtin_mul_overflow(a, b, out);
}
static inline bool g3_add_ok(int64_t a, int64_t b, int64_t *out) {
  return !__builtin_add_overflow(a, b, out);
}

/* The smallest multiple of `unit` that is >= x; x >= 0, unit > 0. */
static inline int64_t g3_round_up(int64_t x, int64_t unit) {
  return (x + unit - 1) / unit * unit;
}

/* ceil(a / b), a >= 0, b > 0. */
static inline int64_t g3_ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

#endif
