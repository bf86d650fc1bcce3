/* gpt3d ckpt import --format hf */
#include "ckpt/fields.h"
#include "ckpt/files.h"
#include "ckpt/safetensors.h"
#include "model/hf.h"
#include "train/hf.h"
#include "train/state.h"
#include "util/array.h"
#include "util/log.h"
#include "util/text.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* An import on its way. */
typedef struct {
  const char *dir, *out;
  g3_hf_config hf;
  g3_settings *settings;
  g3_safetensors *files;
  g3_param *param; /* [nparams], the head last: of the model as if it were untied */
  g3_param_place *place;
  int nparams;
  const g3_st_tensor **source; /* [nparams]; NULL: a tied head that is not there */
  bool *used; /* [tensors of the files] */
  int masks, differences;
  g3_device *dev;
  float *weights, *scratch; /* of the device: all weights; the largest matrix */
  g3_ckpt_item *item; /* [nparams] */
} import;

static const char *source_dims(const import *im, int i, char out[G3_ST_SHAPE_TEXT]) {
  int64_t dim[2];
  bool transposed;
  const int ndim = g3_hf_shape(&im->hf.model, im->place[i].row, dim, &transposed);
  return g3_st_shape_text(ndim, dim, out);
}

/* The shape goes through the option table, so that its limits hold and its errors name the file. */
static g3_status take_shape(import *im, const char *path) {
  const g3_model_config *m = &im->hf.model;
  const struct {
    const char *key;
    int64_t value;
  } keys[] = {{"model.layers", m->layers}, {"model.heads", m->heads}, {"model.width", m->width},
              {"model.ffn", m->ffn},       {"model.seq", m->seq},     {"model.vocab", m->vocab}};
  g3_origin from = {.kind = G3_FROM_COMMAND};
  snprintf(from.where, sizeof from.where, "%.150s", path);
  G3_TRY(g3_settings_load(0, NULL, &im->settings));
  for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
    g3_number_text text;
    snprintf(text, sizeof text, "%" PRId64, keys[i].value);
    G3_TRY(g3_settings_set(im->settings, keys[i].key, text, from));
  }
  return g3_config_check(im->settings);
}

static g3_status read_config(import *im) {
  char path[G3_CKPT_PATH];
  g3_field *fields;
  int n;
  G3_TRY(g3_ckpt_path(path, "%s/config.json", im->dir));
  G3_TRY(g3_fields_read(path, &fields, &n));
  const g3_status st = g3_hf_config_read(fields, n, path, &im->hf);
  free(fields);
  G3_TRY(st);
  return take_shape(im, path);
}

static void differ(import *im, const char *name, const char *what) {
  printf("%-44s %s\n", name, what);
  im->differences++;
}

/* The tensor of parameter i, by either name. */
static void find_source(import *im, int i) {
  char name[2][G3_HF_NAME], want[G3_ST_SHAPE_TEXT], got[G3_ST_SHAPE_TEXT];
  char what[2 * G3_ST_SHAPE_TEXT + 64];
  int at[2];
  for (int k = 0; k < 2; k++) {
    g3_hf_name(im->place[i], k == 0, name[k]);
    at[k] = g3_safetensors_find(im->files, name[k]);
    if (at[k] >= 0) im->used[at[k]] = true;
  }
  const bool optional = im->place[i].row == G3_ROW_HEAD && im->hf.tied != G3_HF_UNTIED;
  source_dims(im, i, want);
  if (at[0] < 0 && at[1] < 0) {
    snprintf(what, sizeof what, "missing; wanted %s", want);
    if (!optional) differ(im, name[0], what);
    return;
  }
  if (at[0] >= 0 && at[1] >= 0 && at[0] != at[1])
    differ(im, name[1], "given twice: the other has \"transformer.\" before it");
  const g3_st_tensor *t = g3_safetensors_at(im->files, at[0] >= 0 ? at[0] : at[1]);
  if (strcmp(g3_st_shape_text(t->ndim, t->dim, got), want) != 0) {
    snprintf(what, sizeof what, "is %s; wanted %s", got, want);
    differ(im, t->name, what);
  }
  if (t->dtype > G3_ST_BF16) {
    snprintf(what, sizeof what, "is of %s; F32, F16 and BF16 are read", g3_st_dtype_name(t->dtype));
    differ(im, t->name, what);
  }
  im->source[i] = t;
}

