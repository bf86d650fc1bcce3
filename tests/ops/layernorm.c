/* LayerNorm against float64, and its backward against differences of the float64 forward. */
#include "ops/groups.h"
#include "ops/harness.h"
#include <math.h>
#include <stdlib.h>

static const int64_t shapes[][2] = {{1, 1}, {1, 7}, {5, 6}, {3, 96}, {37, 31}, {70, 257}, {9, 768}};
enum {
  SHAPES = sizeof shapes / sizeof shapes[0],
  MOST = 48 /* elements that are differentiated */
};

static double mean_of(const double *x, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++)
    sum += x[i];
  return sum / (double)n;
}

static double rstd_of(const double *x, int64_t n) {
  const double m = mean_of(x, n);
  double sum = 0;
  for (int64_t i = 0; i < n; i++)
    sum += (x[i] - m) * (x[i] - m);
  return 1 / sqrt(sum / (double)n + 1e-5);
}

static double y_at(const double *x, const double *w, const double *b, int64_t n, int64_t i) {
  return (x[i] - mean_of(x, n)) * rstd_of(x, n) * w[i] + b[i];
}

static void forward_case(ops_bench *bench, g3_dtype t, int64_t m, int64_t n, int64_t gap) {
  ops_buf x = ops_make(t, m, n, gap), w = ops_vector(t, n), b = ops_vector(t, n);
  ops_random(&x, 1, 0.5, 1.5);
  ops_random(&w, 2, 1, 0.5);
  ops_random(&b, 3, 0, 0.5);
  double *wx = ops_doubles(&x), *ww = ops_doubles(&w), *wb = ops_doubles(&b);
  double *y = ops_doubles(&x), *mean = calloc((size_t)m, 8), *rstd = calloc((size_t)m, 8);
  assert_true(mean && rstd);
  for (int64_t r = 0; r < m; r++) {
    mean[r] = mean_of(wx + r * n, n);
    rstd[r] = rstd_of(wx + r * n, n);
    for (int64_t i = 0; i < n; i++)
      y[r * n + i] = (wx[r * n + i] - mean[r]) * rstd[r] * ww[i] + wb[i];
  }
  ops_buf got[OPS_STREAMS][3];
  for (int i = 0; i < OPS_STREAMS; i++) {
    got[i][0] = ops_make(t, m, n, gap);
    got[i][1] = ops_vector(G3_F32, m);
    got[i][2] = ops_vector(G3_F32, m);
    for (int k = 0; k < 3; k++)
      ops_poison(&got[i][k]);
    OPS_OK(bench->dev[i]->ops->layernorm(bench->stream[i], got[i][0].t, got[i][1].t, got[i][2].t,
                                         x.t, w.t, b.t));
  }
  ops_judge("layernorm y", t, &got[0][0], y, (double)n);
  ops_judge("layernorm mean", t, &got[0][1], mean, (double)n);
  ops_judge("layernorm rstd", t, &got[0][2], rstd, (double)n);
  for (int k = 0; k < 3; k++) {
    ops_same("layernorm", &got[0][k], &got[1][k]);
    ops_free(&got[0][k]);
    ops_free(&got[1][k]);
  }
  ops_free(&x);
  ops_free(&w);
  ops_free(&b);
  free(wx);
  free(ww);
  free(wb);
  free(y);
  free(mean);
  free(rstd);
}

static void test_forward(void **state) {
  for (int t = 0; t < OPS_TYPES; t++)
    for (int i = 0; i < SHAPES; i++)
      forward_case(*state, ops_types[t], shapes[i][0], shapes[i][1], i % 2);
}

/* The float64 problem whose loss, sum of dy * y, is differentiated. */
typedef struct {
  double *x, *w, *b, *dy;
  int64_t n, row, only; /* loss of one row, or of one column `only` over rows [0, row) */
} problem;

static double row_loss(const void *ctx) {
  const problem *p = ctx;
  const double *x = p->x + p->row * p->n;
  const double m = mean_of(x, p->n), r = rstd_of(x, p->n);
  double sum = 0;
  for (int64_t i = 0; i < p->n; i++)
    sum += p->dy[p->row * p->n + i] * ((x[i] - m) * r * p->w[i] + p->b[i]);
  return sum;
}

static double column_loss(const void *ctx) {
  const problem *p = ctx;
  double sum = 0;
  for (int64_t r = 0; r < p->row; r++)
    sum += p->dy[r * p->n + p->only] * y_at(p->x + r * p->n, p->w, p->b, p->n, p->only);
  return sum;
}

