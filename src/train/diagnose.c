#include "train/diagnose.h"
#include "train/step.h"
#include "util/log.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* The axes that have so many ranks, "tp or dp"; or micro-batches. */
static const char *axes_of_size(const g3_job *job, int64_t k, char out[96]) {
  const g3_grid *g = &job->mesh->grid;
  const struct {
    const char *name;
    int64_t count;
  } axes[] = {{"tp", g->size[G3_TP]},
              {"dp", g->size[G3_DP]},
              {"pp", g->size[G3_PP]},
              {"micro-batches", job->rank->micros}};
  int used = 0;
  for (size_t i = 0; i < sizeof axes / sizeof axes[0]; i++)
    if (axes[i].count == k)
      used += snprintf(out + used, 96 - (size_t)used, "%s%s", used ? " or " : "", axes[i].name);
  if (!used) snprintf(out, 96, "no axis of the layout");
  return out;
}

/* The whole number that x is near to, or 0. */
static int64_t whole_number(double x) {
  const double nearest = round(x);
  return nearest > 1.0 && fabs(x - nearest) < 0.02 * nearest ? (int64_t)nearest : 0;
}

/* The pipeline stage of a block's layer. */
static int stage_of(const g3_job *job, int layer) {
  int stage = 0;
  for (int end = job->rank->layers_of_stage[0]; layer >= end;)
    end += job->rank->layers_of_stage[++stage];
  return stage;
}

static bool no_gradient(const g3_finding *f) {
  return f->param && !f->good && f->reference > 0.0 && fabs(f->ratio) < 1e-6;
}

/* What one wrong gradient looks like by itself. */
static void explain(const g3_job *job, const g3_finding *f) {
  char axes[96];
  const char *name = f->param->name;
  const int64_t less = f->ratio > 0.0 ? whole_number(1.0 / f->ratio) : 0;
  const int64_t more = whole_number(f->ratio);
  const int layer = f->param->group - 1;
  if (no_gradient(f) && layer >= 0 && layer < job->config->model.layers)
    G3_INFO("  %s: no gradient at all: layer %d is not computed; axis pp, stage %d", name, layer,
            stage_of(job, layer));
  else if (f->tp_sum_fits)
    G3_INFO("  %s: the sum over tp is missing", name);
  else if (less)
    G3_INFO("  %s: 1/%lld of what it should be: a sum is missing over %s", name, (long long)less,
            axes_of_size(job, less, axes));
  else if (more)
    G3_INFO("  %s: %lld times what it should be: summed once too often over %s", name,
            (long long)more, axes_of_size(job, more, axes));
  else
    G3_INFO("  %s: %.4g times one rank's along it, %.1e of it across%s", name, f->ratio,
            f->difference / f->reference,
            f->agree ? "" : "; ranks that should hold the same numbers do not");
}

typedef struct {
  int bad, rows;
  bool only_ends; /* what is wrong is the tied embedding */
} tally;

static tally count_bad(const g3_job *layout, const g3_evidence *e) {
  tally t = {0, 0, layout->config->model.tied && layout->mesh->grid.size[G3_PP] > 1};
  for (int r = 0; r < G3_ROWS; r++) {
    if (!e->grad[r].param) continue;
    t.rows++;
    if (e->grad[r].good) continue;
    t.bad++;
    t.only_ends = t.only_ends && r == G3_ROW_WTE;
  }
  return t;
}

static void explain_norm(const g3_job *layout, const g3_evidence *e) {
  char axes[96];
  const double times = (e->norm * e->norm - e->cut_squares) / e->whole_squares;
  const int64_t k = whole_number(times);
  if (k)
    G3_INFO("  gradient norm: right gradients, but those that are whole on every rank of an axis "
            "count %lld times: %s",
            (long long)k, axes_of_size(layout, k, axes));
  else
    G3_INFO("  gradient norm: right gradients, wrongly counted");
}

/* Mean loss of the one-rank job with all parameters of a row multiplied by k. */
static double loss_with_row(g3_job *one, g3_row_id row, float k) {
  const g3_flat *flat = one->rank->flat;
  const char *dot = strrchr(g3_gpt_rows[row].name, '%');
  const char *suffix = dot ? dot + 2 : g3_gpt_rows[row].name;
  double loss = NAN;
  for (int pass = 0; pass < 2; pass++) {
    for (int i = 0; i < flat->nparams; i++) {
      const g3_param *p = &flat->param[i];
      const size_t length = strlen(p->name), tail = strlen(suffix);
      if (length < tail || strcmp(p->name + length - tail, suffix) != 0) continue;
      float *w = (float *)one->rank->params.data + p->offset;
      for (int64_t j = 0; j < p->count; j++)
        w[j] *= pass == 0 ? k : 1.0f / k;
    }
    if (pass == 0 && g3_step_backward(one) == G3_OK) {
      const double *sums = g3_optim_sums(one->rank->optim).data;
      loss = sums[G3_SUM_LOSS] / sums[G3_SUM_TOKENS];
    }
  }
  return loss;
}

