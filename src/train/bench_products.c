/* The rate that products reach by themselves: what a step is measured against. */
#include "train/bench.h"
#include "util/clock.h"
#include <time.h>

/* All shapes together are repeated for about so many seconds, each so often at least. */
static const double long_enough = 0.3;
enum { FEWEST = 4 };

/* Operands of one shape. */
typedef struct {
  g3_tensor a, b, c, bias;
} operands;

/* Blocks of columns when block > 0. */
static g3_status take(g3_device *dev, g3_dtype dtype, int64_t rows, int64_t columns, int64_t block,
                      g3_tensor *out) {
  void *p;
  const size_t bytes = (size_t)(rows * columns) * g3_dtype_bytes(dtype);
  G3_TRY(dev->ops->alloc(dev, bytes, &p));
  *out = block > 0 ? g3_tensor_3d(p, dtype, columns / block, rows, block)
                   : g3_tensor_2d(p, dtype, rows, columns);
  return G3_OK;
}

static void release(g3_device *dev, operands *o) {
  const g3_tensor all[] = {o->a, o->b, o->c, o->bias};
  for (int i = 0; i < 4; i++)
    if (all[i].data) dev->ops->release(dev, all[i].data);
}

/* Small numbers, so that sums stay finite however often they are added to. */
static g3_status make(g3_stream *s, const g3_timed_product *p, operands *o) {
  g3_device *dev = s->dev;
  const int64_t m = p->cut == G3_CUT_M ? p->block : 0, n = p->cut == G3_CUT_N ? p->block : 0,
                k = p->cut == G3_CUT_K ? p->block : 0;
  G3_TRY(p->trans_a ? take(dev, p->input, p->k, p->m, m, &o->a)
                    : take(dev, p->input, p->m, p->k, k, &o->a));
  G3_TRY(p->trans_b ? take(dev, p->input, p->n, p->k, k, &o->b)
                    : take(dev, p->input, p->k, p->n, n, &o->b));
  G3_TRY(take(dev, p->output, p->m, k ? p->k / k * p->n : p->n, k ? p->n : n, &o->c));
  if (p->bias) {
    G3_TRY(take(dev, p->input, 1, p->n, 0, &o->bias));
    o->bias = g3_tensor_as_1d(o->bias);
  }
  G3_TRY(dev->ops->fill(s, o->a, 1e-3f));
  return dev->ops->fill(s, o->b, 1e-3f);
}

/* Ranks without a core of their own take turns, so that a clock on the wall shows the others, too:
 * there the time that this process spent on a core counts. */
static double seconds(const g3_job *job) {
  const g3_thread_plan *t = &job->threads;
  if (t->threads * t->local_ranks <= t->cores) return g3_now();
  struct timespec spent;
  if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent) != 0) return g3_now();
  return ((double)spent.tv_sec + 1e-9 * (double)spent.tv_nsec) / t->threads;
}

/* Seconds of the fastest of as many as `most` seconds hold. */
static g3_status repeat(const g3_job *job, const g3_timed_product *p, const operands *o,
                        double most, double *out) {
  g3_stream *s = job->compute;
  const g3_device_ops *ops = s->dev->ops;
  const g3_gemm_spec spec = {.trans_a = p->trans_a,
                             .trans_b = p->trans_b,
                             .accumulate = p->accumulate,
                             .bias = o->bias,
                             .cut = p->cut,
                             .block = p->block};
  const double first = seconds(job);
  double best = 0, now = first;
  for (int times = 0; times < FEWEST || now - first < most; times++) {
    const double begin = seconds(job);
    G3_TRY(ops->gemm(s, o->c, o->a, o->b, &spec));
    G3_TRY(ops->sync(s));
    now = seconds(job);
    if (times == 0 || now - begin < best) best = now - begin;
  }
  *out = best;
  return G3_OK;
}

g3_status g3_bench_products(const g3_job *job, const g3_timed_product *in_step, int n,
                            g3_bench_product *out) {
  for (int i = 0; i < n; i++) {
    operands o = {g3_tensor_none(), g3_tensor_none(), g3_tensor_none(), g3_tensor_none()};
    out[i].in_step = in_step[i];
    g3_status st = make(job->compute, &in_step[i], &o);
    if (st == G3_OK) st = repeat(job, &in_step[i], &o, long_enough / n, &out[i].alone);
    release(job->dev, &o);
    if (st != G3_OK) return g3_trace_up(st, __FILE__, __LINE__);
  }
  return G3_OK;
}
