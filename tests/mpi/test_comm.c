/* ranks: 4 */
/* Every operation of a communicator against plain arithmetic on what all ranks are known to hold.
 */
#include "comm/mpi_limit.h"
#include "mpi/ranks.h"
#include "util/half.h"
#include <limits.h>

enum { RANKS = 4, LARGE = (1 << 20) + 5 /* more than one chunk of sums of bf16 */ };

static void put(g3_tensor t, int64_t i, double v) {
  char *at = g3_tensor_at(t, i);
  switch (t.dtype) {
  case G3_F32:
    *(float *)at = (float)v;
    break;
  case G3_BF16:
    *(g3_bf16 *)at = g3_f32_to_bf16((float)v);
    break;
  case G3_F64:
    *(double *)at = v;
    break;
  case G3_I32:
    *(int32_t *)at = (int32_t)v;
    break;
  default:
    *(uint8_t *)at = (uint8_t)v;
  }
}

static double get(g3_tensor t, int64_t i) {
  const char *at = g3_tensor_at(t, i);
  switch (t.dtype) {
  case G3_F32:
    return *(const float *)at;
  case G3_BF16:
    return g3_bf16_to_f32(*(const g3_bf16 *)at);
  case G3_F64:
    return *(const double *)at;
  case G3_I32:
    return *(const int32_t *)at;
  default:
    return *(const uint8_t *)at;
  }
}

/* What rank r holds in element i. Whole numbers, whose sums are exact, but for bf16, where they
 * need rounding. */
static double held(g3_dtype t, int r, int64_t i) {
  const double whole = (double)((i * 13 + r * 29 + i / 7) % 61);
  if (t != G3_BF16) return whole;
  const float f = (float)(whole - 30) * (1.0f + (float)(r * 37 + i % 11) / 7.0f);
  return g3_bf16_to_f32(g3_f32_to_bf16(f));
}

/* The reduction as it must come out: for bf16 added in f32 in the order of ranks, rounded once. */
static double reduced(g3_dtype t, int64_t i, g3_redop op) {
  float f32 = (float)held(t, 0, i);
  double sum = held(t, 0, i);
  for (int r = 1; r < RANKS; r++) {
    const double v = held(t, r, i);
    f32 = op == G3_SUM ? f32 + (float)v : (float)v > f32 ? (float)v : f32;
    sum = op == G3_SUM ? sum + v : v > sum ? v : sum;
  }
  if (t == G3_BF16) return g3_bf16_to_f32(g3_f32_to_bf16(f32));
  return t == G3_U8 ? (double)(uint8_t)sum : sum;
}

static g3_tensor room(g3_dtype t, int64_t n) {
  void *data = malloc((size_t)(n + 1) * 8);
  EXPECT(data != NULL);
  return g3_tensor_1d(data, t, n);
}

static void fill(g3_tensor t, int64_t from, int r) {
  for (int64_t i = 0; i < g3_tensor_count(t); i++)
    put(t, i, held(t.dtype, r, from + i));
}

static const g3_dtype dtypes[] = {G3_F32, G3_BF16, G3_F64, G3_I32, G3_U8};
static const int64_t counts[] = {0, 1, 3, 4, 5, 257, 4096, 10007};

enum { DTYPES = 5, COUNTS = sizeof counts / sizeof *counts };

/* Calls `body` for every dtype and count, on a compute and on a side stream, with MPI's own limit
 * and with a small one. */
typedef void collective(g3_comm *c, g3_stream *s, g3_dtype t, int64_t n);

static void for_all(g3_comm *c, g3_device *dev, collective *body) {
  for (int side = 0; side < 2; side++)
    for (int cut = 0; cut < 2; cut++) {
      g3_stream *s;
      EXPECT_OK(dev->ops->stream_create(dev, side, g3_tensor_none(), &s));
      g3_comm_mpi_limit(c, cut ? 1000 : INT_MAX);
      for (int t = 0; t < DTYPES; t++)
        for (int n = 0; n < COUNTS; n++)
          body(c, s, dtypes[t], counts[n]);
      if (!side && !cut) body(c, s, G3_BF16, LARGE);
      dev->ops->stream_destroy(s);
    }
  g3_comm_mpi_limit(c, INT_MAX);
}

