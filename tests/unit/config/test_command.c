/* The command line, single values, and which source wins. */
#include "unit/config/load.h"

static void test_spellings(void **unused) {
  (void)unused;
  static const char *const lines[] = {
      "--tp 2 --micro-batch 4 --lr 1e-3 --overwrite --data a/b.bin --dtype bf16",
      "--tp=2 --micro-batch=4 --lr=0.001 --overwrite=true --data=a/b.bin --dtype=bf16",
      "--parallel.tp=2 --train.micro_batch=4 --optim.lr=1e-3 --run.overwrite=true "
      "--data.path=a/b.bin --train.dtype=bf16",
      "--parallel.tp 2 --train.micro_batch 4 --optim.lr .001 --run.overwrite true --data.path "
      "a/b.bin --train.dtype bf16",
      "--tensor-model-parallel-size 2 --micro-batch-size +4 --lr 10e-4 --overwrite --data-path "
      "a/b.bin --dtype bf16",
  };
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    g3_settings *s = load(lines[i]);
    assert_non_null(s);
    assert_int_equal(s->value.parallel.tp, 2);
    assert_int_equal(s->value.train.micro_batch, 4);
    assert_true(s->value.optim.lr == 1e-3);
    assert_true(s->value.run.overwrite);
    assert_string_equal(s->value.data.path, "a/b.bin");
    assert_int_equal(s->value.train.dtype, G3_TYPE_BF16);
    g3_settings_free(s);
  }
}

static void test_bools(void **unused) {
  (void)unused;
  static const struct {
    const char *words;
    bool tied, overwrite;
  } cases[] = {
      {"", true, false},
      {"--tied false", false, false},
      {"--tied=false --overwrite", false, true},
      {"--overwrite --tied false", false, true},
      {"--overwrite true --tied true", true, true},
      {"--overwrite --overwrite false", true, false},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    g3_settings *s = load(cases[i].words);
    assert_non_null(s);
    assert_int_equal(s->value.model.tied, cases[i].tied);
    assert_int_equal(s->value.run.overwrite, cases[i].overwrite);
    g3_settings_free(s);
  }
}

/* An empty word and a word that begins with "--" need their '='. */
static void test_odd_texts(void **unused) {
  (void)unused;
  char *argv[] = {"--data", "", "--out=--odd", "--init", "-x", "--name=a = b"};
  g3_settings *s = NULL;
  assert_int_equal(g3_settings_load(6, argv, &s), G3_OK);
  assert_string_equal(s->value.data.path, "");
  assert_string_equal(s->value.run.out, "--odd");
  assert_string_equal(s->value.run.init, "-x");
  assert_string_equal(s->value.run.name, "a = b");
  g3_settings_free(s);
}

static void test_limits(void **unused) {
  (void)unused;
  g3_settings *s = load("--seed 18446744073709551615 --steps 1000000000000000 --seq 1048576 "
                        "--heads 65535 --dropout 1 --eps 1e-30 --zero 0 --bad-steps 0");
  assert_non_null(s);
  assert_true(s->value.train.seed == UINT64_MAX);
  assert_true(s->value.train.steps == 1000000000000000);
  assert_int_equal(s->value.model.seq, 1048576);
  assert_int_equal(s->value.model.heads, 65535);
  g3_settings_free(s);
}