/* want = NaN but for a spread of elements, which are differentiated. */
static void slopes(problem p, int64_t m, double *dx, double *dw, double *db) {
  for (int64_t i = 0; i < m * p.n; i++)
    dx[i] = (double)NAN;
  for (int64_t i = 0; i < p.n; i++)
    dw[i] = db[i] = (double)NAN;
  for (int64_t i = 0; i < m * p.n; i += 1 + m * p.n / MOST) {
    p.row = i / p.n;
    dx[i] = ops_slope(row_loss, &p, &p.x[i]);
  }
  p.row = m;
  for (p.only = 0; p.only < p.n; p.only += 1 + p.n / MOST) {
    dw[p.only] = ops_slope(column_loss, &p, &p.w[p.only]);
    db[p.only] = ops_slope(column_loss, &p, &p.b[p.only]);
  }
}

enum { DX, DW, DB, OUTPUTS };

/* dres: 0 none, 1 apart, 2 dx itself. */
static void backward_case(ops_bench *bench, g3_dtype t, int64_t m, int64_t n, int dres) {
  ops_buf x = ops_make(t, m, n, 0), dy = ops_make(t, m, n, dres), res = ops_make(t, m, n, 0);
  ops_buf w = ops_vector(t, n), b = ops_vector(t, n), sum_w = ops_vector(G3_F32, n);
  ops_buf mean = ops_vector(G3_F32, m), rstd = ops_vector(G3_F32, m);
  ops_random(&x, 1, 0.5, 1.5);
  ops_random(&w, 2, 1, 0.5);
  ops_random(&b, 3, 0, 0.5);
  ops_random(&dy, 4, 0, 1);
  ops_random(&res, 5, 0, 1);
  ops_random(&sum_w, 6, 0, 1);
  problem p = {ops_doubles(&x), ops_doubles(&w), ops_doubles(&b), ops_doubles(&dy), n, 0, 0};
  for (int64_t r = 0; r < m; r++) {
    ops_put(&mean, 0, r, mean_of(p.x + r * n, n));
    ops_put(&rstd, 0, r, rstd_of(p.x + r * n, n));
  }
  double *want[OUTPUTS] = {ops_doubles(&x), ops_doubles(&w), ops_doubles(&w)};
  slopes(p, m, want[DX], want[DW], want[DB]);
  for (int64_t i = 0; dres && i < m * n; i++)
    want[DX][i] += ops_get(&res, i / n, i % n);
  for (int64_t i = 0; i < n; i++) {
    want[DW][i] += ops_get(&sum_w, 0, i);
    want[DB][i] += ops_get(&sum_w, 0, i);
  }
  ops_buf got[OPS_STREAMS][OUTPUTS];
  for (int i = 0; i < OPS_STREAMS; i++) {
    ops_buf *g = got[i];
    g[DX] = ops_make(t, m, n, 0);
    g[DW] = ops_vector(G3_F32, n);
    g[DB] = ops_vector(G3_F32, n);
    ops_poison(&g[DX]);
    if (dres == 2) ops_copy(&g[DX], &res);
    ops_copy(&g[DW], &sum_w);
    ops_copy(&g[DB], &sum_w);
    const g3_tensor residual[3] = {g3_tensor_none(), res.t, g[DX].t};
    OPS_OK(bench->dev[i]->ops->layernorm_bwd(bench->stream[i], g[DX].t, residual[dres], g[DW].t,
                                             g[DB].t, dy.t, x.t, w.t, mean.t, rstd.t));
  }
  static const char *const names[OUTPUTS] = {"layernorm_bwd dx", "layernorm_bwd dw",
                                             "layernorm_bwd db"};
  const double terms[OUTPUTS] = {(double)n, (double)m, (double)m};
  for (int k = 0; k < OUTPUTS; k++) {
    ops_judge(names[k], t, &got[0][k], want[k], terms[k]);
    ops_same(names[k], &got[0][k], &got[1][k]);
    ops_free(&got[0][k]);
    ops_free(&got[1][k]);
    free(want[k]);
  }
  ops_buf *used[] = {&x, &dy, &res, &w, &b, &sum_w, &mean, &rstd};
  for (size_t i = 0; i < sizeof used / sizeof used[0]; i++)
    ops_free(used[i]);
  free(p.x);
  free(p.w);
  free(p.b);
  free(p.dy);
}

static void test_backward(void **state) {
  for (int t = 0; t < OPS_TYPES; t++)
    for (int i = 1; i < SHAPES; i++) /* the gradient of a row of one element is nothing but noise */
      for (int dres = 0; dres < 3; dres++)
        backward_case(*state, ops_types[t], shapes[i][0], shapes[i][1], dres);
}

int ops_group_layernorm(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_forward),
      cmocka_unit_test(test_backward),
  };
  return cmocka_run_group_tests(tests, ops_setup, ops_teardown);
}
