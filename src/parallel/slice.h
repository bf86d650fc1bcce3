/* Where a piece lies in a whole tensor. Resharding, counting and initialisation are arithmetic on
 * slices. */
#ifndef G3_PARALLEL_SLICE_H
#define G3_PARALLEL_SLICE_H
#include "tensor/tensor.h"
#include "util/status.h"

/* A box of a tensor, in elements: [start, start + count) of `global` in each dimension. */
typedef struct {
  int ndim;
  int64_t global[G3_MAX_DIMS];
  int64_t start[G3_MAX_DIMS];
  int64_t count[G3_MAX_DIMS];
} g3_slice;

enum { G3_SLICES_OF_RANGE = 2 * G3_MAX_DIMS - 1 };

/* The whole of a tensor. */
g3_slice g3_slice_whole(int ndim, const int64_t *global);

/* Elements in the slice. */
int64_t g3_slice_count(const g3_slice *s);

/* True when start and count are inside global and nothing overflows. For slices read from files. */
bool g3_slice_valid(const g3_slice *s);

/* The common part of two slices of one tensor; false when it is empty. */
bool g3_slice_meet(const g3_slice *a, const g3_slice *b, g3_slice *out);

/* A slice with dimension d cut into ranges of `part` (the last ones may be shorter or empty),
 * number `index`. */
g3_slice g3_slice_cut(const g3_slice *s, int d, int64_t part, int64_t index);

/* The elements [start, start + count) of the slice in its own row-major order, as at most 2 * ndim
 * - 1 slices of the whole, in that order; returns how many. Pure. */
int g3_slice_range(const g3_slice *s, int64_t start, int64_t count,
                   g3_slice out[G3_SLICES_OF_RANGE]);

/* Copies the common part of `from` (a dense buffer holding slice `from`) into `to` (a dense buffer
 * holding slice `to`), element size `bytes`. Returns the elements copied. Local. */
int64_t g3_slice_copy(const g3_slice *to, void *to_data, const g3_slice *from,
                      const void *from_data, size_t bytes);

#endif
