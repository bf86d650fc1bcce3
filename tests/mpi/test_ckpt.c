/* ranks: 4 */
/* Checkpoints of four ranks: uneven slices, a rank with nothing, and saves that fail on one rank
 * alone, which must fail on all with the same words. */
#include "ckpt/ckpt.h"
#include "mpi/ranks.h"
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROWS = 24, COLS = 10, LONG = 1000 };

typedef struct {
  g3_comm *world;
  g3_device *dev;
  g3_stream *stream;
  char dir[256];
  g3_tensor stage;
} place;

static place open_place(g3_comm *world, g3_device *dev) {
  place p = {.world = world, .dev = dev};
  EXPECT_OK(dev->ops->stream_create(dev, true, g3_tensor_none(), &p.stream));
  p.stage = g3_tensor_1d(malloc(1 << 16), G3_U8, 1 << 16);
  snprintf(p.dir, sizeof p.dir, "ckpt-mpi-XXXXXX");
  if (world->rank == 0) EXPECT(mkdtemp(p.dir) != NULL);
  EXPECT_OK(world->ops->host_broadcast(world, p.dir, sizeof p.dir, 0));
  return p;
}

static void close_place(place *p) {
  EXPECT_OK(p->world->ops->barrier(p->world));
  char command[300];
  snprintf(command, sizeof command, "rm -rf '%s'", p->dir);
  if (p->world->rank == 0) EXPECT_EQUAL(system(command), 0);
  free(p->stage.data);
  p->dev->ops->stream_destroy(p->stream);
}

/* What element `at` of a whole tensor is. */
static float number(int64_t at) {
  return (float)(at * 7 % 1013);
}

static int64_t place_of(const g3_slice *s, int64_t i) {
  int64_t at = 0, unit = 1;
  for (int d = s->ndim - 1; d >= 0; d--) {
    at += (s->start[d] + i % s->count[d]) * unit;
    i /= s->count[d];
    unit *= s->global[d];
  }
  return at;
}

static g3_ckpt_item item_of(const char *name, g3_slice slice, bool filled) {
  g3_ckpt_item it = {.slice = slice};
  snprintf(it.name, sizeof it.name, "%s", name);
  const int64_t n = g3_slice_count(&slice);
  float *x = calloc((size_t)n + 1, sizeof *x);
  EXPECT(x != NULL);
  for (int64_t i = 0; filled && i < n; i++)
    x[i] = number(place_of(&slice, i));
  it.local = g3_tensor_1d(x, G3_F32, n);
  return it;
}

static void expect_numbers(const g3_ckpt_item *it) {
  const float *x = it->local.data;
  for (int64_t i = 0; i < g3_slice_count(&it->slice); i++)
    G3_CHECK(x[i] == number(place_of(&it->slice, i)), "%s: element %lld is %g", it->name,
             (long long)i, (double)x[i]);
}

static g3_slice block(int64_t row, int64_t rows, int64_t col, int64_t cols) {
  return (g3_slice){2, {ROWS, COLS}, {row, col}, {rows, cols}};
}

/* Rank 1 gives nothing; the others give blocks of the matrix, and rank 3 the whole vector. */
static int make_items(int rank, g3_ckpt_item items[2]) {
  static const int64_t whole[1] = {LONG};
  if (rank == 1) return 0;
  if (rank == 0) items[0] = item_of("model/w", block(0, 5, 0, COLS), true);
  if (rank == 2) items[0] = item_of("model/w", block(5, 19, 0, 7), true);
  if (rank == 3) items[0] = item_of("model/w", block(5, 19, 7, 3), true);
  if (rank == 3) items[1] = item_of("optim/exp_avg/v", g3_slice_whole(1, whole), true);
  return rank == 3 ? 2 : 1;
}

static void free_items(g3_ckpt_item *items, int n) {
  for (int i = 0; i < n; i++)
    free(items[i].local.data);
}

static g3_status save(place *p, int64_t step, const g3_ckpt_item *items, int n) {
  const g3_ckpt_meta meta = {.step = step, .consumed_samples = 3 * step};
  return g3_ckpt_save(p->world, p->stream, p->dir, &meta, items, n, 2, p->stage);
}

static bool is_there(const place *p, const char *name) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s", p->dir, name);
  return access(path, F_OK) == 0;
}

