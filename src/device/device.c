#include "device/backend.h"
#include "util/array.h"
#include <stdlib.h>
#include <string.h>

static const g3_backend *const backends[] = {&g3_cpu_backend, &g3_cuda_backend};
enum { BACKENDS = sizeof backends / sizeof backends[0] };

/* Every member of the table but its name, so that a hole is found at open and not in a step. */
#define OP(member)                                                                                 \
  { #member, offsetof(g3_device_ops, member) }
static const struct {
  const char *name;
  size_t offset;
} op_list[] = {
    OP(alloc),
    OP(release),
    OP(copy),
    OP(fill),
    OP(cast),
    OP(stream_create),
    OP(stream_destroy),
    OP(sync),
    OP(event_create),
    OP(event_destroy),
    OP(record),
    OP(wait),
    OP(workspace),
    OP(gemm),
    OP(column_sum),
    OP(layernorm),
    OP(layernorm_bwd),
    OP(gelu),
    OP(gelu_bwd),
    OP(attention),
    OP(attention_bwd),
    OP(embedding),
    OP(embedding_bwd),
    OP(position),
    OP(position_bwd),
    OP(bias_dropout_add),
    OP(dropout_bwd),
    OP(xent_peak),
    OP(xent_sums),
    OP(xent_loss),
    OP(sum),
    OP(sum_squares),
    OP(add),
    OP(tree_sum),
    OP(exact_sum),
    OP(exact_value),
    OP(control),
    OP(adamw),
};
#undef OP
enum { OPS = sizeof op_list / sizeof op_list[0] };
typedef void (*any_op)(void);
_Static_assert(sizeof(g3_device_ops) == sizeof(char *) + OPS * sizeof(any_op),
               "op_list lacks a member of g3_device_ops");

static const char *first_hole(const g3_device_ops *ops) {
  for (int i = 0; i < OPS; i++) {
    any_op op;
    memcpy(&op, (const char *)ops + op_list[i].offset, sizeof op);
    if (!op) return op_list[i].name;
  }
  return NULL;
}

static const g3_backend *backend_named(const char *name) {
  for (int i = 0; i < BACKENDS; i++)
    if (strcmp(backends[i]->ops->name, name) == 0) return backends[i];
  return NULL;
}

const g3_device_ops *g3_device_ops_named(const char *name) {
  const g3_backend *b = backend_named(name);
  return b && !first_hole(b->ops) ? b->ops : NULL;
}

g3_status g3_device_open(const char *where, int threads, g3_device **out) {
  const g3_backend *b = backend_named(where);
  if (!b) return G3_FAIL(G3_EINVAL, "device '%s' is unknown; use cpu or cuda", where);
  if (threads < 1)
    return G3_FAIL(G3_EINVAL, "device '%s' wants at least 1 thread, found %d", where, threads);
  g3_device *dev;
  G3_TRY(G3_NEW_ARRAY(1, &dev));
  dev->ops = b->ops;
  dev->threads = threads;
  g3_status st;
  G3_TRY_TO(fail, st, b->open(dev));
  const char *hole = first_hole(b->ops);
  if (hole) {
    b->close(dev);
    st = G3_FAIL(G3_EUNSUPPORTED, "the %s backend has no op '%s'", where, hole);
    goto fail;
  }
  *out = dev;
  return G3_OK;
fail:
  free(dev);
  return st;
}

void g3_device_close(g3_device *dev) {
  if (!dev) return;
  backend_named(dev->ops->name)->close(dev);
  free(dev);
}
