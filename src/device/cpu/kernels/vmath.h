/* Mathematics that gcc vectorises: no branch, no call, no table. For files of kernels/. */
#ifndef G3_DEVICE_CPU_KERNELS_VMATH_H
#define G3_DEVICE_CPU_KERNELS_VMATH_H
#include "util/half.h"
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Element i of f32 or bf16 memory. `bf16` is a constant where these are inlined. */
static inline float g3_get(const void *p, int64_t i, bool bf16) {
  return bf16 ? g3_bf16_to_f32(((const g3_bf16 *)p)[i]) : ((const float *)p)[i];
}
/* Sets element i, rounded to nearest even when it is bf16. */
static inline void g3_put(void *p, int64_t i, float value, bool bf16) {
  if (bf16)
    ((g3_bf16 *)p)[i] = g3_f32_to_bf16(value);
  else
    ((float *)p)[i] = value;
}

/* The float that has these bits. */
static inline float g3_float_of_bits(uint32_t bits) {
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}
/* The bits of a float. */
static inline uint32_t g3_bits_of_float(float f) {
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  return bits;
}

/* e^x to 1 unit in the last place of normal results; right at 0, +-inf and NaN, and gradual below
 * the normal range. x = n ln 2 + r with |r| <= ln 2 / 2, ln 2 in two parts (Cody and Waite, 1980),
 * and 1 + r + r^2 q(r), q fitted to the least largest relative error. 2^n is applied as two
 * factors, so that neither overflows. */
static inline float g3_expf(float x) {
  const float round = 12582912.0f; /* 1.5 * 2^23: adding it leaves the nearest integer */
  x = 89.0f < x ? 89.0f : x;
  x = -104.0f > x ? -104.0f : x;
  const float shifted = x * 1.44269504f + round;
  const float n = shifted - round;
  float r = x - n * 0.693359375f;
  r = r + n * 2.12194440e-4f;
  float p = 1.979029767e-4f;
  p = p * r + 1.394470339e-3f;
  p = p * r + 8.333497681e-3f;
  p = p * r + 4.166629538e-2f;
  p = p * r + 1.666666567e-1f;
  p = p * r + 0.5f;
  p = p * (r * r) + r + 1.0f;
  const int32_t e = (int32_t)(g3_bits_of_float(shifted) - g3_bits_of_float(round));
  const int32_t half = e >> 1;
  const float f1 = g3_float_of_bits((uint32_t)(half + 127) << 23);
  const float f2 = g3_float_of_bits((uint32_t)(e - half + 127) << 23);
  return p * f1 * f2;
}

#endif