/* All differences at once, before anything is read or written. */
static g3_status compare(import *im) {
  const g3_gpt_part whole = {
      .nlayers = (int)im->hf.model.layers, .first = true, .last = true, .tp = 1};
  g3_model_config untied = im->hf.model;
  const int tensors = g3_safetensors_count(im->files);
  untied.tied = false;
  G3_TRY(g3_gpt_params(&untied, &whole, &im->param, &im->place, &im->nparams));
  G3_TRY(G3_NEW_ARRAY(im->nparams, &im->source));
  G3_TRY(G3_NEW_ARRAY(tensors, &im->used));
  for (int i = 0; i < im->nparams; i++)
    find_source(im, i);
  for (int i = 0; i < tensors; i++) {
    const g3_st_tensor *t = g3_safetensors_at(im->files, i);
    if (im->used[i]) continue;
    if (g3_hf_is_mask(&im->hf.model, t->name))
      im->masks++;
    else
      differ(im, t->name, "is no tensor of this model");
  }
  fflush(stdout);
  if (im->differences == 0) return G3_OK;
  return G3_FAIL(
      G3_EFORMAT,
      "%s differs from the GPT-2 of its config.json in %d place%s, listed above; nothing "
      "was written",
      im->dir, im->differences, im->differences == 1 ? "" : "s");
}

static g3_status check_finite(const import *im, const g3_st_tensor *t, const float *x) {
  for (int64_t i = 0; i < t->count; i++)
    if (!isfinite(x[i]))
      return G3_FAIL(G3_ENUMERIC, "%s: element %" PRId64 " of %s is %g; nothing was written",
                     g3_safetensors_path(im->files, t), i, t->name, (double)x[i]);
  return G3_OK;
}

static g3_status read_one(const import *im, int i, float *out) {
  const g3_st_tensor *t = im->source[i];
  int64_t dim[2];
  bool transposed;
  g3_hf_shape(&im->hf.model, im->place[i].row, dim, &transposed);
  float *to = transposed ? im->scratch : out;
  G3_TRY(g3_safetensors_read(im->files, t, to));
  G3_TRY(check_finite(im, t, to));
  if (transposed) g3_hf_transpose(out, to, dim[0], dim[1]);
  return G3_OK;
}

static g3_status alloc(const import *im, int64_t count, float **out) {
  void *p;
  G3_TRY(im->dev->ops->alloc(im->dev, (size_t)count * sizeof(float), &p));
  *out = p;
  return G3_OK;
}

static g3_status read_weights(import *im) {
  int64_t total = 0, largest = 0;
  for (int i = 0; i < im->nparams; i++) {
    const int64_t n = g3_slice_count(&im->param[i].slice);
    total += im->source[i] ? n : 0;
    if (n > largest) largest = n;
  }
  G3_TRY(g3_device_open("cpu", 1, &im->dev));
  G3_TRY(alloc(im, total, &im->weights));
  G3_TRY(alloc(im, largest, &im->scratch));
  G3_TRY(G3_NEW_ARRAY(im->nparams, &im->item));
  float *at = im->weights;
  for (int i = 0; i < im->nparams; i++) {
    g3_ckpt_item *item = &im->item[i];
    const int64_t n = g3_slice_count(&im->param[i].slice);
    snprintf(item->name, sizeof item->name, "model/%s", im->param[i].name);
    item->slice = im->param[i].slice;
    if (!im->source[i]) continue;
    item->local = g3_tensor_1d(at, G3_F32, n);
    G3_TRY(read_one(im, i, at));
    at += n;
  }
  return G3_OK;
}

/* A head that is there and equal to the embedding is that. Leaves the items that are saved. */
static g3_status decide_tied(import *im) {
  const int head = im->nparams - 1;
  const g3_ckpt_item *h = &im->item[head], *e = &im->item[0];
  G3_CHECK(im->place[head].row == G3_ROW_HEAD && im->place[0].row == G3_ROW_WTE,
           "the embedding is not first, or the head not last");
  const bool equal =
      !h->local.data || memcmp(h->local.data, e->local.data, g3_tensor_bytes(e->local)) == 0;
  if (im->hf.tied == G3_HF_TIED && !equal)
    return G3_FAIL(G3_EUNSUPPORTED,
                   "%s/config.json: tie_word_embeddings is true, but lm_head.weight differs from "
                   "wte.weight: set it to false, or leave one of them out; nothing was written",
                   im->dir);
  const bool tied = im->hf.tied == G3_HF_TIED || (im->hf.tied == G3_HF_TIED_UNSAID && equal);
  if (tied) im->nparams--;
  const g3_origin from = {.kind = G3_FROM_COMMAND, .where = "lm_head.weight"};
  return g3_settings_set(im->settings, "model.tied", tied ? "true" : "false", from);
}