/* Loads and checks the slices that rank `index` of `ranks` would have in another layout. */
static void load_as(place *p, const char *path, int ranks, int index) {
  static const int64_t whole[1] = {LONG};
  g3_ckpt_index *ix = NULL;
  EXPECT_OK(g3_ckpt_index_read(path, &ix));
  EXPECT_EQUAL(ix->meta.consumed_samples, 3 * ix->meta.step);
  g3_slice w = block(0, ROWS, 0, COLS), v = g3_slice_whole(1, whole);
  w = g3_slice_cut(&w, 1, (COLS + ranks - 1) / ranks, index);
  v = g3_slice_cut(&v, 0, (LONG + ranks - 1) / ranks, index);
  g3_ckpt_item items[2] = {item_of("model/w", w, false), item_of("optim/exp_avg/v", v, false)};
  EXPECT_OK(g3_ckpt_load(ix, p->stream, items, 2, NULL, p->stage, NULL));
  expect_numbers(&items[0]);
  expect_numbers(&items[1]);
  free_items(items, 2);
  g3_ckpt_index_free(ix);
}

static void any_layout_loads(g3_comm *world, g3_device *dev) {
  place p = open_place(world, dev);
  g3_ckpt_item items[2];
  const int n = make_items(world->rank, items);
  EXPECT_OK(save(&p, 4, items, n));
  char path[512], latest[512];
  snprintf(path, sizeof path, "%s/step-00000004", p.dir);
  EXPECT_OK(g3_ckpt_latest(p.dir, latest, sizeof latest));
  EXPECT(strcmp(path, latest) == 0);
  g3_ckpt_index *ix = NULL;
  EXPECT_OK(g3_ckpt_index_read(path, &ix));
  EXPECT_EQUAL(ix->nshards, 3); /* numbered over the ranks that write */
  EXPECT_EQUAL(g3_ckpt_find(ix, "model/w")->npieces, 3);
  EXPECT_EQUAL(g3_ckpt_find(ix, "optim/exp_avg/v")->piece->shard, 2);
  int64_t bytes = 0;
  EXPECT_OK(g3_ckpt_verify(ix, p.stage, &bytes));
  EXPECT_EQUAL(bytes, (ROWS * COLS + LONG) * 4);
  g3_ckpt_index_free(ix);
  for (int ranks = 1; ranks <= 7; ranks += 2)
    for (int i = 0; i < ranks; i++)
      load_as(&p, path, ranks, i);
  free_items(items, n);
  close_place(&p);
}

/* The index does not tell which ranks wrote: only how the pieces lie. */
static void old_ones_are_dropped(g3_comm *world, g3_device *dev) {
  place p = open_place(world, dev);
  g3_ckpt_item items[2];
  const int n = make_items(world->rank, items);
  for (int64_t step = 1; step <= 4; step++) {
    EXPECT_OK(save(&p, step, items, n));
    EXPECT_EQUAL(is_there(&p, "step-00000002"), step == 2 || step == 3);
  }
  EXPECT(!is_there(&p, "step-00000001") && is_there(&p, "step-00000004"));
  free_items(items, n);
  close_place(&p);
}

/* All ranks have the same status and text, and it holds `part`. */
static void expect_one_voice(place *p, g3_status st, g3_status wanted, const char *part) {
  G3_CHECK(st == wanted, "status %d, wanted %d (%s)", (int)st, (int)wanted, g3_last_error());
  G3_CHECK(strstr(g3_last_error(), part), "\"%s\" lacks \"%s\"", g3_last_error(), part);
  char said[2048] = "";
  snprintf(said, sizeof said, "%s", g3_last_error());
  EXPECT_OK(p->world->ops->host_broadcast(p->world, said, sizeof said, 0));
  G3_CHECK(strcmp(said, g3_last_error()) == 0, "\"%s\" here, \"%s\" on rank 0", g3_last_error(),
           said);
}

static void expect_untouched(place *p) {
  char path[512];
  EXPECT_OK(g3_ckpt_latest(p->dir, path, sizeof path));
  EXPECT(strstr(path, "step-00000001") != NULL);
  load_as(p, path, 1, 0);
  EXPECT(!is_there(p, "step-00000002") && !is_there(p, "step-00000002.tmp"));
  EXPECT_OK(p->world->ops->barrier(p->world)); /* rank 0 may start the next save at once */
}

