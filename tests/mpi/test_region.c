/* ranks: 4 */
/* Into and out of tensor-parallel parts, whole or cut along the sequence. */
#include "mpi/ranks.h"
#include "parallel/region.h"
#include "util/half.h"

enum { RANKS = 4, ROWS = 24, WIDTH = 10, PART = ROWS / RANKS };

static float held(int r, int i) {
  return (float)((i * 7 + r * 5) % 23) - 9;
}

static float total(int i) {
  float sum = 0;
  for (int r = 0; r < RANKS; r++)
    sum += held(r, i);
  return sum;
}

/* Small whole numbers: exact in bf16, as are their sums. */
static void put(g3_tensor t, int i, float v) {
  if (t.dtype == G3_F32)
    ((float *)t.data)[i] = v;
  else
    ((g3_bf16 *)t.data)[i] = g3_f32_to_bf16(v);
}

static float get(g3_tensor t, int i) {
  return t.dtype == G3_F32 ? ((const float *)t.data)[i]
                           : g3_bf16_to_f32(((const g3_bf16 *)t.data)[i]);
}

typedef struct {
  g3_stream *s;
  float whole[ROWS * WIDTH], part[PART * WIDTH];
  char scratch[4096];
} bench;

static bench *setup(g3_comm *world, g3_device *dev) {
  bench *b = calloc(1, sizeof *b);
  EXPECT(b != NULL);
  EXPECT_OK(dev->ops->stream_create(dev, false, g3_tensor_none(), &b->s));
  world->scratch = g3_tensor_1d(b->scratch, G3_U8, sizeof b->scratch);
  return b;
}

static void teardown(g3_comm *world, bench *b) {
  world->scratch = g3_tensor_none();
  b->s->dev->ops->stream_destroy(b->s);
  free(b);
}

static void hidden_states_whole(g3_comm *world, g3_device *dev) {
  bench *b = setup(world, dev);
  const g3_region r = {.tp = world, .sequence = false};
  for (int dtype = G3_F32; dtype <= G3_BF16; dtype++) {
    const g3_tensor x = g3_tensor_2d(b->whole, (g3_dtype)dtype, ROWS, WIDTH);
    for (int i = 0; i < ROWS * WIDTH; i++)
      put(x, i, held(world->rank, i));
    EXPECT_OK(g3_region_enter(&r, b->s, x, x));
    for (int i = 0; i < ROWS * WIDTH; i++)
      EXPECT(get(x, i) == held(world->rank, i));
    EXPECT_OK(g3_region_leave(&r, b->s, x, x));
    EXPECT_OK(dev->ops->sync(b->s));
    for (int i = 0; i < ROWS * WIDTH; i++)
      EXPECT(get(x, i) == total(i));
  }
  teardown(world, b);
}

static void hidden_states_cut(g3_comm *world, g3_device *dev) {
  bench *b = setup(world, dev);
  const g3_region r = {.tp = world, .sequence = true};
  const int first = world->rank * PART * WIDTH;
  for (int dtype = G3_F32; dtype <= G3_BF16; dtype++) {
    const g3_tensor whole = g3_tensor_2d(b->whole, (g3_dtype)dtype, ROWS, WIDTH);
    const g3_tensor part = g3_tensor_2d(b->part, (g3_dtype)dtype, PART, WIDTH);
    for (int i = 0; i < PART * WIDTH; i++)
      put(part, i, held(0, first + i));
    EXPECT_OK(g3_region_enter(&r, b->s, whole, part));
    EXPECT_OK(dev->ops->sync(b->s));
    for (int i = 0; i < ROWS * WIDTH; i++)
      EXPECT(get(whole, i) == held(0, i));
    for (int i = 0; i < ROWS * WIDTH; i++)
      put(whole, i, held(world->rank, i));
    EXPECT_OK(g3_region_leave(&r, b->s, part, whole));
    EXPECT_OK(dev->ops->sync(b->s));
    for (int i = 0; i < PART * WIDTH; i++)
      EXPECT(get(part, i) == total(first + i));
  }
  teardown(world, b);
}

static void one_rank_moves_nothing(g3_comm *world, g3_device *dev) {
  bench *b = setup(world, dev);
  g3_comm *alone;
  EXPECT_OK(world->ops->split(world, world->rank, 0, "tp", &alone));
  const g3_tensor x = g3_tensor_2d(b->whole, G3_F32, ROWS, WIDTH);
  for (int sequence = 0; sequence < 2; sequence++) {
    const g3_region r = {.tp = alone, .sequence = sequence};
    put(x, 3, 5);
    EXPECT_OK(g3_region_enter(&r, b->s, x, x));
    EXPECT_OK(g3_region_leave(&r, b->s, x, x));
    EXPECT(get(x, 3) == 5);
  }
  g3_comm_destroy(alone);
  teardown(world, b);
}

int main(void) {
  static const ranks_test tests[] = {
      {"hidden_states_whole", hidden_states_whole},
      {"hidden_states_cut", hidden_states_cut},
      {"one_rank_moves_nothing", one_rank_moves_nothing},
  };
  return ranks_main(RANKS, tests, sizeof tests / sizeof *tests);
}
