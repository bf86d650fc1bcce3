/* ranks: 16 */
/* A checkpoint belongs to no layout: what 2 x 2 x 4 ranks trained and saved is loaded and saved by
 * other grids of ranks, f32 and bf16, with and without ZeRO, and comes back bit by bit, weights and
 * moments. The vocabulary divides by no number of ranks. */
#include "ckpt/ckpt.h"
#include "mpi/ranks.h"
#include "train/state.h"
#include "train/step.h"

enum { MOST_ARGS = 64, TENSORS = 2 + 12 * 5 + 2 };

typedef struct {
  const char *tp, *pp, *dp;
  const char *zero;
  bool sequence;
} layout;

/* What all runs of a test share. */
typedef struct {
  g3_comm *world;
  char dir[64];
  const char *dtype, *tied;
} place;

static void make_text(const char *dir) {
  char path[128];
  snprintf(path, sizeof path, "%s/text", dir);
  FILE *f = fopen(path, "w");
  EXPECT(f != NULL);
  for (int i = 0; i < 4000; i++)
    fputc(32 + (i * i + 7 * (i / 11)) % 90, f);
  EXPECT(fclose(f) == 0);
}

static place open_place(g3_comm *world, const char *dtype, const char *tied) {
  place p = {.world = world, .dtype = dtype, .tied = tied};
  snprintf(p.dir, sizeof p.dir, "reshard-XXXXXX");
  if (world->rank == 0) {
    EXPECT(mkdtemp(p.dir) != NULL);
    make_text(p.dir);
  }
  EXPECT_OK(world->ops->host_broadcast(world, p.dir, sizeof p.dir, 0));
  return p;
}

static void close_place(const place *p) {
  char command[128];
  EXPECT_OK(p->world->ops->barrier(p->world));
  snprintf(command, sizeof command, "rm -rf '%s'", p->dir);
  if (p->world->rank == 0) EXPECT_EQUAL(system(command), 0);
}

/* The settings of a run into DIR/name, going on from `from` ("none": from new weights). */
static g3_settings *settings_of(const place *p, const layout *l, const char *from,
                                const char *name) {
  char data[128], out[128], resume[128];
  snprintf(data, sizeof data, "%s/text", p->dir);
  snprintf(out, sizeof out, "%s/%s", p->dir, name);
  if (strcmp(from, "none") == 0)
    snprintf(resume, sizeof resume, "none");
  else
    snprintf(resume, sizeof resume, "%s/%s", p->dir, from);
  char *args[MOST_ARGS] = {"--layers",       "5",
                           "--width",        "32",
                           "--heads",        "4",
                           "--seq",          "16",
                           "--vocab",        "257",
                           "--micro-batch",  "1",
                           "--global-batch", "16",
                           "--steps",        "10",
                           "--warmup",       "2",
                           "--lr",           "2e-3",
                           "--val-split",    "0",
                           "--threads",      "1",
                           "--dropout",      "0.1",
                           "--seed",         "5",
                           "--data",         data,
                           "--out",          out,
                           "--resume",       resume,
                           "--dtype",        (char *)p->dtype,
                           "--tied",         (char *)p->tied,
                           "--tp",           (char *)l->tp,
                           "--pp",           (char *)l->pp,
                           "--dp",           (char *)l->dp,
                           "--zero",         (char *)l->zero};
  int n = 0;
  while (args[n])
    n++;
  if (l->sequence) args[n++] = "--sequence-parallel";
  g3_settings *s;
  EXPECT_OK(g3_settings_load(n, args, &s));
  return s;
}

/* Loads, takes so many steps, and saves. Only as many ranks as the layout needs take part. */
static void go_on(const place *p, const layout *l, const char *from, int steps, const char *name) {
  g3_settings *s = settings_of(p, l, from, name);
  const int64_t ranks = s->value.parallel.tp * s->value.parallel.pp * s->value.parallel.dp;
  g3_comm *some;
  const int rank = p->world->rank;
  EXPECT_OK(p->world->ops->split(p->world, rank < ranks ? 0 : -1, rank, "some", &some));
  if (some) {
    g3_start start;
    g3_job job;
    g3_step_result result;
    EXPECT_OK(g3_start_find(s, some, &start));
    EXPECT_OK(g3_config_world(s, some->size));
    EXPECT_OK(g3_config_check(s));
    EXPECT_OK(g3_job_open(s, some, &job));
    EXPECT_OK(g3_start_load(&job, &start));
    for (int i = 0; i < steps; i++) {
      EXPECT_OK(g3_step(&job, &result));
      EXPECT(!result.skipped && result.grad_norm > 0.0);
    }
    if (some->rank == 0) EXPECT_OK(g3_rundir_make(s->value.run.out));
    EXPECT_OK(some->ops->barrier(some));
    EXPECT_OK(g3_state_save(&job));
    g3_job_close(&job);
    g3_start_free(&start);
    g3_comm_destroy(some);
  }
  g3_settings_free(s);
  EXPECT_OK(p->world->ops->barrier(p->world));
}

static g3_ckpt_index *newest(const place *p, const char *name) {
  char dir[128], path[1024];
  g3_ckpt_index *ix;
  snprintf(dir, sizeof dir, "%s/%s", p->dir, name);
  EXPECT_OK(g3_ckpt_latest(dir, path, sizeof path));
  EXPECT_OK(g3_ckpt_index_read(path, &ix));
  return ix;
}

