/* Relations between values, and between them and the number of ranks. */
#include "unit/config/load.h"

/* The example that the design promises. */
static void test_message_names_file_and_line(void **unused) {
  (void)unused;
  static const char yaml[] = "model:\n  heads: 16\n  width: 512\n\n\nparallel:\n  tp: 3\n";
  write_file("configs/tiny.yaml", yaml, strlen(yaml));
  assert_string_equal(error_of("--config configs/tiny.yaml"),
                      "configs/tiny.yaml:7: parallel.tp = 3 does not divide model.heads = 16; use "
                      "1, 2, 4, 8 or 16");
  /* a flag that makes a sound file unsound is the one to name */
  assert_string_equal(error_of("--config configs/tiny.yaml --tp 2 --heads 32 --width 4096"), "");
  assert_string_equal(error_of("--config configs/tiny.yaml --heads 8 --width 64"),
                      "--heads: parallel.tp = 3 does not divide model.heads = 8; use 1, 2, 4 or 8");
}

static void test_long_places_keep_their_line(void **unused) {
  (void)unused;
  char path[400] = "configs/", words[500];
  for (int i = 0; i < 3; i++) {
    size_t n = strlen(path);
    memset(path + n, 'a' + i, 100);
    path[n + 100] = '\0';
    if (i == 2) break;
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path + n + 100, sizeof path - n - 100, "/");
  }
  write_file(path, "parallel:\n  tp: 3\n", strlen("parallel:\n  tp: 3\n"));
  snprintf(words, sizeof words, "--config %s", path);
  const char *error = error_of(words);
  assert_memory_equal(error, "...", 3);
  assert_int_equal(strstr(error, ":2: parallel.tp = 3") - error, 157);
}

static void test_bad_values(void **unused) {
  (void)unused;
  static const bad_case cases[] = {
      {"--dropout 1", "--dropout: model.dropout = 1 must be below 1"},
      {"--beta1 1", "--beta1: optim.beta1 = 1 must be below 1"},
      {"--beta2=1.0", "--beta2: optim.beta2 = 1 must be below 1"},
      {"--val-split 1", "--val-split: data.val_split = 1 must be below 1"},
      {"--heads 3", "--heads: model.heads = 3 does not divide model.width = 128; use 1, 2, 4, 8, "
                    "16, 32, 64 or 128"},
      {"--heads 100 --width 5040",
       "--heads: model.heads = 100 does not divide model.width = 5040; use 63, 70, 72, 80, 84, 90, "
       "105, 112, 120, 126, 140 or 144"},
      {"--heads 4 --width 97",
       "--heads: model.heads = 4 does not divide model.width = 97; use 1 or 97"},
      {"--heads 60000 --width 65538", "--heads: model.heads = 60000 does not divide model.width = "
                                      "65538; use 3641, 5958, 7282, "
                                      "10923, 21846 or 32769"},
      {"--tp 3", "--tp: parallel.tp = 3 does not divide model.heads = 4; use 1, 2 or 4"},
      {"--tp 4 --ffn 514", "--tp: parallel.tp = 4 does not divide model.ffn = 514; use 1 or 2"},
      {"--pp 5", "--pp: parallel.pp = 5 stages are more than model.layers = 4, and each needs a "
                 "layer; use at most 4"},
      {"--layers 65536 --pp 65536 --dp 32768",
       "--pp: parallel.tp 1 x parallel.pp 65536 x parallel.dp 32768 = 2147483648 ranks; MPI "
       "numbers at most 2147483647"},
      {"--tp 3 --sequence-parallel --heads 3 --width 96",
       "--sequence-parallel: parallel.sequence_parallel cuts train.micro_batch 2 x model.seq 128 = "
       "256 tokens into parallel.tp = 3 equal parts, which is not whole; make their product a "
       "multiple of 3"},
      {"--warmup 500", "--warmup: optim.warmup = 500 is more than train.steps = 400, so that "
                       "optim.lr would never be reached; use at most 400"},
      {"--steps 10 --warmup 11", "--warmup: optim.warmup = 11 is more than train.steps = 10, so "
                                 "that optim.lr would never be reached; use at most 10"},
      {"--decay-steps 19", "--decay-steps: optim.warmup = 20 is more than optim.decay_steps = 19, "
                           "so that optim.lr would never be reached; use at most 19"},
      {"--lr 1e-4 --min-lr 2e-4", "--min-lr: optim.min_lr = 0.0002 is more than optim.lr = "
                                  "0.0001; give a lower --min-lr"},
      {"--min-lr 1", "--min-lr: optim.min_lr = 1 is more than optim.lr = 0.002; give a lower "
                     "--min-lr"},
      {"--steps 1000000000000000",
       "--steps: train.steps 1000000000000000 x train.global_batch 32 are more samples than can be "
       "numbered, 281474976710655 (2^48 - 1); use at most 8796093022207 steps"},
      {"--steps 1000000000000000 --global-batch 2147483646",
       "--steps: train.steps 1000000000000000 x train.global_batch 2147483646 are more samples "
       "than can be numbered, 281474976710655 (2^48 - 1); use at most 131072 steps"},
      {"--steps 8000000000000 --seq 1048576",
       "--steps: train.steps 8000000000000 x train.global_batch 32 x model.seq 1048576 tokens do "
       "not fit in 64 bits; use at most 274877906943 steps"},
      {"--layers 65536 --width 1048576 --ffn 16777216",
       "--layers: the bytes of a model with model.layers 65536, model.width 1048576 and model.ffn "
       "16777216 do not fit in 64 bits; make one smaller"},
      {"--micro-batch 1073741824 --global-batch 1073741824 --seq 1048576 --steps 20 --width 4096",
       "--micro-batch: the bytes of activations with train.micro_batch 1073741824 x model.seq "
       "1048576 tokens do not fit in 64 bits; make one smaller"},
      {"--dtype fp16", "--dtype: train.dtype = fp16 needs run.device = cuda, found auto, which may "
                       "be the cpu; use --dtype bf16 or f32"},
      {"--device cpu --dtype=fp16", "--dtype: train.dtype = fp16 needs run.device = cuda, found "
                                    "cpu; use --dtype bf16 or f32"},
      {"--config configs/fp16.yaml --device cpu",
       "--device: train.dtype = fp16 needs run.device = cuda, found cpu; use --dtype bf16 or f32"},
  };
  write_file("configs/fp16.yaml", "train.dtype: fp16", strlen("train.dtype: fp16"));
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_string_equal(error_of(cases[i].words), cases[i].message);
}

