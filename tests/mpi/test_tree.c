/* ranks: 8 */
/* Sums over ranks along a tree: the bits of one rank that has all the terms, however they are
 * shared out. */
#include "mpi/ranks.h"
#include "parallel/tree.h"

enum { RANKS = 8, LEAVES = 16, N = 8 * 37 };

/* Numbers whose sums round. */
static float leaf(int which, int i) {
  const uint32_t x = (uint32_t)which * 2654435761u ^ ((uint32_t)i * 40503u + 977u);
  return (float)(x % 1000003u) / (float)(1 + x % 97u) - 700.0f;
}

/* The sum of leaves [first, first + count). */
static float tree(int first, int count, int i) {
  if (count == 1) return leaf(first, i);
  return tree(first, count / 2, i) + tree(first + count / 2, count / 2, i);
}

/* Each of `size` ranks has LEAVES / size neighbouring leaves, already summed. */
static void sum_over(g3_comm *world, g3_device *dev, int size) {
  g3_comm *c;
  g3_stream *s;
  float t[N], scratch[N / 2];
  const g3_tensor all = g3_tensor_1d(t, G3_F32, N), half = g3_tensor_1d(scratch, G3_F32, N / 2);
  EXPECT_OK(world->ops->split(world, world->rank / size, world->rank, "some", &c));
  EXPECT_EQUAL(c->size, size);
  for (int side = 0; side < 2; side++) {
    EXPECT_OK(dev->ops->stream_create(dev, side != 0, g3_tensor_none(), &s));
    for (int scatter = 0; scatter < 2; scatter++) {
      for (int i = 0; i < N; i++)
        t[i] = tree(LEAVES / size * c->rank, LEAVES / size, i);
      EXPECT_OK((scatter ? g3_tree_reduce_scatter : g3_tree_all_reduce)(c, s, all, half));
      EXPECT_OK(dev->ops->sync(s));
      const int each = N / size, from = scatter ? c->rank * each : 0;
      for (int i = from; i < (scatter ? from + each : N); i++) {
        const float want = tree(0, LEAVES, i);
        EXPECT(memcmp(&t[i], &want, sizeof want) == 0);
      }
    }
    dev->ops->stream_destroy(s);
  }
  g3_comm_destroy(c);
}

static void test_sizes(g3_comm *world, g3_device *dev) {
  for (int size = 1; size <= RANKS; size *= 2)
    sum_over(world, dev, size);
}

/* These numbers are such that another order would be seen. */
static void test_order_shows(g3_comm *world, g3_device *dev) {
  (void)world;
  (void)dev;
  int differ = 0;
  for (int i = 0; i < N; i++) {
    float sum = 0;
    for (int k = 0; k < LEAVES; k++)
      sum += leaf(k, i);
    differ += sum != tree(0, LEAVES, i);
  }
  EXPECT(differ > N / 4);
}

int main(void) {
  static const ranks_test tests[] = {{"sizes", test_sizes}, {"order shows", test_order_shows}};
  return ranks_main(RANKS, tests, 2);
}