static void one_all_reduce(g3_comm *c, g3_stream *s, g3_dtype dtype, int64_t n) {
  for (g3_redop op = G3_SUM; op <= G3_MAX; op++) {
    const g3_tensor t = room(dtype, n);
    fill(t, 0, c->rank);
    EXPECT_OK(c->ops->all_reduce(c, s, t, op));
    EXPECT_OK(s->dev->ops->sync(s));
    for (int64_t i = 0; i < n; i++)
      EXPECT(get(t, i) == reduced(dtype, i, op));
    free(t.data);
  }
}

static void one_reduce_scatter(g3_comm *c, g3_stream *s, g3_dtype dtype, int64_t n) {
  for (int in_place = 0; in_place < 2; in_place++) {
    const g3_tensor in = room(dtype, n * RANKS), other = room(dtype, n);
    const g3_tensor out = in_place ? g3_tensor_part(in, 0, c->rank * n, n) : other;
    fill(in, 0, c->rank);
    EXPECT_OK(c->ops->reduce_scatter(c, s, out, in));
    EXPECT_OK(s->dev->ops->sync(s));
    for (int64_t i = 0; i < n; i++)
      EXPECT(get(out, i) == reduced(dtype, c->rank * n + i, G3_SUM));
    free(in.data), free(other.data);
  }
}

static void one_all_gather(g3_comm *c, g3_stream *s, g3_dtype dtype, int64_t n) {
  for (int in_place = 0; in_place < 2; in_place++) {
    const g3_tensor out = room(dtype, n * RANKS), other = room(dtype, n);
    const g3_tensor in = in_place ? g3_tensor_part(out, 0, c->rank * n, n) : other;
    fill(in, 0, c->rank);
    EXPECT_OK(c->ops->all_gather(c, s, out, in));
    EXPECT_OK(s->dev->ops->sync(s));
    for (int r = 0; r < RANKS; r++)
      for (int64_t i = 0; i < n; i++)
        EXPECT(get(out, r * n + i) == held(dtype, r, i));
    free(out.data), free(other.data);
  }
}

static void one_broadcast(g3_comm *c, g3_stream *s, g3_dtype dtype, int64_t n) {
  for (int root = 0; root < RANKS; root++) {
    const g3_tensor t = room(dtype, n);
    fill(t, 0, c->rank);
    EXPECT_OK(c->ops->broadcast(c, s, t, root));
    EXPECT_OK(s->dev->ops->sync(s));
    for (int64_t i = 0; i < n; i++)
      EXPECT(get(t, i) == held(dtype, root, i));
    free(t.data);
  }
}

static void all_reduce(g3_comm *c, g3_device *dev) {
  for_all(c, dev, one_all_reduce);
}

static void reduce_scatter(g3_comm *c, g3_device *dev) {
  for_all(c, dev, one_reduce_scatter);
}

static void all_gather(g3_comm *c, g3_device *dev) {
  for_all(c, dev, one_all_gather);
}

static void broadcast(g3_comm *c, g3_device *dev) {
  for_all(c, dev, one_broadcast);
}

