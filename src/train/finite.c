#include "train/finite.h"
#include <math.h>

/* An entry of the step's sums that is free between steps. */
static g3_tensor scratch(const g3_job *job) {
  return g3_tensor_part(g3_optim_sums(job->rank->optim), 0, G3_SUM_SQUARES, 1);
}

static g3_status read_scratch(g3_job *job, bool *out) {
  double sum;
  G3_TRY(job->dev->ops->copy(job->compute, g3_tensor_1d(&sum, G3_F64, 1), scratch(job)));
  G3_TRY(job->dev->ops->sync(job->compute));
  *out = isfinite(sum);
  return G3_OK;
}

g3_status g3_finite(g3_job *job, g3_tensor t, bool *out) {
  const g3_device_ops *ops = job->dev->ops;
  G3_TRY(ops->fill(job->compute, scratch(job), 0.0f));
  G3_TRY(ops->sum_squares(job->compute, scratch(job), t));
  return read_scratch(job, out);
}

g3_status g3_finite_row(g3_job *job, g3_tensor t, int64_t *out) {
  int64_t first = 0, end = t.dim[0];
  bool finite;
  G3_TRY(g3_finite(job, t, &finite));
  while (!finite && end - first > 1) {
    const int64_t middle = first + (end - first) / 2;
    bool half;
    G3_TRY(g3_finite(job, g3_tensor_part(t, 0, first, middle - first), &half));
    *(half ? &first : &end) = middle;
  }
  *out = finite ? -1 : first;
  return G3_OK;
}

g3_status g3_finite_items(g3_job *job, const g3_ckpt_item *items, int n, const g3_ckpt_item **out) {
  const g3_device_ops *ops = job->dev->ops;
  const g3_ckpt_item *bad = NULL;
  bool finite;
  G3_TRY(ops->fill(job->compute, scratch(job), 0.0f));
  for (int i = 0; i < n; i++)
    G3_TRY(ops->sum_squares(job->compute, scratch(job), items[i].local));
  G3_TRY(read_scratch(job, &finite));
  for (int i = 0; i < n && !finite && !bad; i++) {
    bool this_one;
    G3_TRY(g3_finite(job, items[i].local, &this_one));
    if (!this_one) bad = &items[i];
  }
  *out = bad;
  return G3_OK;
}
