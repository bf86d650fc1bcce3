/* ranks: 3 */
/* Timed communicators: the same results, calls and bytes counted by kind, waiting counted to what
 * is waited for, and everything given back. */
#include "comm/timed.h"
#include "mpi/ranks.h"
#include <unistd.h>

enum { RANKS = 3, N = 6 };

/* Streams of the device, timed, with the world. */
typedef struct {
  g3_stream *main, *side;
  g3_timed *timed;
} fixture;

static fixture begin(g3_comm *world, g3_device *dev) {
  fixture f;
  EXPECT_OK(dev->ops->stream_create(dev, false, g3_tensor_none(), &f.main));
  EXPECT_OK(dev->ops->stream_create(dev, true, g3_tensor_none(), &f.side));
  EXPECT_OK(g3_timed_begin(dev, &f.timed));
  EXPECT_OK(g3_comm_timed_begin(world, f.timed));
  return f;
}

static void end(fixture *f, g3_comm *world, g3_device *dev) {
  g3_comm_timed_end(world);
  g3_timed_end(f->timed);
  dev->ops->stream_destroy(f->main);
  dev->ops->stream_destroy(f->side);
}

static const g3_timed_row *row_named(const g3_timed *t, const char *name) {
  int n;
  const g3_timed_row *row = g3_timed_rows(t, &n);
  for (int i = 0; i < n; i++)
    if (strcmp(row[i].name, name) == 0) return &row[i];
  G3_CHECK(false, "no row is called %s", name);
  return NULL;
}

static void counted(const g3_timed *t, const char *name, int64_t calls, int64_t bytes) {
  const g3_timed_row *row = row_named(t, name);
  EXPECT_EQUAL(row->calls, calls);
  EXPECT_EQUAL(row->work, bytes);
  EXPECT(row->seconds > 0);
}

static void forwards_and_counts(g3_comm *world, g3_device *dev) {
  const g3_comm_ops *own = world->ops;
  fixture f = begin(world, dev);
  const int me = world->rank, next = (me + 1) % RANKS, before = (me + RANKS - 1) % RANKS;
  float a[N], part[2];
  for (int i = 0; i < N; i++)
    a[i] = (float)(10 * me + i);
  const g3_tensor t = g3_tensor_1d(a, G3_F32, N), p = g3_tensor_1d(part, G3_F32, 2);
  EXPECT(strcmp(world->ops->name, "mpi") == 0);
  EXPECT_OK(world->ops->all_reduce(world, f.main, t, G3_SUM));
  for (int i = 0; i < N; i++)
    EXPECT_EQUAL(a[i], 30 + 3 * i);
  EXPECT_OK(world->ops->reduce_scatter(world, f.main, p, t));
  EXPECT_EQUAL(part[1], 3 * (30 + 3 * (2 * me + 1)));
  part[0] = part[1] = (float)me;
  EXPECT_OK(world->ops->all_gather(world, f.main, t, p));
  EXPECT_EQUAL(a[5], 2);
  const g3_xfer x[] = {{G3_SEND, next, g3_tensor_1d(a + 2 * me, G3_F32, 1)},
                       {G3_RECV, before, g3_tensor_1d(part, G3_F32, 1)}};
  EXPECT_OK(world->ops->exchange(world, f.main, x, 2));
  EXPECT_OK(dev->ops->sync(f.main));
  EXPECT_EQUAL(part[0], before);
  EXPECT_OK(world->ops->broadcast(world, f.main, t, 1));
  counted(f.timed, "all_reduce world", 1, 4 * N);
  counted(f.timed, "reduce_scatter world", 1, 4 * N);
  counted(f.timed, "all_gather world", 1, 4 * N);
  counted(f.timed, "exchange world", 1, 8);
  counted(f.timed, "broadcast world", 1, 4 * N);
  EXPECT_EQUAL(row_named(f.timed, "transfer")->seconds, 0);
  end(&f, world, dev);
  EXPECT(world->ops == own && dev->ops == &g3_cpu_ops);
}

/* A rank that comes late: the others wait in what they started, wherever they wait for it. */
static void waiting_counts_to_the_transfer(g3_comm *world, g3_device *dev) {
  static const double late = 0.1;
  fixture f = begin(world, dev);
  float a[N] = {0}, b[N] = {0};
  g3_event *e;
  EXPECT_OK(dev->ops->event_create(dev, &e));
  EXPECT_OK(world->ops->barrier(world));
  if (world->rank == 0) usleep((useconds_t)(1.5 * late * 1e6));
  EXPECT_OK(world->ops->all_reduce(world, f.side, g3_tensor_1d(a, G3_F32, N), G3_SUM));
  EXPECT_OK(dev->ops->record(f.side, e));
  EXPECT_OK(dev->ops->wait(f.main, e));
  EXPECT_OK(dev->ops->fill(f.main, g3_tensor_1d(a, G3_F32, N), 1));
  if (world->rank != 0) {
    EXPECT(row_named(f.timed, "all_reduce world")->seconds >= late);
    EXPECT(row_named(f.timed, "fill")->seconds < late);
  }
  EXPECT_OK(world->ops->barrier(world));
  if (world->rank == 0) usleep((useconds_t)(1.5 * late * 1e6));
  const g3_xfer x[] = {
      {world->rank == 0 ? G3_SEND : G3_RECV, world->rank == 0 ? 1 : 0, g3_tensor_1d(b, G3_F32, N)}};
  EXPECT_OK(world->ops->exchange(world, f.main, x, world->rank < 2));
  EXPECT_OK(dev->ops->fill(f.main, g3_tensor_1d(a, G3_F32, N), 1));
  if (world->rank == 1) {
    EXPECT(row_named(f.timed, "exchange world")->seconds >= late);
    EXPECT(row_named(f.timed, "fill")->seconds < late);
  }
  dev->ops->event_destroy(e);
  end(&f, world, dev);
}

static void one_rank_stays_as_it_is(g3_comm *world, g3_device *dev) {
  fixture f = begin(world, dev);
  g3_comm *self;
  EXPECT_OK(g3_comm_self(&self));
  const g3_comm_ops *own = self->ops;
  EXPECT_OK(g3_comm_timed_begin(self, f.timed));
  EXPECT(self->ops == own);
  g3_comm_timed_end(self);
  g3_comm_timed_end(NULL);
  EXPECT(self->ops == own);
  g3_comm_destroy(self);
  end(&f, world, dev);
}

int main(void) {
  static const ranks_test tests[] = {
      {"forwards_and_counts", forwards_and_counts},
      {"waiting_counts_to_the_transfer", waiting_counts_to_the_transfer},
      {"one_rank_stays_as_it_is", one_rank_stays_as_it_is},
  };
  return ranks_main(RANKS, tests, (int)(sizeof tests / sizeof tests[0]));
}