/* Many in flight at once, and results in order where one works on what another made. */
static void side_stream_keeps_order(g3_comm *c, g3_device *dev) {
  enum { N = 20000, ROUNDS = 100 };
  g3_stream *s;
  EXPECT_OK(dev->ops->stream_create(dev, true, g3_tensor_none(), &s));
  const g3_tensor t = room(G3_F32, N * RANKS), many = room(G3_F32, ROUNDS * RANKS);
  const g3_tensor mine = g3_tensor_part(t, 0, c->rank * N, N);
  fill(t, 0, c->rank);
  EXPECT_OK(c->ops->reduce_scatter(c, s, mine, t));
  EXPECT_OK(c->ops->all_gather(c, s, t, mine));
  EXPECT_OK(c->ops->all_reduce(c, s, mine, G3_MAX));
  for (int k = 0; k < ROUNDS; k++) {
    const g3_tensor part = g3_tensor_part(many, 0, k * RANKS, RANKS);
    fill(part, k, c->rank);
    EXPECT_OK(c->ops->all_reduce(c, s, part, G3_SUM));
  }
  EXPECT_OK(dev->ops->sync(s));
  for (int k = 0; k < ROUNDS; k++)
    for (int i = 0; i < RANKS; i++)
      EXPECT(get(many, k * RANKS + i) == reduced(G3_F32, k + i, G3_SUM));
  for (int64_t i = 0; i < N * RANKS; i++) {
    if (i / N != c->rank) EXPECT(get(t, i) == reduced(G3_F32, i, G3_SUM));
    if (i / N != c->rank) continue;
    double most = 0; /* over ranks, of their own ranges' sums */
    for (int r = 0; r < RANKS; r++) {
      const double v = reduced(G3_F32, r * N + i % N, G3_SUM);
      most = v > most ? v : most;
    }
    EXPECT(get(t, i) == most);
  }
  dev->ops->stream_destroy(s);
  free(t.data), free(many.data);
}

/* Everyone sends 4 MB to everyone, itself included, at once. */
static void exchange_crossing(g3_comm *c, g3_device *dev) {
  enum { N = 1 << 20 };
  for (int trial = 0; trial < 3; trial++) {
    g3_stream *s;
    EXPECT_OK(dev->ops->stream_create(dev, trial == 1, g3_tensor_none(), &s));
    g3_comm_mpi_limit(c, trial == 2 ? 100000 : INT_MAX);
    g3_xfer x[2 * RANKS];
    for (int r = 0; r < RANKS; r++) {
      x[r] = (g3_xfer){.dir = G3_SEND, .peer = r, .t = room(G3_F32, N)};
      x[RANKS + r] = (g3_xfer){.dir = G3_RECV, .peer = r, .t = room(G3_F32, N)};
      fill(x[r].t, r, c->rank);
    }
    EXPECT_OK(c->ops->exchange(c, s, x, 2 * RANKS));
    EXPECT_OK(dev->ops->sync(s));
    for (int r = 0; r < RANKS; r++)
      for (int64_t i = 0; i < N; i++)
        EXPECT(get(x[RANKS + r].t, i) == held(G3_F32, r, c->rank + i));
    dev->ops->stream_destroy(s);
    for (int i = 0; i < 2 * RANKS; i++)
      free(x[i].t.data);
  }
  g3_comm_mpi_limit(c, INT_MAX);
}

/* More messages than one job holds, of many sizes, some empty: the k-th meets the k-th. Then the
 * same buffers travel on within the same stream, without a wait in between. */
static void exchange_matches_by_order(g3_comm *c, g3_device *dev) {
  enum { MESSAGES = 25 };
  const int to = (c->rank + 1) % RANKS, from = (c->rank + RANKS - 1) % RANKS;
  g3_stream *s;
  EXPECT_OK(dev->ops->stream_create(dev, true, g3_tensor_none(), &s));
  g3_xfer x[2 * MESSAGES], on[2 * MESSAGES];
  for (int k = 0; k < MESSAGES; k++) {
    const int64_t n = k * 100;
    x[2 * k] = (g3_xfer){.dir = G3_SEND, .peer = to, .t = room(G3_BF16, n)};
    x[2 * k + 1] = (g3_xfer){.dir = G3_RECV, .peer = from, .t = room(G3_BF16, n)};
    on[2 * k] = (g3_xfer){.dir = G3_SEND, .peer = to, .t = x[2 * k + 1].t};
    on[2 * k + 1] = (g3_xfer){.dir = G3_RECV, .peer = from, .t = x[2 * k].t};
    fill(x[2 * k].t, k, c->rank);
  }
  EXPECT_OK(c->ops->exchange(c, s, x, 2 * MESSAGES));
  EXPECT_OK(c->ops->exchange(c, s, on, 2 * MESSAGES));
  EXPECT_OK(dev->ops->sync(s));
  const int before = (from + RANKS - 1) % RANKS;
  for (int k = 0; k < MESSAGES; k++) {
    for (int64_t i = 0; i < k * 100; i++) {
      EXPECT(get(x[2 * k + 1].t, i) == held(G3_BF16, from, k + i));
      EXPECT(get(x[2 * k].t, i) == held(G3_BF16, before, k + i));
    }
    free(x[2 * k].t.data), free(x[2 * k + 1].t.data);
  }
  EXPECT_OK(c->ops->exchange(c, s, NULL, 0));
  dev->ops->stream_destroy(s);
}

