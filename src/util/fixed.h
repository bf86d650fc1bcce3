/* Sums that no order and no grouping changes: every f32, and the square of every f32, is a whole
 * number of units of 2^-298, and whole numbers are added without rounding. A sum is held in limbs
 * of 32 bits (after Kulisch, "Computer Arithmetic and Validity", 2008, chapter 8), which as float64
 * are also added exactly by any collective. */
#ifndef G3_UTIL_FIXED_H
#define G3_UTIL_FIXED_H
#include <stdint.h>

enum {
  G3_FIXED_UNIT = 298, /* a unit is 2^-298: the square of the smallest f32 */
  G3_FIXED_LIMBS = 19, /* 608 bits: 2^32 squares of the largest f32, and a sign */
  G3_FIXED_SIZE = G3_FIXED_LIMBS + 1 /* float64 of a sum in memory: limbs, then the sum of what is
                                        not finite */
};

/* limb[i] counts 2^(32 i) units. Limbs may hold more than 32 bits until g3_fixed_carry. */
typedef struct {
  int64_t limb[G3_FIXED_LIMBS];
} g3_fixed;

/* Adds x * 2^bit units, 0 <= bit < 512. So many as 2^20 additions may go between two carries. */
void g3_fixed_add(g3_fixed *a, int64_t x, int bit);

/* Brings all limbs but the last into [0, 2^32): the one form that each sum has. */
void g3_fixed_carry(g3_fixed *a);

/* The sum, rounded once to nearest, ties to even. Any form of limbs. */
double g3_fixed_value(const g3_fixed *a);

/* To and from the limbs of a sum in memory, [G3_FIXED_SIZE]; the last entry is left alone. */
void g3_fixed_load(g3_fixed *a, const double *memory);
void g3_fixed_store(const g3_fixed *a, double *memory);

#endif
