/* Embedding and positions against plain loops; their backward adds rows in order. */
#include "ops/groups.h"
#include "ops/harness.h"
#include <stdlib.h>

typedef struct {
  int64_t m, n, rows; /* of the output, of the table */
  int64_t first; /* id of the table's first row; ids run from 0 to 2 rows + 3 */
} lookup;

static const lookup lookups[] = {
    {1, 1, 1, 0}, {7, 3, 5, 2}, {96, 257, 31, 17}, {301, 96, 40, 0}, {2000, 65, 7, 4},
};
enum { LOOKUPS = sizeof lookups / sizeof lookups[0] };

static void embedding_case(ops_bench *bench, g3_dtype t, lookup l) {
  ops_buf table = ops_make(t, l.rows, l.n, 2), ids = ops_vector(G3_I32, l.m);
  ops_buf dy = ops_make(t, l.m, l.n, 1), sum = ops_make(G3_F32, l.rows, l.n, 0);
  ops_buf y = ops_make(t, l.m, l.n, 0);
  ops_random(&table, 1, 0, 1);
  ops_random(&dy, 2, 0, 1);
  ops_random(&sum, 3, 0, 1);
  for (int64_t r = 0; r < l.m; r++)
    ops_put(&ids, 0, r, (double)(r * r % (2 * l.rows + 3)));
  double *want = ops_doubles(&y), *back = ops_doubles(&sum);
  for (int64_t i = 0; i < l.m * l.n; i++) {
    const int64_t row = (int64_t)ops_get(&ids, 0, i / l.n) - l.first;
    const bool held = row >= 0 && row < l.rows;
    want[i] = held ? ops_get(&table, row, i % l.n) : 0;
    if (held) back[row * l.n + i % l.n] += ops_get(&dy, i / l.n, i % l.n);
  }
  ops_buf got[OPS_STREAMS], grad[OPS_STREAMS];
  for (int i = 0; i < OPS_STREAMS; i++) {
    const g3_device_ops *ops = bench->dev[i]->ops;
    got[i] = ops_make(t, l.m, l.n, 0);
    grad[i] = ops_make(G3_F32, l.rows, l.n, 0);
    ops_poison(&got[i]);
    ops_copy(&grad[i], &sum);
    OPS_OK(ops->embedding(bench->stream[i], got[i].t, ids.t, table.t, l.first));
    OPS_OK(ops->embedding_bwd(bench->stream[i], grad[i].t, ids.t, dy.t, l.first));
  }
  ops_judge("embedding", t, &got[0], want, 1);
  ops_judge("embedding_bwd", t, &grad[0], back, (double)l.m);
  ops_same("embedding", &got[0], &got[1]);
  ops_same("embedding_bwd", &grad[0], &grad[1]);
  for (int i = 0; i < OPS_STREAMS; i++) {
    ops_free(&got[i]);
    ops_free(&grad[i]);
  }
  ops_buf *used[] = {&table, &ids, &dy, &sum, &y};
  for (size_t i = 0; i < sizeof used / sizeof used[0]; i++)
    ops_free(used[i]);
  free(want);
  free(back);
}

static void test_embedding(void **state) {
  for (int t = 0; t < OPS_TYPES; t++)
    for (int i = 0; i < LOOKUPS; i++)
      embedding_case(*state, ops_types[t], lookups[i]);
}

typedef struct {
  int64_t m, n, row, seq, rows;
} places;

static const places positions[] = {
    {1, 1, 0, 1, 1},       {6, 5, 3, 4, 9},    {64, 96, 0, 32, 32},
    {50, 257, 50, 25, 31}, {700, 70, 0, 7, 7},
};
enum { POSITIONS = sizeof positions / sizeof positions[0] };

static void position_case(ops_bench *bench, g3_dtype t, places p) {
  ops_buf x = ops_make(t, p.m, p.n, 1), table = ops_make(t, p.rows, p.n, 0);
  ops_buf sum = ops_make(G3_F32, p.rows, p.n, 3);
  ops_random(&x, 1, 0, 1);
  ops_random(&table, 2, 0, 1);
  ops_random(&sum, 3, 0, 1);
  double *want = ops_doubles(&x), *back = ops_doubles(&sum);
  for (int64_t i = 0; i < p.m * p.n; i++) {
    const int64_t row = (p.row + i / p.n) % p.seq;
    back[row * p.n + i % p.n] += want[i];
    want[i] += ops_get(&table, row, i % p.n);
  }
  ops_buf got[OPS_STREAMS], grad[OPS_STREAMS];
  for (int i = 0; i < OPS_STREAMS; i++) {
    const g3_device_ops *ops = bench->dev[i]->ops;
    got[i] = ops_make(t, p.m, p.n, 1);
    grad[i] = ops_make(G3_F32, p.rows, p.n, 3);
    ops_copy(&got[i], &x);
    ops_copy(&grad[i], &sum);
    OPS_OK(ops->position(bench->stream[i], got[i].t, table.t, p.row, p.seq));
    OPS_OK(ops->position_bwd(bench->stream[i], grad[i].t, x.t, p.row, p.seq));
  }
  ops_judge("position", t, &got[0], want, 1);
  ops_judge("position_bwd", t, &grad[0], back, (double)p.m);
  ops_same("position", &got[0], &got[1]);
  ops_same("position_bwd", &grad[0], &grad[1]);
  for (int i = 0; i < OPS_STREAMS; i++) {
    ops_free(&got[i]);
    ops_free(&grad[i]);
  }
  ops_free(&x);
  ops_free(&table);
  ops_free(&sum);
  free(want);
  free(back);
}

static void test_position(void **state) {
  for (int t = 0; t < OPS_TYPES; t++)
    for (int i = 0; i < POSITIONS; i++)
      position_case(*state, ops_types[t], positions[i]);
}

int ops_group_tables(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_embedding),
      cmocka_unit_test(test_position),
  };
  return cmocka_run_group_tests(tests, ops_setup, ops_teardown);
}