/* A sender that promised less than it sends is a failure with MPI's own words. */
static void wrong_sizes_are_told(g3_comm *c, g3_device *dev) {
  g3_comm *pair;
  EXPECT_OK(c->ops->split(c, c->rank / 2, c->rank, "pair", &pair));
  g3_stream *s;
  EXPECT_OK(dev->ops->stream_create(dev, false, g3_tensor_none(), &s));
  const g3_tensor t = room(G3_F32, 8);
  fill(t, 0, 0);
  const bool sends = pair->rank == 0;
  const g3_xfer x = {.dir = sends ? G3_SEND : G3_RECV,
                     .peer = 1 - pair->rank,
                     .t = g3_tensor_part(t, 0, 0, sends ? 8 : 4)};
  EXPECT_OK(pair->ops->exchange(pair, s, &x, 1));
  EXPECT_EQUAL(dev->ops->sync(s), sends ? G3_OK : G3_EBACKEND);
  if (!sends) EXPECT(strstr(g3_last_error(), "exchange over pair (rank 1 of 2)") != NULL);
  if (!sends) EXPECT(strstr(g3_last_error(), "truncate") != NULL);
  dev->ops->stream_destroy(s);
  g3_comm_destroy(pair);
  free(t.data);
}

static void host_side(g3_comm *c, g3_device *dev) {
  (void)dev;
  int64_t v[] = {c->rank, INT64_MAX / RANKS, -c->rank};
  EXPECT_OK(c->ops->host_all_reduce(c, v, 2, G3_SUM));
  EXPECT_EQUAL(v[0], 6);
  EXPECT_EQUAL(v[1], INT64_MAX / RANKS * RANKS);
  EXPECT_OK(c->ops->host_all_reduce(c, &v[2], 1, G3_MAX));
  EXPECT_EQUAL(v[2], 0);
  for (int cut = 0; cut < 2; cut++) {
    g3_comm_mpi_limit(c, cut ? 7 : INT_MAX);
    for (int root = 0; root < RANKS; root++) {
      char text[40], want[40];
      snprintf(text, sizeof text, "%032d", c->rank);
      snprintf(want, sizeof want, "%032d", root);
      EXPECT_OK(c->ops->host_broadcast(c, text, 33, root));
      EXPECT(strcmp(text, want) == 0);
      /* Rank r gives 10 r letters. */
      char letters[10 * RANKS];
      memset(letters, 'a' + c->rank, sizeof letters);
      char *all = NULL;
      size_t *size = NULL;
      EXPECT_OK(
          c->ops->host_gather(c, letters, (size_t)(10 * c->rank), root, (void **)&all, &size));
      EXPECT((all != NULL) == (c->rank == root) && (size != NULL) == (c->rank == root));
      if (c->rank == root) {
        EXPECT(memcmp(all, "bbbbbbbbbbccccccccccccccccccccdddddddddddddddddddddddddddddd", 60) ==
               0);
        for (int r = 0; r < RANKS; r++)
          EXPECT_EQUAL(size[r], 10 * r);
      }
      free(all), free(size);
    }
  }
  g3_comm_mpi_limit(c, INT_MAX);
}