static void test_messages(void **unused) {
  (void)unused;
  static const bad_case cases[] = {
      {"--tpp 2", "unknown flag --tpp; did you mean --tp?"},
      {"--parallel.tpp=2", "unknown flag --parallel.tpp; did you mean --parallel.tp?"},
      {"--xyzzy", "unknown flag --xyzzy; gpt3d --help lists all"},
      {"-q", "unknown flag -q; gpt3d --help lists all"},
      {"--", "unknown flag --; gpt3d --help lists all"},
      {"tp 2", "stray word \"tp\"; values follow their flag, as in --tp 2"},
      {"--tp 2 4", "stray word \"4\"; values follow their flag, as in --tp 2"},
      {"--overwrite yes", "stray word \"yes\"; values follow their flag, as in --tp 2"},
      {"-", "stray word \"-\"; values follow their flag, as in --tp 2"},
      {"--tp", "--tp: wants a whole number from 1 to 65536; found the end of the command line"},
      {"--num-layers --tp 2",
       "--num-layers: wants a whole number from 1 to 65536; found the flag --tp (a text that "
       "begins so goes as --num-layers=TEXT)"},
      {"--tp 4x", "--tp: parallel.tp wants a whole number from 1 to 65536; found \"4x\""},
      {"--tp=", "--tp: parallel.tp wants a whole number from 1 to 65536; found \"\""},
      {"--tp 0x4", "--tp: parallel.tp wants a whole number from 1 to 65536; found \"0x4\""},
      {"--tp 4.0", "--tp: parallel.tp wants a whole number from 1 to 65536; found \"4.0\""},
      {"--tp 1e3", "--tp: parallel.tp wants a whole number from 1 to 65536; found \"1e3\""},
      {"--tp -1", "--tp: parallel.tp wants a whole number from 1 to 65536; found \"-1\""},
      {"--tp 0", "--tp: parallel.tp wants a whole number from 1 to 65536; found \"0\""},
      {"--tp +-2", "--tp: parallel.tp wants a whole number from 1 to 65536; found \"+-2\""},
      {"--tensor-model-parallel-size 65537",
       "--tensor-model-parallel-size: parallel.tp wants a whole number from 1 to 65536; found "
       "\"65537\""},
      {"--steps 99999999999999999999",
       "--steps: train.steps wants a whole number from 1 to 1000000000000000; found "
       "\"99999999999999999999\", which does not fit in 64 bits"},
      {"--steps -99999999999999999999",
       "--steps: train.steps wants a whole number from 1 to 1000000000000000; found "
       "\"-99999999999999999999\", which does not fit in 64 bits"},
      {"--seq 1048577",
       "--seq: model.seq wants a whole number from 1 to 1048576; found \"1048577\""},
      {"--heads 65536",
       "--heads: model.heads wants a whole number from 1 to 65535; found \"65536\""},
      {"--seed -1",
       "--seed: train.seed wants a whole number from 0 to 18446744073709551615; found \"-1\""},
      {"--seed 18446744073709551616",
       "--seed: train.seed wants a whole number from 0 to 18446744073709551615; found "
       "\"18446744073709551616\", which does not fit in 64 bits"},
      {"--lr nan", "--lr: optim.lr wants a number from 0 to 1000; found \"nan\""},
      {"--lr inf", "--lr: optim.lr wants a number from 0 to 1000; found \"inf\""},
      {"--lr 0x1p3", "--lr: optim.lr wants a number from 0 to 1000; found \"0x1p3\""},
      {"--lr 1e-3x", "--lr: optim.lr wants a number from 0 to 1000; found \"1e-3x\""},
      {"--lr 1e", "--lr: optim.lr wants a number from 0 to 1000; found \"1e\""},
      {"--lr=", "--lr: optim.lr wants a number from 0 to 1000; found \"\""},
      {"--lr 1e999",
       "--lr: optim.lr wants a number from 0 to 1000; found \"1e999\", which does not fit in a "
       "double"},
      {"--lr 1e-999",
       "--lr: optim.lr wants a number from 0 to 1000; found \"1e-999\", which does not fit in a "
       "double"},
      {"--lr -0.1", "--lr: optim.lr wants a number from 0 to 1000; found \"-0.1\""},
      {"--eps 0", "--eps: optim.eps wants a number from 1e-30 to 1; found \"0\""},
      {"--dropout 1.5", "--dropout: model.dropout wants a number from 0 to 1; found \"1.5\""},
      {"--tied=yes", "--tied: model.tied wants true or false; found \"yes\""},
      {"--tied=", "--tied: model.tied wants true or false; found \"\""},
      {"--dtype f16", "--dtype: train.dtype wants f32, bf16 or fp16; found \"f16\""},
      {"--dtype double", "--dtype: train.dtype wants f32, bf16 or fp16; found \"double\""},
      {"--dtype=", "--dtype: train.dtype wants f32, bf16 or fp16; found \"\""},
      {"--lr-decay-style WSD", "--lr-decay-style: optim.lr_schedule wants cosine, linear, constant "
                               "or wsd; found \"WSD\""},
      {"--device gpu", "--device: run.device wants auto, cpu or cuda; found \"gpu\""},
      {"--dry-run=maybe", "--dry-run: --dry-run wants true or false; found \"maybe\""},
      {"--data a\tb", "--data: data.path has a control character or bytes that are not UTF-8 at "
                      "byte 1, which config.yaml could not hold; use another name"},
      {"--data ab\xFF", "--data: data.path has a control character or bytes that are not UTF-8 at "
                        "byte 2, which config.yaml could not hold; use another name"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    g3_settings *s = load(cases[i].words);
    assert_null(s);
    assert_string_equal(g3_last_error(), cases[i].message);
  }
}

static void test_long_words(void **unused) {
  (void)unused;
  char words[2000];
  memset(words, 'x', sizeof words - 1);
  words[sizeof words - 1] = '\0';
  memcpy(words, "--data ", 7);
  words[7 + 1023] = '\0';
  g3_settings *s = load(words);
  assert_non_null(s);
  assert_int_equal(strlen(s->value.data.path), 1023);
  g3_settings_free(s);
  words[7 + 1023] = 'x';
  words[7 + 1024] = '\0';
  assert_null(load(words));
  assert_string_equal(g3_last_error(),
                      "--data: data.path is 1024 bytes long; at most 1023 are taken");
  memset(words, '-', 200);
  words[200] = '\0';
  assert_null(load(words));
  assert_non_null(strstr(g3_last_error(), "unknown flag -----"));
  /* a name of the longest length leaves no room for runs/ before it */
  memset(words, 'x', 1100);
  memcpy(words, "--name ", 7);
  words[7 + 1023] = '\0';
  assert_null(load(words));
  assert_string_equal(g3_last_error(), "run.name is too long for run.out = runs/NAME; give --out");
}

static void test_help_and_version_read_no_file(void **unused) {
  (void)unused;
  static const char *const lines[] = {"--help --config none.yaml", "--config none.yaml -h",
                                      "--version --config none.yaml"};
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    g3_settings *s = load(lines[i]);
    assert_non_null(s);
    assert_true(s->value.command.help || s->value.command.version);
    g3_settings_free(s);
  }
}

