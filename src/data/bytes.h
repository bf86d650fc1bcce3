/* Integers in files: little-endian, of any alignment, whatever the machine. */
#ifndef G3_DATA_BYTES_H
#define G3_DATA_BYTES_H
#include <stdint.h>

/* `size` (1 to 8) bytes as an unsigned number. */
static inline uint64_t g3_bytes_get(const uint8_t *p, int size) {
  uint64_t v = 0;
  for (int i = 0; i < size; i++)
    v |= (uint64_t)p[i] << (8 * i);
  return v;
}

/* The same as two's complement. */
static inline int64_t g3_bytes_get_signed(const uint8_t *p, int size) {
  const int spare = 64 - 8 * size;
  return (int64_t)(g3_bytes_get(p, size) << spare) >> spare;
}

/* The lowest `size` bytes of v. */
static inline void g3_bytes_put(uint8_t *p, int size, uint64_t v) {
  for (int i = 0; i < size; i++)
    p[i] = (uint8_t)(v >> (8 * i));
}

#endif