static void test_edges_that_hold(void **unused) {
  (void)unused;
  static const char *const lines[] = {
      "",
      "--tp 4 --pp 4",
      "--dropout 0.999 --val-split 0 --beta1 0 --beta2 0.9999999",
      "--warmup 400",
      "--warmup 0 --steps 1",
      "--steps 5", /* a run shorter than the recipe's warm-up */
      "--decay-steps 20",
      "--lr 0 --min-lr 0",
      "--lr 2e-4",
      "--lr 1e-4", /* below the recipe's lower limit, which then is that */
      "--lr 0",
      "--steps 3000000000 --global-batch 1024 --seq 2048",
      "--steps 281474976710655 --global-batch 1 --micro-batch 1",
      "--tp 3 --heads 3 --width 96 --micro-batch 3 --global-batch 3 --sequence-parallel",
      "--seq 127 --micro-batch 2 --tp 2 --sequence-parallel",
      "--dtype fp16 --device cuda",
      "--heads 65535 --width 65535",
      "--layers 128 --heads 160 --width 25600 --tp 8 --pp 64 --seq 2048 --vocab 51200",
      "--vocab 2147483647",
      "--save-interval 0 --eval-interval 0 --log-interval 0",
  };
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
    assert_string_equal(error_of(lines[i]), "");
}