/* Finds a row of parameters that counts as often as an axis has ranks: with it multiplied by that
 * number, one rank's loss becomes the layout's. Powers of two only, so that the weights come back
 * to the bit. */
static const char *find_repeated_row(const g3_job *layout, g3_job *one, const g3_evidence *e) {
  const int *size = layout->mesh->grid.size;
  const int64_t counts[] = {size[G3_TP], size[G3_DP], size[G3_PP]};
  char axes[96];
  if (one->rank->params.dtype != G3_F32) return NULL;
  for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
    const int64_t k = counts[i];
    if (k < 2 || (k & (k - 1)) != 0 || (i > 0 && k == counts[0])) continue;
    for (int r = 0; r < G3_ROWS; r++) {
      if (!e->grad[r].param) continue;
      const double loss = loss_with_row(one, (g3_row_id)r, (float)k);
      if (!(fabs(loss - e->loss) <= 0.02 * fabs(e->loss - e->one_loss))) continue;
      const char *name = e->grad[r].param->name;
      G3_INFO("  %s and its like in other layers: added %lld times: before a sum over %s", name,
              (long long)k, axes_of_size(layout, k, axes));
      return name;
    }
  }
  return NULL;
}

static bool padding_fits(const g3_job *layout, const g3_evidence *e) {
  const int tp = layout->mesh->grid.size[G3_TP];
  const int64_t vocab = layout->config->model.vocab;
  const int64_t padded = g3_vocab_part(vocab, tp, layout->rank->part.chunks) * tp;
  const double leak = log((double)padded / (double)vocab);
  return padded > vocab && fabs(e->loss - e->one_loss - leak) < 0.3 * leak;
}

/* What a wrong loss looks like; the parameter that it points to, or NULL. */
static const char *explain_loss(const g3_job *layout, g3_job *one, const g3_evidence *e) {
  if (!e->data_good) {
    G3_INFO("  data: ranks read other samples than one rank does; axis dp");
    return "embed.tokens.weight";
  }
  if (padding_fits(layout, e)) {
    G3_INFO("  %s: the loss is as if the vocabulary's padding counted; axis tp",
            layout->config->model.tied ? "embed.tokens.weight" : "head.weight");
    return layout->config->model.tied ? "embed.tokens.weight" : "head.weight";
  }
  return find_repeated_row(layout, one, e);
}

/* The gradient that says most: one that is missing altogether, or one whose sum is known to be
 * missing. */
static const g3_finding *telling(const g3_evidence *e) {
  const g3_finding *first = NULL;
  for (int r = 0; r < G3_ROWS; r++)
    if (no_gradient(&e->grad[r])) return &e->grad[r];
  for (int r = 0; r < G3_ROWS; r++)
    if (e->grad[r].param && !e->grad[r].good && e->grad[r].tp_sum_fits) return &e->grad[r];
  for (int r = 0; r < G3_ROWS && !first; r++)
    if (e->grad[r].param && !e->grad[r].good) first = &e->grad[r];
  return first;
}

const char *g3_diagnose(const g3_job *layout, g3_job *one, const g3_evidence *e) {
  const tally t = count_bad(layout, e);
  const g3_finding *f = telling(e);
  const char *guilty = f ? f->param->name : NULL;
  if (t.bad == 0 && !e->norm_good) explain_norm(layout, e);
  if (f && no_gradient(f)) {
    explain(layout, f);
    return guilty;
  }
  if (!e->loss_good) {
    const char *found = explain_loss(layout, one, e);
    if (found) return found;
  } else if (t.bad == t.rows) {
    G3_INFO("  every gradient is wrong and the loss is right: a micro-batch with another scale; "
            "axis micro-batches");
    return guilty;
  } else if (t.bad == 1 && t.only_ends) {
    G3_INFO("  %s: the tied embedding alone: summed over first and last stage (pp) in the wrong "
            "order with dp",
            guilty);
    return guilty;
  }
  for (int r = 0; r < G3_ROWS; r++)
    if (e->grad[r].param && !e->grad[r].good) explain(layout, &e->grad[r]);
  return guilty;
}
