/* ranks: 8 */
/* The gradient reducer on tp 2 x dp 2 x pp 2, against sums over the ranks that share a gradient. */
#include "mpi/ranks.h"
#include "parallel/reduce.h"

enum { RANKS = 8, PARAMS = 7, GROUPS = 3 };

/* On the first stage: tied embedding, positions, two blocks of a norm (summed over tp) and a
 * weight. On the last: the copy of the embedding at its end, and other blocks. */
static int describe(bool last, g3_param *p) {
  static const struct {
    int64_t count;
    int group;
    bool sum_tp, sum_ends;
  } rows[2][PARAMS] = {
      {{3000, 0, false, true},
       {700, 0, false, false},
       {100, 1, true, false},
       {900, 1, false, false},
       {60, 1, true, false},
       {100, 2, true, false},
       {5000, 2, false, false}},
      {{3000, 3, false, true},
       {100, 1, true, false},
       {800, 1, false, false},
       {100, 2, true, false},
       {4000, 2, false, false},
       {64, 3, true, false},
       {64, 3, true, false}},
  };
  for (int i = 0; i < PARAMS; i++) {
    memset(&p[i], 0, sizeof p[i]);
    snprintf(p[i].name, sizeof p[i].name, "p%d", i);
    p[i].slice = g3_slice_whole(1, &rows[last][i].count);
    p[i].count = rows[last][i].count;
    p[i].group = rows[last][i].group;
    p[i].sum_tp = rows[last][i].sum_tp;
    p[i].sum_ends = rows[last][i].sum_ends;
  }
  return PARAMS;
}

typedef struct {
  g3_mesh *mesh;
  g3_flat *flat;
  g3_stream *compute, *side;
  g3_tensor grads, params;
  g3_reducer *reducer;
} bench;

static void setup(bench *b, g3_comm *world, g3_device *dev, bool zero, int64_t bucket) {
  g3_grid grid;
  g3_param p[PARAMS];
  EXPECT_OK(g3_grid_make(2, 2, 2, RANKS, &grid));
  EXPECT_OK(g3_mesh_create(world, grid, &b->mesh));
  const int n = describe(b->mesh->me.at[G3_PP] == 1, p);
  EXPECT_OK(g3_flat_create(p, n, 2, bucket, &b->flat));
  const int64_t count = b->flat->count;
  b->grads = g3_tensor_1d(malloc((size_t)count * 4), G3_F32, count);
  b->params = g3_tensor_1d(malloc((size_t)count * 4), G3_F32, count);
  EXPECT(b->grads.data && b->params.data);
  EXPECT_OK(dev->ops->stream_create(dev, false, g3_tensor_none(), &b->compute));
  EXPECT_OK(dev->ops->stream_create(dev, true, g3_tensor_none(), &b->side));
  const g3_reducer_spec spec = {.flat = b->flat,
                                .grads = b->grads,
                                .params = b->params,
                                .mesh = b->mesh,
                                .dev = dev,
                                .side = b->side,
                                .zero = zero};
  EXPECT_OK(g3_reducer_create(&spec, &b->reducer));
}

static void teardown(bench *b, g3_device *dev) {
  g3_reducer_destroy(b->reducer);
  dev->ops->stream_destroy(b->side);
  dev->ops->stream_destroy(b->compute);
  free(b->grads.data), free(b->params.data);
  g3_flat_destroy(b->flat);
  g3_mesh_destroy(b->mesh);
}

/* The gradient of element i of parameter p on a rank: whole numbers, whose sums are exact in any
 * order. */
static float gradient(int rank, int p, int64_t i, int step) {
  return (float)((rank * 31 + p * 17 + i * 3 + step) % 101);
}

/* Its sum: over dp, over tp where the parameter says so, over both stages when it is tied (its
 * number is 0 on both). */
static float summed(const bench *b, int p, int64_t i, int step) {
  const g3_param *param = &b->flat->param[p];
  float sum = 0;
  for (int rank = 0; rank < RANKS; rank++) {
    const g3_coord c = g3_grid_coord(&b->mesh->grid, rank);
    const bool tp = param->sum_tp || c.at[G3_TP] == b->mesh->me.at[G3_TP];
    const bool pp = param->sum_ends || c.at[G3_PP] == b->mesh->me.at[G3_PP];
    if (tp && pp) sum += gradient(rank, p, i, step);
  }
  return sum;
}