static void test_batch(void **unused) {
  (void)unused;
  static const bad_case cases[] = {
      {"--global-batch 31",
       "--global-batch: train.global_batch = 31 is not train.micro_batch 2 x a whole number of "
       "micro-batches: 31 / 2 = 15.5; use a global batch of 30 or 32"},
      {"--micro-batch 3", "--micro-batch: train.global_batch = 32 is not train.micro_batch 3 x a "
                          "whole number of micro-batches: 32 / 3 = 10.6667; use a global batch of "
                          "30 or 33"},
      {"--global-batch 30 --dp 4",
       "--global-batch: train.global_batch = 30 is not train.micro_batch 2 x parallel.dp 4 x a "
       "whole number of micro-batches: 30 / 8 = 3.75; use a global batch of 24 or 32"},
      {"--dp 32", "--dp: train.global_batch = 32 is not train.micro_batch 2 x parallel.dp 32 x a "
                  "whole number of micro-batches: 32 / 64 = 0.5; use a global batch of 64"},
      {"--dp 2147483647 --micro-batch 2147483647",
       "--micro-batch: train.global_batch = 32 is not train.micro_batch 2147483647 x parallel.dp "
       "2147483647 x a whole number of micro-batches: 32 / 4611686014132420609 = 6.93889e-18; use "
       "a global batch of 4611686014132420609"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_string_equal(error_of(cases[i].words), cases[i].message);
  /* once the world is known, the derived dp counts, too */
  assert_string_equal(
      error_in_world("--tp 2", 12),
      "built-in tiny.yaml:13: train.global_batch = 32 is not train.micro_batch 2 x parallel.dp 6 x "
      "a whole number of micro-batches: 32 / 12 = 2.66667; use a global batch of 24 or 36");
}

static void test_world(void **unused) {
  (void)unused;
  g3_settings *s = load("--tp 2 --pp 2");
  assert_non_null(s);
  assert_int_equal(g3_config_world(s, 16), G3_OK);
  assert_int_equal(s->value.parallel.dp, 4);
  assert_int_equal(origin_of(s, "parallel.dp")->kind, G3_FROM_DEFAULT);
  assert_string_equal(origin_of(s, "parallel.dp")->where, "16 ranks / (tp x pp)");
  assert_int_equal(g3_config_world(s, 16), G3_OK);
  assert_int_equal(g3_config_world(s, 8), G3_EINVAL);
  g3_settings_free(s);
  assert_string_equal(error_in_world("--tp 2 --pp 2 --dp 4", 16), "");
  assert_string_equal(error_in_world("", 1), "");
  static const struct {
    const char *words;
    int64_t world;
    const char *message;
  } cases[] = {
      {"--tp 2 --pp 4", 12,
       "--tp: the number of ranks, 12, is not parallel.tp 2 x parallel.pp 4 x a whole parallel.dp: "
       "12 / 8 = 1.5; "
       "start 8 or 16 ranks (mpirun -np), or change --tp or --pp"},
      {"--pp 2", 1,
       "--pp: the number of ranks, 1, is not parallel.tp 1 x parallel.pp 2 x a whole parallel.dp: "
       "1 / 2 = 0.5; "
       "start 2 ranks (mpirun -np), or change --tp or --pp"},
      {"--tp 2 --pp 2 --dp 4", 12,
       "--tp: parallel.tp 2 x parallel.pp 2 x parallel.dp 4 = 16 ranks, but 12 are running; start "
       "16 (mpirun -np 16), or change --tp, --pp or --dp"},
      {"--dp 4", 1,
       "--dp: parallel.tp 1 x parallel.pp 1 x parallel.dp 4 = 4 ranks, but 1 is running; start 4 "
       "(mpirun -np 4), or change --tp, --pp or --dp"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_string_equal(error_in_world(cases[i].words, cases[i].world), cases[i].message);
}

static void test_a_failed_world_changes_nothing(void **unused) {
  (void)unused;
  g3_settings *s = load("--tp 4");
  assert_non_null(s);
  assert_int_equal(g3_config_world(s, 6), G3_EINVAL);
  assert_int_equal(s->value.parallel.dp, 0);
  assert_string_equal(origin_of(s, "parallel.dp")->where, "default");
  g3_settings_free(s);
}

/* What sums along trees, and products in blocks, need. */
static void test_exact(void **unused) {
  (void)unused;
  static const bad_case cases[] = {
      {"--exact --exact-chunks 12", "--exact: with train.exact parallel.exact_chunks = 12 must be "
                                    "a power of two, since sums run "
                                    "along a binary tree; use 8 or 16"},
      {"--exact --global-batch 24",
       "--exact: with train.exact train.global_batch = 24 must be a power of two, since sums run "
       "along a binary tree; use 16 or 32"},
      {"--dp 3 --global-batch 32 --exact",
       "--global-batch: train.global_batch = 32 is not train.micro_batch 1 x parallel.dp 3 x a "
       "whole number "
       "of micro-batches: 32 / 3 = 10.6667; use a global batch of 30 or 33"},
      {"--exact --seq 100", "--exact: with train.exact parallel.exact_chunks = 8 must divide "
                            "model.seq = 100; use a power "
                            "of two that divides 4"},
      {"--exact --ffn 516", "--exact: with train.exact parallel.exact_chunks = 8 must divide "
                            "model.ffn = 516; use a power "
                            "of two that divides 4"},
      {"--tp 4 --exact --exact-chunks 2", "--exact: with train.exact parallel.tp = 4 must divide "
                                          "parallel.exact_chunks = 2; use 1 or 2"},
      {"--exact --device cuda",
       "--exact: train.exact is the cpu backend's alone, and run.device is "
       "cuda; use --device cpu, or leave --exact out"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_string_equal(error_of(cases[i].words), cases[i].message);
  assert_string_equal(error_of("--exact --tp 4 --dp 4 --sequence-parallel"), "");
  assert_string_equal(error_of("--exact=false --global-batch 24 --seq 100 --exact-chunks 12"), "");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_message_names_file_and_line),
      cmocka_unit_test(test_long_places_keep_their_line),
      cmocka_unit_test(test_bad_values),
      cmocka_unit_test(test_edges_that_hold),
      cmocka_unit_test(test_batch),
      cmocka_unit_test(test_world),
      cmocka_unit_test(test_a_failed_world_changes_nothing),
      cmocka_unit_test(test_exact),
  };
  return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
