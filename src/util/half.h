/* 16-bit floats on the host: bfloat16, which is the upper half of a float, and IEEE binary16. */
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

/* binary16 (5 bits of exponent, 10 of mantissa) as a float. Exact; a NaN keeps its payload. */
static inline float g3_f16_to_f32(uint16_t h) {
  const uint32_t sign = (uint32_t)(h & 0x8000u) << 16, mantissa = h & 0x3FFu;
  const uint32_t exponent = (h >> 10) & 0x1Fu;
  uint32_t bits;
  float f;
  if (exponent == 0) { /* zero, or mantissa * 2^-24 */
    f = (float)mantissa * 0x1p-24f;
    memcpy(&bits, &f, sizeof bits);
  } else if (exponent == 0x1F) {
    bits = 0x7F800000u | mantissa << 13;
  } else {
    bits = (exponent + 127 - 15) << 23 | mantissa << 13;
  }
  bits |= sign;
  memcpy(&f, &bits, sizeof f);
  return f;
}

#endif