static void fill(bench *b, int rank, int step) {
  float *g = b->grads.data;
  memset(g, 0, g3_tensor_bytes(b->grads));
  for (int p = 0; p < b->flat->nparams; p++)
    for (int64_t i = 0; i < b->flat->param[p].count; i++)
      g[b->flat->param[p].offset + i] = gradient(rank, p, i, step);
}

/* With zero, rank d's ranges hold the sums, otherwise everything does. */
static void expect_sums(const bench *b, bool zero, int step) {
  const float *g = b->grads.data;
  g3_segment *seg;
  int n;
  EXPECT_OK(g3_flat_segments(b->flat, zero ? 2 : 1, zero ? b->mesh->me.at[G3_DP] : 0, &seg, &n));
  EXPECT(n > 0);
  for (int k = 0; k < n; k++)
    for (int64_t i = 0; i < seg[k].count; i++)
      EXPECT(g[seg[k].flat + i] == summed(b, seg[k].param, seg[k].start + i, step));
  free(seg);
}

/* Each rank updates what it owns; after the gathering all have all. */
static void expect_gathered(bench *b) {
  float *w = b->params.data;
  for (int64_t i = 0; i < b->flat->count; i++)
    w[i] = -1;
  g3_segment *seg;
  int n;
  EXPECT_OK(g3_flat_segments(b->flat, 2, b->mesh->me.at[G3_DP], &seg, &n));
  for (int k = 0; k < n; k++)
    for (int64_t i = 0; i < seg[k].count; i++)
      w[seg[k].flat + i] = (float)(seg[k].flat + i);
  free(seg);
  EXPECT_OK(g3_reducer_gather(b->reducer, b->compute));
  EXPECT_OK(b->compute->dev->ops->sync(b->compute));
  for (int p = 0; p < b->flat->nparams; p++)
    for (int64_t i = b->flat->param[p].offset, end = i + b->flat->param[p].count; i < end; i++)
      EXPECT(w[i] == (float)i);
}

static void run(g3_comm *world, g3_device *dev, bool zero, int64_t bucket, bool tell) {
  bench b;
  setup(&b, world, dev, zero, bucket);
  for (int step = 0; step < 3; step++) {
    fill(&b, world->rank, step);
    for (int group = GROUPS; tell && group >= 0; group--) {
      const int done = g3_flat_finished(b.flat, group);
      if (done >= 0) EXPECT_OK(g3_reducer_bucket(b.reducer, done, b.compute));
    }
    EXPECT_OK(g3_reducer_flush(b.reducer, b.compute));
    EXPECT_OK(dev->ops->sync(b.compute));
    expect_sums(&b, zero, step);
    if (zero) expect_gathered(&b);
  }
  teardown(&b, dev);
}

static void zero_in_buckets(g3_comm *world, g3_device *dev) {
  run(world, dev, true, 500, true);
}

static void zero_in_one_bucket(g3_comm *world, g3_device *dev) {
  run(world, dev, true, 1 << 30, true);
}

static void all_reduce_in_buckets(g3_comm *world, g3_device *dev) {
  run(world, dev, false, 500, true);
}

static void all_left_to_the_flush(g3_comm *world, g3_device *dev) {
  run(world, dev, true, 500, false);
}

/* Without zero every rank keeps all weights: gathering leaves them as they are. */
static void nothing_to_gather_without_zero(g3_comm *world, g3_device *dev) {
  bench b;
  setup(&b, world, dev, false, 500);
  float *w = b.params.data;
  for (int64_t i = 0; i < b.flat->count; i++)
    w[i] = (float)world->rank;
  EXPECT_OK(g3_reducer_gather(b.reducer, b.compute));
  EXPECT_OK(dev->ops->sync(b.compute));
  for (int64_t i = 0; i < b.flat->count; i++)
    EXPECT(w[i] == (float)world->rank);
  teardown(&b, dev);
}

int main(void) {
  static const ranks_test tests[] = {
      {"zero_in_buckets", zero_in_buckets},
      {"zero_in_one_bucket", zero_in_one_bucket},
      {"all_reduce_in_buckets", all_reduce_in_buckets},
      {"all_left_to_the_flush", all_left_to_the_flush},
      {"nothing_to_gather_without_zero", nothing_to_gather_without_zero},
  };
  return ranks_main(RANKS, tests, sizeof tests / sizeof *tests);
}
