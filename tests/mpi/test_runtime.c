/* ranks: 4 */
/* The pipeline over MPI with stages that really compute: affine maps of small whole numbers, which
 * float32 holds exactly, so every value and every gradient is compared for equality. Stage s makes
 * y = 2 x + s + 1; the loss adds (micro + 1) y; a weight's gradient is the sum of dout * in. */
#include "comm/comm.h"
#include "pipeline/runtime.h"
#include "util/array.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { RANKS = 4, MAX_CHUNKS = 2, MAX_MICROS = 8, STEPS = 3 };

typedef struct {
  int micro; /* -1: free */
  g3_tensor in; /* the border's buffer, read again in backward */
} saved;

typedef struct {
  g3_stage stage;
  bool first, last, keep;
  int slots, micros, step, forwards, backwards, dones, reduces;
  int64_t count; /* elements of a border */
  double grad;
  saved slot[MAX_CHUNKS * MAX_MICROS];
} affine;

static float x0(int step, int micro, int64_t i) {
  return (float)((int)(i % 5) + 7 * micro + step);
}

/* What goes into stage `index`. */
static float input_of(int index, int step, int micro, int64_t i) {
  float x = x0(step, micro, i);
  for (int s = 0; s < index; s++)
    x = 2 * x + (float)(s + 1);
  return x;
}

/* Ranks drift apart, so that nothing works by good timing alone. */
static void dawdle(const affine *a, int micro) {
  const long ns = (a->stage.index * 7 + micro * 13 + a->step * 5) % 11 * 30000L;
  nanosleep(&(struct timespec){0, ns}, NULL);
}

static g3_status affine_forward(g3_stage *stage, g3_stream *s, int micro, int slot, g3_tensor in,
                                g3_tensor out, bool keep) {
  affine *a = stage->impl;
  G3_TRY(g3_stream_drain(s));
  dawdle(a, micro);
  G3_CHECK(a->first == !in.data && a->last == !out.data, "stage %d: wrong ends", stage->index);
  G3_CHECK(keep == a->keep, "stage %d: keep = %d", stage->index, keep);
  G3_CHECK(slot >= 0 && slot < a->slots && a->slot[slot].micro < 0, "slot %d is taken", slot);
  const float *x = in.data;
  float *y = out.data;
  for (int64_t i = 0; i < a->count; i++) {
    const float xi = x ? x[i] : x0(a->step, micro, i);
    const float want = input_of(stage->index, a->step, micro, i);
    G3_CHECK(xi == want, "%dF%d: element %lld is %g, not %g", stage->index, micro, (long long)i,
             (double)xi, (double)want);
    if (y) y[i] = 2 * xi + (float)(stage->index + 1);
  }
  if (keep) a->slot[slot] = (saved){micro, in};
  a->forwards++;
  return G3_OK;
}

static g3_status affine_backward(g3_stage *stage, g3_stream *s, int micro, int slot, g3_tensor dout,
                                 g3_tensor din, g3_bwd_part part, g3_bucket_done done, void *ctx) {
  affine *a = stage->impl;
  G3_TRY(g3_stream_drain(s));
  dawdle(a, micro);
  G3_CHECK(part == G3_BWD_BOTH, "stage %d: part %d", stage->index, (int)part);
  G3_CHECK(a->last == !dout.data && a->first == !din.data, "stage %d: wrong ends", stage->index);
  G3_CHECK(a->slot[slot].micro == micro, "slot %d holds %d", slot, a->slot[slot].micro);
  const float *x = a->slot[slot].in.data, *dy = dout.data;
  float *dx = din.data;
  for (int64_t i = 0; i < a->count; i++) {
    const float g = dy ? dy[i] : (float)(micro + 1);
    a->grad += (double)g * (double)(x ? x[i] : x0(a->step, micro, i));
    if (dx) dx[i] = 2 * g;
  }
  a->slot[slot].micro = -1;
  a->backwards++;
  G3_CHECK((done != NULL) == (a->backwards == a->micros), "%dB%d: done at the wrong time",
           stage->index, micro);
  return done ? done(ctx, stage->index, s) : G3_OK;
}

static const g3_stage_ops affine_ops = {affine_forward, affine_backward};

typedef struct {
  affine stage[MAX_CHUNKS];
  int chunks;
} rank_stages;

static affine *stage_named(rank_stages *all, int index) {
  for (int c = 0; c < all->chunks; c++)
    if (all->stage[c].stage.index == index) return &all->stage[c];
  g3_die(__FILE__, __LINE__, "a callback names stage %d", index);
}

static g3_status bucket_done(void *ctx, int bucket, g3_stream *s) {
  (void)s;
  stage_named(ctx, bucket)->dones++;
  return G3_OK;
}

static g3_status reduce(void *ctx, int stage, g3_stream *s) {
  (void)s;
  affine *a = stage_named(ctx, stage);
  G3_CHECK(a->backwards == a->micros, "%dREDUCE after %d backwards", stage, a->backwards);
  a->reduces++;
  return G3_OK;
}