static void test_what_wins(void **unused) {
  (void)unused;
  static const char yaml[] = "model:\n  layers: 6\n  width: 256\noptim:\n  lr: 1e-3\n";
  write_file("configs/mine.yaml", yaml, strlen(yaml));
  g3_settings *s = load("--layers 7 --config none.yaml --layers 8 --config configs/mine.yaml");
  assert_non_null(s);
  const g3_config *c = &s->value;
  assert_int_equal(c->model.layers, 8);
  assert_int_equal(origin_of(s, "model.layers")->kind, G3_FROM_COMMAND);
  assert_string_equal(origin_of(s, "model.layers")->where, "--layers");
  assert_int_equal(c->model.width, 256);
  assert_int_equal(origin_of(s, "model.width")->kind, G3_FROM_FILE);
  assert_string_equal(origin_of(s, "model.width")->where, "configs/mine.yaml:3");
  assert_true(c->optim.lr == 1e-3);
  /* the built-in tiny.yaml plays no part when there is a file */
  assert_int_equal(origin_of(s, "optim.min_lr")->kind, G3_FROM_DEFAULT);
  assert_true(c->optim.min_lr == 0);
  assert_int_equal(c->model.ffn, 1024);
  assert_string_equal(origin_of(s, "model.ffn")->where, "4 x model.width");
  assert_string_equal(c->run.name, "mine");
  assert_string_equal(c->run.out, "runs/mine");
  g3_settings_free(s);
}

/* A rate from a stronger source than its lower limit brings that down; one that is above it does
 * not. */
static void test_lower_limit_follows_the_rate(void **unused) {
  (void)unused;
  g3_settings *s = load("--lr 1e-4");
  assert_non_null(s);
  assert_true(s->value.optim.min_lr == 1e-4);
  assert_int_equal(origin_of(s, "optim.min_lr")->kind, G3_FROM_EMBEDDED);
  assert_string_equal(origin_of(s, "optim.min_lr")->where, "optim.lr");
  g3_settings_free(s);
  s = load("--lr 1");
  assert_non_null(s);
  assert_true(s->value.optim.min_lr == 2e-4);
  g3_settings_free(s);
}

static void test_tiny_is_built_in(void **unused) {
  (void)unused;
  g3_settings *s = load("");
  assert_non_null(s);
  const g3_config *c = &s->value;
  assert_int_equal(c->model.layers, 4);
  assert_int_equal(c->model.heads, 4);
  assert_int_equal(c->model.width, 128);
  assert_int_equal(c->model.ffn, 512);
  assert_int_equal(c->model.seq, 128);
  assert_int_equal(c->model.vocab, 256);
  assert_true(c->model.tied && c->model.dropout == 0);
  assert_int_equal(c->train.global_batch, 32);
  assert_int_equal(c->train.micro_batch, 2);
  assert_int_equal(c->train.steps, 400);
  assert_int_equal(c->train.dtype, G3_TYPE_F32);
  assert_true(c->optim.lr == 2e-3 && c->optim.beta1 == 0.9 && c->optim.beta2 == 0.95);
  assert_true(c->optim.weight_decay == 0.1 && c->optim.clip == 1 && c->optim.eps == 1e-8);
  assert_int_equal(c->optim.warmup, 20);
  assert_int_equal(c->optim.schedule, G3_LR_COSINE);
  assert_string_equal(c->data.path, "data/kjv.txt");
  assert_string_equal(c->run.name, "tiny");
  assert_string_equal(c->run.out, "runs/tiny");
  assert_string_equal(c->run.resume, "auto");
  assert_string_equal(c->parallel.schedule, "1f1b");
  assert_int_equal(origin_of(s, "model.layers")->kind, G3_FROM_EMBEDDED);
  assert_non_null(strstr(origin_of(s, "model.layers")->where, "built-in tiny.yaml:"));
  g3_settings_free(s);
}