static g3_status save_on(import *im, g3_comm *self, g3_stream *s) {
  g3_ckpt_attr attrs[G3_STATE_ATTRS];
  const g3_ckpt_meta meta = {.attr = attrs, .nattrs = G3_STATE_ATTRS};
  const size_t bytes = g3_ckpt_stage_bytes(im->item, im->nparams);
  void *stage;
  g3_state_describe(&im->settings->value, attrs);
  G3_TRY(im->dev->ops->alloc(im->dev, bytes, &stage));
  const g3_status st = g3_ckpt_save(self, s, im->out, &meta, im->item, im->nparams, 0,
                                    g3_tensor_1d(stage, G3_U8, (int64_t)bytes));
  im->dev->ops->release(im->dev, stage);
  return st;
}

static g3_status save(import *im) {
  g3_comm *self = NULL;
  g3_stream *s = NULL;
  g3_status st;
  G3_TRY_TO(done, st, g3_comm_self(&self));
  G3_TRY_TO(done, st, im->dev->ops->stream_create(im->dev, true, g3_tensor_none(), &s));
  G3_TRY_TO(done, st, save_on(im, self, s));
done:
  if (s) im->dev->ops->stream_destroy(s);
  g3_comm_destroy(self);
  return st;
}

/* Step 0 beside other steps would be taken for the begin of their run. */
static g3_status check_out(const char *out) {
  char path[G3_CKPT_PATH];
  int64_t *steps, n;
  G3_TRY(g3_ckpt_path(path, "%s/checkpoints", out));
  bool taken = g3_ckpt_is(path, true);
  G3_TRY(g3_ckpt_path(path, "%s/index.h5", out));
  taken = taken || g3_ckpt_is(path, false);
  G3_TRY(g3_ckpt_steps(out, "", &steps, &n));
  free(steps);
  if (!taken && n == 0) return G3_OK;
  return G3_FAIL(G3_EINVAL, "--out %s has a run or checkpoints already; give another folder", out);
}

static void say_dropout(const import *im) {
  const double *d = im->hf.dropout;
  if (d[0] == d[1] && d[1] == d[2] && d[0] > 0.0)
    G3_INFO("its dropout of %g is a setting of training: give --dropout %g", d[0], d[0]);
  else if (d[0] != d[1] || d[1] != d[2])
    G3_INFO("embd_pdrop %g, attn_pdrop %g and resid_pdrop %g are settings of training, where one "
            "--dropout is for all three",
            d[0], d[1], d[2]);
}

static void say(const import *im) {
  const g3_model_config *m = &im->settings->value.model;
  g3_number_text count;
  if (im->masks)
    G3_INFO("ignored %d buffers attn.bias and attn.masked_bias: causal masks, which gpt3d has "
            "built in",
            im->masks);
  if (im->hf.tied == G3_HF_TIED_UNSAID && !m->tied)
    G3_INFO("lm_head.weight differs from wte.weight: the model is untied");
  say_dropout(im);
  G3_INFO("imported %s parameters in %d tensors into %s/step-00000000: %lld layers, %lld heads, "
          "width %lld, feed-forward %lld, sequence %lld, vocabulary %lld, %s",
          g3_text_commas(g3_gpt_count(m), count), im->nparams, im->out, (long long)m->layers,
          (long long)m->heads, (long long)m->width, (long long)m->ffn, (long long)m->seq,
          (long long)m->vocab, m->tied ? "tied" : "untied");
}

static g3_status run(import *im) {
  G3_TRY(check_out(im->out));
  G3_TRY(read_config(im));
  G3_TRY(g3_safetensors_open(im->dir, &im->files));
  G3_TRY(compare(im));
  G3_TRY(read_weights(im));
  G3_TRY(decide_tied(im));
  G3_TRY(save(im));
  say(im);
  return G3_OK;
}

g3_status g3_hf_import(const char *dir, const char *out) {
import im = {.dir = dir, .out = out };
  const g3_status st = run(&im);
  if (im.dev) {
    if (im.weights) im.dev->ops->release(im.dev, im.weights);
    if (im.scratch) im.dev->ops->release(im.dev, im.scratch);
    g3_device_close(im.dev);
  }
  free(im.item);
  free(im.used);
  free(im.source);
  free(im.place);
  free(im.param);
  g3_safetensors_close(im.files);
  g3_settings_free(im.settings);
  return st;
}
