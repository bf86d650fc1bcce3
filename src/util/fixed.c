#include "util/fixed.h"
#include <math.h>
#include <stdbool.h>

static const int64_t low_half = 0xffffffff;

void g3_fixed_add(g3_fixed *a, int64_t x, int bit) {
  const int i = bit / 32;
  const __int128 shifted = (__int128)x * ((int64_t)1 << bit % 32);
  a->limb[i] += (int64_t)(shifted & low_half);
  a->limb[i + 1] += (int64_t)(shifted >> 32 & low_half);
  a->limb[i + 2] += (int64_t)(shifted >> 64);
}

void g3_fixed_carry(g3_fixed *a) {
  for (int i = 0; i + 1 < G3_FIXED_LIMBS; i++) {
    a->limb[i + 1] += a->limb[i] >> 32; /* rounds down, also below 0 */
    a->limb[i] &= low_half;
  }
}

/* Of a positive sum after the carry: its 64 leading bits, the last one set when anything follows,
 * and what the lowest of them counts. */
static uint64_t leading_bits(const g3_fixed *a, int top, int *bit) {
  const int width = 64 - __builtin_clzll((uint64_t)a->limb[top]);
  const int low = 32 * top + width - 64; /* may be below 0 */
  uint64_t bits = 0;
  bool rest = false;
  for (int i = top; i >= 0; i--) {
    const int at = 32 * i - low;
    const uint64_t limb = (uint64_t)a->limb[i];
    if (at >= 0)
      bits |= limb << at;
    else if (at > -64) {
      bits |= limb >> -at;
      rest = rest || (limb & (((uint64_t)1 << -at) - 1)) != 0;
    } else
      rest = rest || limb != 0;
  }
  *bit = low;
  return bits | (rest ? 1u : 0u);
}

double g3_fixed_value(const g3_fixed *a) {
  g3_fixed x = *a;
  g3_fixed_carry(&x);
  const bool negative = x.limb[G3_FIXED_LIMBS - 1] < 0;
  if (negative) {
    for (int i = 0; i < G3_FIXED_LIMBS; i++)
      x.limb[i] = -x.limb[i];
    g3_fixed_carry(&x);
  }
  int top = G3_FIXED_LIMBS - 1, bit;
  while (top > 0 && x.limb[top] == 0)
    top--;
  if (x.limb[top] == 0) return 0.0;
  const uint64_t bits = leading_bits(&x, top, &bit);
  const double value = ldexp((double)bits, bit - G3_FIXED_UNIT);
  return negative ? -value : value;
}

void g3_fixed_load(g3_fixed *a, const double *memory) {
  for (int i = 0; i < G3_FIXED_LIMBS; i++)
    a->limb[i] = (int64_t)memory[i];
}

void g3_fixed_store(const g3_fixed *a, double *memory) {
  for (int i = 0; i < G3_FIXED_LIMBS; i++)
    memory[i] = (double)a->limb[i];
}