/* Tensors in which the newest checkpoints of two runs differ; they hold the same ones, and all. */
static int64_t differing(const place *p, const char *a, const char *b) {
  int64_t n = 0;
  if (p->world->rank == 0) {
    g3_ckpt_index *x = newest(p, a), *y = newest(p, b);
    const int kinds = strcmp(p->dtype, "bf16") == 0 ? 4 : 3;
    const int tensors = TENSORS + (strcmp(p->tied, "true") == 0 ? 0 : 1);
    EXPECT_EQUAL(x->nentries, kinds * tensors);
    EXPECT_EQUAL(y->nentries, x->nentries);
    const size_t bytes = g3_ckpt_index_stage_bytes(x) + g3_ckpt_index_stage_bytes(y);
    const g3_tensor stage = g3_tensor_1d(malloc(bytes), G3_U8, (int64_t)bytes);
    FILE *quiet = fopen("/dev/null", "w");
    EXPECT(stage.data != NULL && quiet != NULL);
    EXPECT_OK(g3_ckpt_diff(x, y, stage, quiet, &n));
    fclose(quiet);
    free(stage.data);
    if (n == 0) {
      EXPECT_EQUAL(x->meta.step, y->meta.step);
      EXPECT_EQUAL(x->meta.consumed_samples, y->meta.consumed_samples);
      EXPECT_EQUAL(x->meta.applied_steps, y->meta.applied_steps);
    }
    g3_ckpt_index_free(x);
    g3_ckpt_index_free(y);
  }
  EXPECT_OK(p->world->ops->host_broadcast(p->world, &n, sizeof n, 0));
  return n;
}

/* name := from, in another layout; must equal `origin`. */
static void hand_over(const place *p, const layout *l, const char *from, const char *name,
                      const char *origin) {
  go_on(p, l, from, 0, name);
  const int64_t n = differing(p, origin, name);
  G3_CHECK(n == 0, "%s, tied %s: %s on tp %s pp %s dp %s zero %s differs in %lld tensors", p->dtype,
           p->tied, name, l->tp, l->pp, l->dp, l->zero, (long long)n);
}

static const layout grid_224 = {"2", "2", "4", "1", true};
static const layout grid_111 = {"1", "1", "1", "1", false};
static const layout grid_142 = {"1", "4", "2", "1", false};

static void around(g3_comm *world, const char *dtype, const char *tied) {
  static const layout plain = {"2", "1", "4", "0", false}, wide = {"4", "2", "1", "0", true};
  place p = open_place(world, dtype, tied);
  go_on(&p, &grid_224, "none", 3, "a");
  hand_over(&p, &grid_111, "a", "b", "a");
  hand_over(&p, &grid_142, "b", "c", "a");
  hand_over(&p, &grid_224, "c", "d", "a");
  hand_over(&p, &plain, "d", "e", "a"); /* zero 1 -> 0 */
  hand_over(&p, &wide, "e", "f", "a");
  hand_over(&p, &grid_224, "f", "g", "a"); /* zero 0 -> 1 */
  /* What went around goes on as what stayed. */
  go_on(&p, &grid_224, "a", 1, "a-on");
  go_on(&p, &grid_224, "g", 1, "g-on");
  EXPECT_EQUAL(differing(&p, "a-on", "g-on"), 0);
  EXPECT(differing(&p, "a", "a-on") > TENSORS); /* the comparison can tell */
  close_place(&p);
}

static void test_f32(g3_comm *world, g3_device *dev) {
  (void)dev;
  around(world, "f32", "true");
}

static void test_bf16(g3_comm *world, g3_device *dev) {
  (void)dev;
  around(world, "bf16", "false");
}

/* Trained without ZeRO, and on a grid whose ranks hold no whole number of anything. */
static void test_trained_without_zero(g3_comm *world, g3_device *dev) {
  static const layout plain = {"4", "2", "2", "0", false}, back = {"1", "2", "8", "1", false};
  (void)dev;
  place p = open_place(world, "bf16", "true");
  go_on(&p, &plain, "none", 2, "a");
  hand_over(&p, &back, "a", "b", "a");
  hand_over(&p, &plain, "b", "c", "a");
  go_on(&p, &plain, "a", 1, "a-on");
  go_on(&p, &plain, "c", 1, "c-on");
  EXPECT_EQUAL(differing(&p, "a-on", "c-on"), 0);
  close_place(&p);
}

static void test_initial_weights(g3_comm *world, g3_device *dev) {
  static const layout others[] = {{"4", "1", "1", "1", false},
                                  {"1", "5", "1", "1", false},
                                  {"2", "2", "4", "0", true},
                                  {"1", "1", "16", "1", false},
                                  {"2", "4", "2", "1", false}};
  (void)dev;
  for (int tied = 0; tied < 2; tied++) {
    place p = open_place(world, tied ? "f32" : "bf16", tied ? "true" : "false");
    go_on(&p, &grid_111, "none", 0, "one");
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
      char name[16];
      snprintf(name, sizeof name, "other%zu", i);
      hand_over(&p, &others[i], "none", name, "one");
    }
    close_place(&p);
  }
}

int main(void) {
  static const ranks_test tests[] = {{"trained without ZeRO", test_trained_without_zero},
                                     {"around the grids and back, f32", test_f32},
                                     {"around the grids and back, bf16", test_bf16},
                                     {"the same initial weights everywhere", test_initial_weights}};
#ifdef __SANITIZE_ADDRESS__
  return ranks_main(16, tests, 1); /* the same code every time, and slow to be watched */
#else
  return ranks_main(16, tests, sizeof tests / sizeof tests[0]);
#endif
}