static double want_grad(const affine *a, int stages) {
  double sum = 0;
  for (int m = 0; m < a->micros; m++) {
    const double g = (double)(m + 1) * (double)(1 << (stages - 1 - a->stage.index));
    for (int64_t i = 0; i < a->count; i++)
      sum += g * (double)input_of(a->stage.index, a->step, m, i);
  }
  return sum;
}

static void reset(rank_stages *all, int step) {
  for (int c = 0; c < all->chunks; c++) {
    affine *a = &all->stage[c];
    a->step = step;
    a->forwards = a->backwards = a->dones = a->reduces = 0;
    a->grad = 0;
  }
}

static void check_step(const rank_stages *all, int stages, bool train) {
  for (int c = 0; c < all->chunks; c++) {
    const affine *a = &all->stage[c];
    const int once = train ? 1 : 0;
    G3_CHECK(a->forwards == a->micros && a->backwards == once * a->micros, "%d F, %d B",
             a->forwards, a->backwards);
    G3_CHECK(a->dones == once && a->reduces == once, "%d done, %d REDUCE", a->dones, a->reduces);
    const double want = train ? want_grad(a, stages) : 0;
    G3_CHECK(a->grad == want, "stage %d: gradient %.17g, not %.17g", a->stage.index, a->grad, want);
  }
}

static void run_case(const char *kind, int chunks, int micros, int64_t rows, int64_t width,
                     g3_comm *world, g3_stream *stream) {
  const g3_sched_shape shape = {RANKS, chunks, micros};
  const bool train = kind[0] != 'f';
  g3_schedule *s = NULL;
  g3_runtime *r = NULL;
  G3_CHECK(g3_sched_make(kind, &shape, &s) == G3_OK, "%s", g3_last_error());
  g3_arenas arenas = g3_arenas_measuring();
  const g3_runtime_spec spec = {s, world->rank, rows, width, G3_F32};
  G3_CHECK(g3_runtime_create(&spec, &arenas, &r) == G3_OK, "%s", g3_last_error());
  g3_runtime_destroy(r);
  const size_t bytes = arenas.of[G3_MEM_BOUNDARY].used;
  void *memory = NULL;
  G3_CHECK(stream->dev->ops->alloc(stream->dev, bytes, &memory) == G3_OK, "%s", g3_last_error());
  arenas.of[G3_MEM_BOUNDARY] = (g3_arena){memory, 0, bytes};
  G3_CHECK(g3_runtime_create(&spec, &arenas, &r) == G3_OK, "%s", g3_last_error());

  rank_stages all = {.chunks = chunks};
  g3_stage *stages[MAX_CHUNKS];
  for (int c = 0; c < chunks; c++) {
    affine *a = &all.stage[c];
    const int index = c * RANKS + world->rank;
    *a = (affine){.stage = {&affine_ops, index, a},
                  .first = index == 0,
                  .last = index == s->stages - 1,
                  .keep = train,
                  .slots = g3_runtime_slots(r),
                  .micros = micros,
                  .count = rows * width};
    for (int i = 0; i < MAX_CHUNKS * MAX_MICROS; i++)
      a->slot[i].micro = -1;
    stages[c] = &a->stage;
  }
  g3_runtime_attach(r, stages, chunks, world, stream);
  for (int step = 0; step < STEPS; step++) {
    reset(&all, step);
    const g3_status st =
        train ? g3_runtime_run(r, bucket_done, reduce, &all) : g3_runtime_run(r, NULL, NULL, NULL);
    G3_CHECK(st == G3_OK, "%s", g3_last_error());
    check_step(&all, s->stages, train);
  }
  G3_CHECK(stream->dev->ops->sync(stream) == G3_OK, "%s", g3_last_error());
  g3_runtime_destroy(r);
  g3_sched_free(s);
  stream->dev->ops->release(stream->dev, memory);
}

int main(void) {
  static const struct {
    const char *kind;
    int chunks;
  } kinds[] = {{"gpipe", 1}, {"1f1b", 1}, {"forward", 1}, {"gpipe", 2}, {"forward", 2}};
  static const int micros[] = {1, 3, MAX_MICROS};
  static const int64_t sizes[][2] = {{3, 5}, {64, 128}}; /* sent at once; sent when received */
  g3_comm *world = NULL;
  g3_device *dev = NULL;
  g3_stream *stream = NULL;
  G3_CHECK(g3_comm_mpi_world(&world) == G3_OK, "%s", g3_last_error());
  G3_CHECK(world->size == RANKS, "run with %d ranks", RANKS);
  G3_CHECK(g3_device_open("cpu", 1, &dev) == G3_OK, "%s", g3_last_error());
  G3_CHECK(dev->ops->stream_create(dev, false, g3_tensor_none(), &stream) == G3_OK, "%s",
           g3_last_error());
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
    for (size_t m = 0; m < sizeof micros / sizeof *micros; m++)
      for (size_t z = 0; z < sizeof sizes / sizeof *sizes; z++)
        run_case(kinds[k].kind, kinds[k].chunks, micros[m], sizes[z][0], sizes[z][1], world,
                 stream);
  if (world->rank == 0) puts("all values and gradients as expected");
  dev->ops->stream_destroy(stream);
  g3_device_close(dev);
  g3_comm_destroy(world);
  return 0;
}
