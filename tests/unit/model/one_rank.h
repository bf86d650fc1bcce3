/* A model on one rank, laid out on real memory: for tests of the model by itself. */
#ifndef G3_TESTS_ONE_RANK_H
#define G3_TESTS_ONE_RANK_H
#include "plan/rank.h"
#include "unit/util/cm.h"
#include <string.h>

typedef struct {
  g3_settings *settings;
  g3_arenas arenas;
  void *memory[G3_MEM_CLASSES];
  g3_device *dev;
  g3_stream *s;
  g3_comm *self;
  g3_rank *r;
} one_rank;

static void ok(g3_status st) {
  if (st != G3_OK) fail_msg("%s [%s]", g3_last_error(), g3_last_trace());
}

static void open_rank(one_rank *o, char *const *args, int nargs) {
  const g3_grid grid = {{1, 1, 1, 1}};
  const g3_coord at = {{0}};
  size_t bytes[G3_MEM_CLASSES];
  memset(o, 0, sizeof *o);
  ok(g3_settings_load(nargs, args, &o->settings));
  ok(g3_config_world(o->settings, 1));
  ok(g3_config_check(o->settings));
  ok(g3_device_open("cpu", 1, &o->dev));
  ok(g3_comm_self(&o->self));
  ok(g3_rank_measure(&o->settings->value, &grid, at, bytes));
  for (int c = 0; c < G3_MEM_CLASSES; c++) {
    ok(o->dev->ops->alloc(o->dev, bytes[c] + 1, &o->memory[c]));
    o->arenas.of[c] = (g3_arena){o->memory[c], 0, bytes[c]};
  }
  ok(g3_rank_build(&o->settings->value, &grid, at, &o->arenas, &o->r));
  ok(o->dev->ops->stream_create(o->dev, false, o->r->workspace, &o->s));
  g3_stage *stage = g3_gpt_stage(o->r->gpt);
  g3_gpt_attach(o->r->gpt, o->dev, o->self, g3_tensor_part(g3_optim_sums(o->r->optim), 0, 0, 1));
  g3_runtime_attach(o->r->train, &stage, 1, o->self, o->s);
  g3_runtime_attach(o->r->eval, &stage, 1, o->self, o->s);
}

static void close_rank(one_rank *o) {
  g3_rank_destroy(o->r);
  o->dev->ops->stream_destroy(o->s);
  for (int c = 0; c < G3_MEM_CLASSES; c++)
    o->dev->ops->release(o->dev, o->memory[c]);
  g3_comm_destroy(o->self);
  g3_device_close(o->dev);
  g3_settings_free(o->settings);
}

#endif