static void agreement(g3_comm *c, g3_device *dev) {
  (void)dev;
  const g3_status io = c->rank == 2 ? G3_FAIL(G3_EIO, "data.bin: cannot be opened") : G3_OK;
  EXPECT_EQUAL(g3_comm_agree(c, io), G3_EIO);
  EXPECT(strcmp(g3_last_error(), "rank 2: data.bin: cannot be opened") == 0);
  EXPECT_EQUAL(g3_comm_agree(c, G3_OK), G3_OK);
  const g3_status two = c->rank == 3   ? G3_FAIL(G3_ENOMEM, "no memory")
                        : c->rank == 1 ? G3_FAIL(G3_EFORMAT, "bad magic")
                                       : G3_OK;
  EXPECT_EQUAL(g3_comm_agree(c, two), G3_EFORMAT);
  EXPECT(strcmp(g3_last_error(), "rank 1: bad magic") == 0);
  const g3_status all = G3_FAIL(G3_EINVAL, "tp = 3 does not divide 16");
  EXPECT_EQUAL(g3_comm_agree(c, all), G3_EINVAL);
  EXPECT(strcmp(g3_last_error(), "tp = 3 does not divide 16") == 0);
  const g3_status mixed = c->rank ? G3_FAIL(G3_EINVAL, "other") : G3_FAIL(G3_EIO, "first");
  EXPECT_EQUAL(g3_comm_agree(c, mixed), G3_EIO);
  EXPECT(strcmp(g3_last_error(), "rank 0: first") == 0);
}

static void splitting(g3_comm *c, g3_device *dev) {
  (void)dev;
  g3_comm *odd, *reversed;
  EXPECT_OK(c->ops->split(c, c->rank % 2 ? 1 : -1, c->rank, "odd", &odd));
  EXPECT((odd != NULL) == (c->rank % 2 == 1));
  if (odd) {
    EXPECT_EQUAL(odd->size, 2);
    EXPECT_EQUAL(odd->rank, c->rank / 2);
    EXPECT(strcmp(odd->name, "odd") == 0 && odd->scratch.data == c->scratch.data);
  }
  EXPECT_OK(c->ops->split(c, 0, -c->rank, "a name that is too long", &reversed));
  EXPECT_EQUAL(reversed->rank, RANKS - 1 - c->rank);
  EXPECT(strcmp(reversed->name, "a name that is ") == 0);
  int local_rank, local_size;
  EXPECT_OK(g3_comm_node(c, &local_rank, &local_size));
  EXPECT_EQUAL(local_rank, c->rank);
  EXPECT_EQUAL(local_size, RANKS);
  EXPECT_OK(g3_comm_node(reversed, &local_rank, &local_size));
  EXPECT_EQUAL(local_rank, reversed->rank);
  g3_comm_destroy(odd);
  g3_comm_destroy(reversed);
}

static void one_world_only(g3_comm *c, g3_device *dev) {
  (void)dev;
  g3_comm *second = c;
  EXPECT_EQUAL(g3_comm_mpi_world(&second), G3_EINVAL);
  EXPECT(second == c && strstr(g3_last_error(), "starts once"));
  EXPECT(g3_comm_launched());
}

static void scratch_for_sums(g3_comm *c, g3_device *dev) {
  (void)dev;
  const size_t bytes = g3_comm_scratch_bytes((int64_t)LARGE * RANKS, RANKS);
  c->scratch = g3_tensor_1d(malloc(bytes), G3_U8, (int64_t)bytes);
  EXPECT(c->scratch.data != NULL);
}

static void no_scratch_for_sums(g3_comm *c, g3_device *dev) {
  (void)dev;
  free(c->scratch.data);
  c->scratch = g3_tensor_none();
}

int main(void) {
  static const ranks_test tests[] = {
      {"scratch", scratch_for_sums},
      {"all_reduce", all_reduce},
      {"reduce_scatter", reduce_scatter},
      {"all_gather", all_gather},
      {"broadcast", broadcast},
      {"side_stream_keeps_order", side_stream_keeps_order},
      {"exchange_crossing", exchange_crossing},
      {"exchange_matches_by_order", exchange_matches_by_order},
      {"wrong_sizes_are_told", wrong_sizes_are_told},
      {"host_side", host_side},
      {"agreement", agreement},
      {"splitting", splitting},
      {"one_world_only", one_world_only},
      {"no scratch", no_scratch_for_sums},
  };
  return ranks_main(RANKS, tests, sizeof tests / sizeof *tests);
}
