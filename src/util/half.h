/* bfloat16 on the host: the upper half of a float, rounded to nearest even. */
#ifndef G3_UTIL_HALF_H
#define G3_UTIL_HALF_H
#include <stdint.h>
#include <string.h>

typedef uint16_t g3_bf16;

/* Exact. */
static inline float g3_bf16_to_f32(g3_bf16 h) {
  const uint32_t bits = (uint32_t)h << 16;
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

/* Round to nearest, ties to even; a NaN stays a NaN. */
static inline g3_bf16 g3_f32_to_bf16(float f) {
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  const uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  const uint32_t quiet = (bits >> 16) | 0x40u;
  return (g3_bf16)((bits & 0x7FFFFFFFu) > 0x7F800000u ? quiet : rounded);
}

#endif