/* A rank whose files may not grow stands for one whose disk is full. */
static void one_rank_cannot_write(g3_comm *world, g3_device *dev) {
  place p = open_place(world, dev);
  g3_ckpt_item items[2];
  const int n = make_items(world->rank, items);
  EXPECT_OK(save(&p, 1, items, n));
  struct rlimit was;
  EXPECT_EQUAL(getrlimit(RLIMIT_FSIZE, &was), 0);
  signal(SIGXFSZ, SIG_IGN);
  static const int victims[] = {0, 2, 3, 1};
  for (int i = 0; i < 4; i++) {
    const int victim = victims[i];
    struct rlimit limit = was;
    limit.rlim_cur = 1000;
    if (world->rank == victim) EXPECT_EQUAL(setrlimit(RLIMIT_FSIZE, &limit), 0);
    const g3_status st = save(&p, 2, items, n);
    EXPECT_EQUAL(setrlimit(RLIMIT_FSIZE, &was), 0);
    if (victim == 1) { /* it writes nothing */
      EXPECT_OK(st);
      EXPECT(is_there(&p, "step-00000002"));
      break;
    }
    char shard[64];
    snprintf(shard, sizeof shard, "step-00000002.tmp/shard-%05d.h5", victim ? victim - 1 : 0);
    expect_one_voice(&p, st, G3_EIO, shard);
    EXPECT(strstr(g3_last_error(), "File too large") != NULL);
    expect_untouched(&p);
  }
  signal(SIGXFSZ, SIG_DFL);
  EXPECT_OK(save(&p, 3, items, n));
  free_items(items, n);
  close_place(&p);
}

/* Only rank 0 makes directories; all hear that it could not. */
static void directory_in_the_way(g3_comm *world, g3_device *dev) {
  place p = open_place(world, dev);
  g3_ckpt_item items[2];
  const int n = make_items(world->rank, items);
  char was[256], file[300];
  memcpy(was, p.dir, sizeof was);
  snprintf(file, sizeof file, "%s/file", p.dir);
  if (world->rank == 0) fclose(fopen(file, "w"));
  snprintf(p.dir + strlen(p.dir), 20, "/file/run");
  expect_one_voice(&p, save(&p, 1, items, n), G3_EIO, "/file: Not a directory");
  memcpy(p.dir, was, sizeof was);
  free_items(items, n);
  close_place(&p);
}

static void ranks_that_do_not_fit(g3_comm *world, g3_device *dev) {
  place p = open_place(world, dev);
  g3_ckpt_item items[2];
  const int n = make_items(world->rank, items);
  EXPECT_OK(save(&p, 1, items, n));
  if (world->rank == 2) items[0].slice = block(4, 19, 0, 7);
  expect_one_voice(&p, save(&p, 2, items, n), G3_EFORMAT, "hold the same elements");
  expect_untouched(&p);
  if (world->rank == 2) items[0].slice = block(5, 19, 0, 7);
  const int fewer = world->rank == 3 ? 0 : n;
  expect_one_voice(&p, save(&p, 2, items, fewer), G3_EFORMAT, "hold 183 of its 240");
  expect_untouched(&p);
  if (world->rank == 2) items[0].slice.global[0]++;
  expect_one_voice(&p, save(&p, 2, items, n), G3_EINVAL, "ranks differ");
  expect_untouched(&p);
  if (world->rank == 2) snprintf(items[0].name, sizeof items[0].name, "/");
  expect_one_voice(&p, save(&p, 2, items, n), G3_EINVAL, "cannot name");
  expect_untouched(&p);
  expect_one_voice(&p, save(&p, 2, items, 0), G3_EINVAL, "nothing to save");
  expect_untouched(&p);
  free_items(items, n);
  close_place(&p);
}

int main(void) {
  static const ranks_test tests[] = {
      {"any layout loads", any_layout_loads},
      {"old ones are dropped", old_ones_are_dropped},
      {"one rank cannot write", one_rank_cannot_write},
      {"directory in the way", directory_in_the_way},
      {"ranks that do not fit", ranks_that_do_not_fit},
  };
  return ranks_main(4, tests, sizeof tests / sizeof tests[0]);
}
