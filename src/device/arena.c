#include "device/arena.h"

/* Measuring arenas hand out addresses from here: never NULL, never touched. */
static const uintptr_t measuring_base = 1 << 20;

static const char *const names[G3_MEM_CLASSES] = {
    [G3_MEM_PARAMS] = "params",       [G3_MEM_GRADS] = "grads",
    [G3_MEM_OPTIM] = "optimizer",     [G3_MEM_ACTS] = "activations",
    [G3_MEM_BOUNDARY] = "boundaries", [G3_MEM_WORKSPACE] = "workspace",
    [G3_MEM_COMM] = "comm",           [G3_MEM_STAGING] = "staging",
};

const char *g3_mem_class_name(g3_mem_class c) {
  return names[c];
}

g3_arenas g3_arenas_measuring(void) {
  g3_arenas a;
  for (int c = 0; c < G3_MEM_CLASSES; c++)
    a.of[c] = (g3_arena){NULL, 0, SIZE_MAX};
  return a;
}

void *g3_arena_take(g3_arenas *a, g3_mem_class c, size_t bytes) {
  g3_arena *arena = &a->of[c];
  const size_t rounded = (bytes + G3_ARENA_ALIGN - 1) / G3_ARENA_ALIGN * G3_ARENA_ALIGN;
  G3_CHECK(rounded >= bytes && rounded <= arena->size - arena->used,
           "the %s arena of %zu bytes has no room for %zu more: the plan was wrong", names[c],
           arena->size, bytes);
  const uintptr_t base = arena->base ? (uintptr_t)arena->base : measuring_base;
  void *p = (void *)(base + arena->used);
  arena->used += rounded;
  return p;
}

g3_tensor g3_arena_tensor(g3_arenas *a, g3_mem_class c, g3_dtype t, int64_t d0, int64_t d1) {
  int64_t count, bytes;
  const bool ok = !__builtin_mul_overflow(d0, d1, &count) &&
                  !__builtin_mul_overflow(count, (int64_t)g3_dtype_bytes(t), &bytes);
  G3_CHECK(ok && count >= 0, "a tensor of %lld x %lld elements is impossible", (long long)d0,
           (long long)d1);
  return g3_tensor_2d(g3_arena_take(a, c, (size_t)bytes), t, d0, d1);
}
