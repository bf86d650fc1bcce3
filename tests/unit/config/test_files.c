/* Every file of configs/: loads, passes the checks, fits the cluster that its source names. */
#include "unit/config/load.h"
#include <dirent.h>

static const struct {
  const char *name;
  int64_t layers, heads, width, seq, vocab, tp, pp, batch;
  int64_t ranks; /* of the source, or a number that must work */
} files[] = {
    {"tiny", 4, 4, 128, 128, 256, 1, 1, 32, 16},
    {"gpt2-124m", 12, 12, 768, 1024, 50257, 1, 1, 512, 8},
    {"gpt2-350m", 24, 16, 1024, 1024, 50257, 1, 1, 512, 8},
    {"gpt2-1.5b", 48, 25, 1600, 1024, 50257, 1, 1, 512, 8},
    {"gpt3-6.7b", 32, 32, 4096, 2048, 50257, 4, 1, 1024, 64},
    {"gpt3-175b", 96, 96, 12288, 2048, 50257, 8, 16, 1536, 2048},
    {"megatron-1.7b", 24, 24, 2304, 2048, 51200, 1, 1, 512, 32},
    {"megatron-3.6b", 30, 32, 3072, 2048, 51200, 2, 1, 512, 64},
    {"megatron-7.5b", 36, 32, 4096, 2048, 51200, 4, 1, 512, 128},
    {"megatron-18.4b", 40, 48, 6144, 2048, 51200, 8, 1, 1024, 256},
    {"megatron-39.1b", 48, 64, 8192, 2048, 51200, 8, 2, 1536, 512},
    {"megatron-76.1b", 60, 80, 10240, 2048, 51200, 8, 4, 1792, 1024},
    {"megatron-145.6b", 80, 96, 12288, 2048, 51200, 8, 8, 2304, 1536},
    {"megatron-310.1b", 96, 128, 16384, 2048, 51200, 8, 16, 2160, 1920},
    {"megatron-529.6b", 105, 128, 20480, 2048, 51200, 8, 35, 2520, 2520},
    {"megatron-1008b", 128, 160, 25600, 2048, 51200, 8, 64, 3072, 3072},
};
enum { FILES = sizeof files / sizeof *files };

/* The folder beside tests/, wherever the source lies. */
static void folder(char *out, size_t size) {
  static const char here[] = "tests/unit/config/test_files.c";
  const size_t n = strlen(__FILE__);
  assert_true(n >= sizeof here - 1);
  snprintf(out, size, "%.*sconfigs", (int)(n - (sizeof here - 1)), __FILE__);
}

static char *text_of(const char *path) {
  static char text[1 << 16];
  FILE *f = fopen(path, "r");
  assert_non_null(f);
  text[fread(text, 1, sizeof text - 1, f)] = '\0';
  fclose(f);
  return text;
}

/* 12345678 -> "12,345,678 parameters", as the comment at each file's head says it. */
static void parameters_text(int64_t layers, int64_t h, int64_t seq, int64_t vocab, char *out,
                            size_t size) {
  const int64_t n = (vocab + seq + 2) * h + layers * (12 * h * h + 13 * h);
  char digits[32];
  const int len = snprintf(digits, sizeof digits, "%lld", (long long)n);
  size_t at = 0;
  for (int i = 0; i < len; i++) {
    if (i && (len - i) % 3 == 0) out[at++] = ',';
    out[at++] = digits[i];
  }
  snprintf(out + at, size - at, " parameters");
}

static void test_each_file(void **unused) {
  (void)unused;
  for (int i = 0; i < FILES; i++) {
    char where[512], path[768], words[1024], parameters[64];
    folder(where, sizeof where);
    snprintf(path, sizeof path, "%s/%s.yaml", where, files[i].name);
    snprintf(words, sizeof words, "--config %s", path);
    assert_string_equal(error_in_world(words, files[i].ranks), "");
    g3_settings *s = load(words);
    assert_non_null(s);
    const g3_config *c = &s->value;
    assert_string_equal(c->run.name, files[i].name);
    assert_int_equal(c->model.layers, files[i].layers);
    assert_int_equal(c->model.heads, files[i].heads);
    assert_int_equal(c->model.width, files[i].width);
    assert_int_equal(c->model.ffn, 4 * files[i].width);
    assert_int_equal(c->model.seq, files[i].seq);
    assert_int_equal(c->model.vocab, files[i].vocab);
    assert_true(c->model.tied);
    assert_int_equal(c->parallel.tp, files[i].tp);
    assert_int_equal(c->parallel.pp, files[i].pp);
    assert_int_equal(c->parallel.dp, 0);
    assert_int_equal(c->train.global_batch, files[i].batch);
    assert_int_equal(c->model.layers % c->parallel.pp, 0);
    g3_settings_free(s);
    parameters_text(files[i].layers, files[i].width, files[i].seq, files[i].vocab, parameters,
                    sizeof parameters);
    assert_non_null(strstr(text_of(path), parameters));
  }
}

static void test_no_file_is_left_out(void **unused) {
  (void)unused;
  char where[512];
  folder(where, sizeof where);
  DIR *d = opendir(where);
  assert_non_null(d);
  int found = 0;
  for (const struct dirent *e; (e = readdir(d));) {
    const char *dot = strstr(e->d_name, ".yaml");
    if (!dot) continue;
    bool known = false;
    for (int i = 0; i < FILES && !known; i++)
      known = strncmp(files[i].name, e->d_name, (size_t)(dot - e->d_name)) == 0 &&
              strlen(files[i].name) == (size_t)(dot - e->d_name);
    if (!known) fail_msg("configs/%s has no row in this test", e->d_name);
    found++;
  }
  closedir(d);
  assert_int_equal(found, FILES);
}

/* The command of the design, beside a file that has other numbers. */
static void test_flags_over_a_file(void **unused) {
  (void)unused;
  char where[512], words[1024];
  folder(where, sizeof where);
  snprintf(words, sizeof words, "--dry-run --config %s/gpt3-175b.yaml --tp 8 --pp 8 --dp 16",
           where);
  assert_string_equal(error_in_world(words, 1024), "");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_each_file),
      cmocka_unit_test(test_no_file_is_left_out),
      cmocka_unit_test(test_flags_over_a_file),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
