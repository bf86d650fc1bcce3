/* Two tiny random GPT-2 of transformers (tests/golden/hf_tiny, made by tools/hf_fixture.py),
 * imported: logits and loss are those that transformers computed; exported, the weights are those
 * that were imported. */
#include "ckpt/safetensors.h"
#include "model/internal.h"
#include "train/hf.h"
#include "train/state.h"
#include "train/step.h"
#include "unit/util/cm.h"
#include "util/array.h"
#include "util/log.h"
#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GOLDEN G3_TEST_SOURCE "/tests/golden/hf_tiny/"

enum { WINDOWS = 2, SEQ = 12, VOCAB = 61, LOGITS = WINDOWS * SEQ * VOCAB };

static void ok(g3_status st) {
  if (st != G3_OK) fail_msg("%s [%s]", g3_last_error(), g3_last_trace());
}

static int enter(void **state) {
  char *name = strdup("/tmp/gpt3d-hf-XXXXXX");
  *state = name;
  g3_log_setup(0, G3_LOG_WARN);
  return name && mkdtemp(name) && chdir(name) == 0 ? 0 : -1;
}

static int leave(void **state) {
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", (char *)*state);
  const int rc = chdir("/") != 0 || system(command) != 0;
  free(*state);
  return rc;
}

static void read_set(const char *which, const char *name, hid_t type, void *out, int64_t count) {
  char path[64];
  snprintf(path, sizeof path, "%s/%s", which, name);
  const hid_t file = H5Fopen(GOLDEN "expected.h5", H5F_ACC_RDONLY, H5P_DEFAULT);
  const hid_t set = H5Dopen2(file, path, H5P_DEFAULT), space = H5Dget_space(set);
  assert_int_equal(H5Sget_simple_extent_npoints(space), count);
  assert_true(H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, out) >= 0);
  H5Sclose(space);
  H5Dclose(set);
  H5Fclose(file);
}

/* The logits of the file's first windows, which evaluation leaves in the head's buffer. */
static void check_logits(g3_job *job, const char *which) {
  const g3_gpt *g = g3_gpt_stage(job->rank->gpt)->impl;
  int32_t *tokens = job->rank->tokens.data;
  float *want, difference;
  double d = 0.0, ref = 0.0;
  ok(G3_NEW_ARRAY(LOGITS, &want));
  read_set(which, "logits", H5T_NATIVE_FLOAT, want, LOGITS);
  for (int i = 0; i < WINDOWS; i++)
    ok(g3_sample_file(job->tokens, &job->split, i, tokens + i * (SEQ + 1)));
  g3_gpt_batch(job->rank->gpt, tokens, 0, false);
  ok(g3_runtime_run(job->rank->eval, NULL, NULL, NULL));
  assert_int_equal(g->chunk, WINDOWS * SEQ);
  for (int64_t i = 0; i < LOGITS; i++) {
    difference = ((float *)g->logits.data)[i / VOCAB * g->v + i % VOCAB] - want[i];
    d += (double)difference * difference;
    ref += (double)want[i] * want[i];
  }
  print_message("%s logits: %.2e\n", which, sqrt(d / ref));
  assert_true(sqrt(d / ref) <= 1e-5);
  free(want);
}

static void check_model(const char *which, const char *ckpt) {
  char resume[64];
  snprintf(resume, sizeof resume, "%s", ckpt);
  char *args[] = {"--resume", resume,           "--data", GOLDEN "tokens", "--micro-batch",
                  "2",        "--global-batch", "2",      "--threads",     "1"};
  g3_settings *settings;
  g3_comm *self;
  g3_start start;
  g3_job job;
  double loss, want;
  ok(g3_settings_load((int)(sizeof args / sizeof args[0]), args, &settings));
  ok(g3_comm_self(&self));
  ok(g3_start_find_weights(settings, self, &start));
  ok(g3_config_world(settings, 1));
  ok(g3_config_check(settings));
  assert_int_equal(settings->value.model.tied, strcmp(which, "tied") == 0);
  ok(g3_job_open_file(settings, self, &job));
  ok(g3_start_load(&job, &start));
  check_logits(&job, which);
  ok(g3_evaluate_file(&job, &loss));
  read_set(which, "loss", H5T_NATIVE_DOUBLE, &want, 1);
  print_message("%s loss: %.2e\n", which, fabs(loss / want - 1.0));
  assert_true(fabs(loss / want - 1.0) <= 1e-6);
  g3_job_close(&job);
  g3_start_free(&start);
  g3_comm_destroy(self);
  g3_settings_free(settings);
}

/* Both folders hold the same tensors, shapes and values. */
static void check_same(const char *one, const char *two) {
  g3_safetensors *a, *b;
  float *x, *y;
  ok(g3_safetensors_open(one, &a));
  ok(g3_safetensors_open(two, &b));
  assert_int_equal(g3_safetensors_count(a), g3_safetensors_count(b));
  for (int i = 0; i < g3_safetensors_count(a); i++) {
    const g3_st_tensor *t = g3_safetensors_at(a, i), *u = g3_safetensors_at(b, i);
    assert_string_equal(t->name, u->name);
    assert_int_equal(t->ndim, u->ndim);
    assert_memory_equal(t->dim, u->dim, sizeof t->dim);
    assert_int_equal(u->dtype, G3_ST_F32);
    ok(G3_NEW_ARRAY(t->count, &x));
    ok(G3_NEW_ARRAY(t->count, &y));
    ok(g3_safetensors_read(a, t, x));
    ok(g3_safetensors_read(b, u, y));
    assert_memory_equal(x, y, (size_t)t->count * sizeof *x);
    free(x);
    free(y);
  }
  g3_safetensors_close(a);
  g3_safetensors_close(b);
}

static void check(const char *which, const char *source) {
  char out[64], back[64];
  snprintf(out, sizeof out, "%s/made/on/the/way", which);
  snprintf(back, sizeof back, "%s-back", which);
  ok(g3_hf_import(source, out));
  check_model(which, out);
  ok(g3_hf_export(out, back));
  check_same(source, back);
  assert_int_equal(g3_hf_export(out, back), G3_EINVAL);
  assert_non_null(strstr(g3_last_error(), "has config.json already"));
  assert_int_equal(g3_hf_import(back, out), G3_EINVAL);
  assert_non_null(strstr(g3_last_error(), "checkpoints already"));
}

static void tied(void **state) {
  (void)state;
  check("tied", GOLDEN "tied");
}

/* BF16, in two shards with an index. */
static void untied(void **state) {
  (void)state;
  check("untied", GOLDEN "untied");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(tied), cmocka_unit_test(untied)};
  return cmocka_run_group_tests(tests, enter, leave);
}
