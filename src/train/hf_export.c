/* gpt3d ckpt export --format hf */
#include "ckpt/files.h"
#include "ckpt/safetensors.h"
#include "model/hf.h"
#include "train/hf.h"
#include "train/state.h"
#include "util/array.h"
#include "util/log.h"
#include "util/text.h"
#include <stdlib.h>
#include <string.h>

/* An export on its way. */
typedef struct {
  g3_ckpt_index *index;
  g3_settings *settings;
  const g3_model_config *model; /* of the settings */
  g3_param *param; /* [nparams] */
  g3_param_place *place;
  int nparams;
  g3_st_tensor *tensor; /* [nparams] */
  g3_ckpt_item *item; /* [nparams]; local: one memory for all, one after the other */
  g3_device *dev;
  g3_stream *stream;
  float *ours, *theirs; /* of the device: one tensor each */
  g3_tensor stage;
} export;

static g3_status find_checkpoint(const char *ckpt, g3_ckpt_index **out) {
  char path[G3_CKPT_PATH];
  G3_TRY(g3_ckpt_latest(ckpt, path, sizeof path));
  if (!path[0]) return G3_FAIL(G3_EIO, "there is no checkpoint in %s", ckpt);
  return g3_ckpt_index_read(path, out);
}

static g3_status check_out(const char *out) {
  static const char *const names[] = {"config.json", "model.safetensors",
                                      "model.safetensors.index.json"};
  char path[G3_CKPT_PATH];
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    G3_TRY(g3_ckpt_path(path, "%s/%s", out, names[i]));
    if (g3_ckpt_is(path, false))
      return G3_FAIL(G3_EINVAL, "--out %s has %s already; give another folder", out, names[i]);
  }
  return G3_OK;
}

static g3_status alloc(const export *ex, int64_t count, float **out) {
  void *p;
  G3_TRY(ex->dev->ops->alloc(ex->dev, (size_t)count * sizeof(float), &p));
  *out = p;
  return G3_OK;
}

/* What is written and where it comes from. */
static g3_status plan(export *ex) {
  const g3_gpt_part whole = {
      .nlayers = (int)ex->model->layers, .first = true, .last = true, .tp = 1};
  G3_TRY(g3_gpt_params(ex->model, &whole, &ex->param, &ex->place, &ex->nparams));
  G3_TRY(G3_NEW_ARRAY(ex->nparams, &ex->tensor));
  G3_TRY(G3_NEW_ARRAY(ex->nparams, &ex->item));
  for (int i = 0; i < ex->nparams; i++) {
    g3_ckpt_item *item = &ex->item[i];
    g3_st_tensor *t = &ex->tensor[i];
    bool transposed;
    g3_hf_name(ex->place[i], true, t->name);
    t->ndim = g3_hf_shape(ex->model, ex->place[i].row, t->dim, &transposed);
    snprintf(item->name, sizeof item->name, "model/%s", ex->param[i].name);
    item->slice = ex->param[i].slice;
    g3_state_prefer_master(ex->index, item);
  }
  return G3_OK;
}

static g3_status take_memory(export *ex) {
  const size_t bytes = g3_ckpt_stage_bytes(ex->item, ex->nparams);
  int64_t largest = 0;
  void *stage;
  for (int i = 0; i < ex->nparams; i++) {
    const int64_t n = g3_slice_count(&ex->item[i].slice);
    if (n > largest) largest = n;
  }
  G3_TRY(g3_device_open("cpu", 1, &ex->dev));
  G3_TRY(ex->dev->ops->stream_create(ex->dev, true, g3_tensor_none(), &ex->stream));
  G3_TRY(alloc(ex, largest, &ex->ours));
  G3_TRY(alloc(ex, largest, &ex->theirs));
  G3_TRY(ex->dev->ops->alloc(ex->dev, bytes, &stage));
  ex->stage = g3_tensor_1d(stage, G3_U8, (int64_t)bytes);
  for (int i = 0; i < ex->nparams; i++)
    ex->item[i].local = g3_tensor_1d(ex->ours, G3_F32, g3_slice_count(&ex->item[i].slice));
  return G3_OK;
}

static g3_status write_one(const export *ex, int i, g3_st_writer *w) {
  const g3_ckpt_item *item = &ex->item[i];
  const int64_t n = g3_slice_count(&item->slice);
  int64_t dim[2];
  bool transposed;
  g3_hf_shape(ex->model, ex->place[i].row, dim, &transposed);
  G3_TRY(g3_ckpt_load(ex->index, ex->stream, item, 1, NULL, ex->stage, NULL));
  if (transposed) g3_hf_transpose(ex->theirs, ex->ours, dim[1], dim[0]);
  return g3_st_writer_put(w, transposed ? ex->theirs : ex->ours, n);
}

static g3_status write_weights(const export *ex, const char *path) {
  g3_st_writer w;
  G3_TRY(g3_st_writer_begin(path, ex->tensor, ex->nparams, &w));
  for (int i = 0; i < ex->nparams; i++) {
    const g3_status st = write_one(ex, i, &w);
    if (st == G3_OK) continue;
    g3_st_writer_drop(&w);
    return st;
  }
  return g3_st_writer_end(&w);
}

/* The weights last: a folder with model.safetensors has all. */
static g3_status write_all(const export *ex, const char *out) {
  char path[G3_CKPT_PATH], config[2048];
  G3_TRY(g3_hf_config_write(ex->model, config, sizeof config));
  G3_TRY(g3_ckpt_path(path, "%s/model.safetensors", out));
  G3_TRY(g3_ckpt_make_dirs(out));
  G3_TRY(g3_ckpt_put_text(out, "config.json", config));
  const g3_status st = write_weights(ex, path);
  if (st == G3_OK) return G3_OK;
  G3_TRY(g3_ckpt_path(path, "%s/config.json", out));
  (void)remove(path);
  return st;
}

static g3_status run(export *ex, const char *ckpt, const char *out) {
  g3_number_text count;
  G3_TRY(check_out(out));
  G3_TRY(find_checkpoint(ckpt, &ex->index));
  G3_TRY(g3_settings_load(0, NULL, &ex->settings));
  G3_TRY(g3_state_take(ex->settings, ex->index, false));
  G3_TRY(g3_config_check(ex->settings));
  ex->model = &ex->settings->value.model;
  G3_TRY(plan(ex));
  G3_TRY(take_memory(ex));
  G3_TRY(write_all(ex, out));
  G3_INFO("exported %s parameters in %d tensors of %s to %s/model.safetensors, F32",
          g3_text_commas(g3_gpt_count(ex->model), count), ex->nparams, ex->index->path, out);
  return G3_OK;
}

g3_status g3_hf_export(const char *ckpt, const char *out) {
  export ex = {.index = NULL};
  const g3_status st = run(&ex, ckpt, out);
  if (ex.dev) {
    if (ex.stage.data) ex.dev->ops->release(ex.dev, ex.stage.data);
    if (ex.theirs) ex.dev->ops->release(ex.dev, ex.theirs);
    if (ex.ours) ex.dev->ops->release(ex.dev, ex.ours);
    if (ex.stream) ex.dev->ops->stream_destroy(ex.stream);
    g3_device_close(ex.dev);
  }
  free(ex.item);
  free(ex.tensor);
  free(ex.place);
  free(ex.param);
  g3_settings_free(ex.settings);
  g3_ckpt_index_free(ex.index);
  return st;
}