static void test_names_from_files(void **unused) {
  (void)unused;
  static const struct {
    const char *path, *name;
  } cases[] = {{"configs/a.b-1.yaml", "a.b-1"},
               {"x.yml", "x"},
               {"plain", "plain"},
               {"q.json", "q.json"},
               {".yaml", ".yaml"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char words[64];
    write_file(cases[i].path, "", 0);
    snprintf(words, sizeof words, "--config %s", cases[i].path);
    g3_settings *s = load(words);
    assert_non_null(s);
    assert_string_equal(s->value.run.name, cases[i].name);
    g3_settings_free(s);
  }
  g3_settings *s = load("--config x.yml --name other --ffn 0");
  assert_non_null(s);
  assert_string_equal(s->value.run.out, "runs/other");
  assert_int_equal(s->value.model.ffn, 512);
  assert_int_equal(origin_of(s, "model.ffn")->kind, G3_FROM_COMMAND);
  g3_settings_free(s);
}

static g3_origin origin(g3_origin_kind kind, const char *where) {
  g3_origin o = {.kind = kind};
  snprintf(o.where, sizeof o.where, "%s", where);
  return o;
}

/* What train/ does with a checkpoint: it wins over defaults, loses against what the user said. */
static void test_checkpoint_values(void **unused) {
  (void)unused;
  g3_settings *s = load("--heads 2");
  assert_non_null(s);
  const g3_origin from = origin(G3_FROM_CHECKPOINT, "runs/a/step-7");
  assert_int_equal(g3_settings_set(s, "model.layers", "12", from), G3_OK);
  assert_int_equal(g3_settings_set(s, "model.heads", "8", from), G3_OK);
  assert_int_equal(s->value.model.layers, 12);
  assert_string_equal(origin_of(s, "model.layers")->where, "runs/a/step-7");
  assert_int_equal(s->value.model.heads, 2);
  assert_string_equal(origin_of(s, "model.heads")->where, "--heads");
  /* a value that loses must still be one, and a failure changes nothing */
  assert_int_equal(g3_settings_set(s, "model.heads", "many", from), G3_EINVAL);
  assert_string_equal(g3_last_error(), "runs/a/step-7: model.heads wants a whole number from 1 to "
                                       "65535; found \"many\"");
  assert_int_equal(g3_settings_set(s, "model.layers", "0", from), G3_EINVAL);
  assert_int_equal(s->value.model.layers, 12);
  assert_int_equal(g3_settings_set(s, "model.layer", "1", from), G3_EINVAL);
  assert_string_equal(g3_last_error(),
                      "runs/a/step-7: unknown key model.layer; did you mean model.layers?");
  assert_int_equal(g3_settings_set(s, "what.ever_it_is", "1", from), G3_EINVAL);
  assert_string_equal(g3_last_error(), "runs/a/step-7: unknown key what.ever_it_is; gpt3d "
                                       "--print-config lists all");
  g3_settings_free(s);
}

static void test_out_is_untouched_on_failure(void **unused) {
  (void)unused;
  char *argv[] = {"--tp", "0"};
  g3_settings *const untouched = (g3_settings *)argv;
  g3_settings *s = untouched;
  assert_int_equal(g3_settings_load(2, argv, &s), G3_EINVAL);
  assert_ptr_equal(s, untouched);
  g3_settings_free(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_spellings),
      cmocka_unit_test(test_bools),
      cmocka_unit_test(test_odd_texts),
      cmocka_unit_test(test_limits),
      cmocka_unit_test(test_messages),
      cmocka_unit_test(test_long_words),
      cmocka_unit_test(test_help_and_version_read_no_file),
      cmocka_unit_test(test_what_wins),
      cmocka_unit_test(test_lower_limit_follows_the_rate),
      cmocka_unit_test(test_tiny_is_built_in),
      cmocka_unit_test(test_names_from_files),
      cmocka_unit_test(test_checkpoint_values),
      cmocka_unit_test(test_out_is_untouched_on_failure),
  };
  return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
