/* Memory by class. Every buffer of ours over 64 KiB is taken from one of these arenas, so that the
 * plan made without a machine and the memory that a run holds are one and the same arithmetic: the
 * code that lays out a rank runs once on measuring arenas, and again, unchanged, on real ones. */
#ifndef G3_DEVICE_ARENA_H
#define G3_DEVICE_ARENA_H
#include "tensor/tensor.h"
#include "util/status.h"

typedef enum {
  G3_MEM_PARAMS,
  G3_MEM_GRADS,
  G3_MEM_OPTIM, /* master weights and moments */
  G3_MEM_ACTS, /* what forward keeps for backward */
  G3_MEM_BOUNDARY, /* what crosses between stages */
  G3_MEM_WORKSPACE, /* temporaries of the model and the backend */
  G3_MEM_COMM, /* scratch of collectives */
  G3_MEM_STAGING, /* checkpoint pieces and data batches on the host */
  G3_MEM_CLASSES
} g3_mem_class;

enum { G3_ARENA_ALIGN = 256 };

typedef struct {
  char *base; /* NULL: measuring */
  size_t used; /* bytes taken so far */
  size_t size; /* bytes behind base; SIZE_MAX when measuring */
} g3_arena;

/* All arenas of a rank; zero-initialise by g3_arenas_measuring. */
typedef struct {
  g3_arena of[G3_MEM_CLASSES];
} g3_arenas;

/* Arenas that only count. Tensors taken from them have addresses that must not be touched. */
g3_arenas g3_arenas_measuring(void);

/* The next `bytes` of a class, starting on G3_ARENA_ALIGN. Ends the job when a real arena is too
 * small (the plan was wrong) or when the size overflows. */
void *g3_arena_take(g3_arenas *a, g3_mem_class c, size_t bytes);

/* A dense tensor taken from a class. */
g3_tensor g3_arena_tensor(g3_arenas *a, g3_mem_class c, g3_dtype t, int64_t d0, int64_t d1);

const char *g3_mem_class_name(g3_mem_class c); /* "params", "grads", ... */

#endif
