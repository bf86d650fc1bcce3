/* GPT-2 as transformers spells it: names, shapes, and what each field of config.json does. */
#include "model/hf.h"
#include "unit/util/cm.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const g3_model_config gpt2 = {.layers = 12,
                                     .heads = 12,
                                     .width = 768,
                                     .ffn = 3072,
                                     .seq = 1024,
                                     .vocab = 50257,
                                     .tied = true};

/* Every tensor of the file that is published as "gpt2", as its header lists them. */
static const struct {
  const char *name;
  g3_row_id row;
  int ndim;
  int64_t dim[2];
  bool transposed;
} published[] = {
    {"wte.weight", G3_ROW_WTE, 2, {50257, 768}, false},
    {"wpe.weight", G3_ROW_WPE, 2, {1024, 768}, false},
    {"h.11.ln_1.weight", G3_ROW_LN1_W, 1, {768, 1}, false},
    {"h.11.ln_1.bias", G3_ROW_LN1_B, 1, {768, 1}, false},
    {"h.11.attn.c_attn.weight", G3_ROW_QKV_W, 2, {768, 2304}, true},
    {"h.11.attn.c_attn.bias", G3_ROW_QKV_B, 1, {2304, 1}, false},
    {"h.11.attn.c_proj.weight", G3_ROW_PROJ_W, 2, {768, 768}, true},
    {"h.11.attn.c_proj.bias", G3_ROW_PROJ_B, 1, {768, 1}, false},
    {"h.11.ln_2.weight", G3_ROW_LN2_W, 1, {768, 1}, false},
    {"h.11.ln_2.bias", G3_ROW_LN2_B, 1, {768, 1}, false},
    {"h.11.mlp.c_fc.weight", G3_ROW_UP_W, 2, {768, 3072}, true},
    {"h.11.mlp.c_fc.bias", G3_ROW_UP_B, 1, {3072, 1}, false},
    {"h.11.mlp.c_proj.weight", G3_ROW_DOWN_W, 2, {3072, 768}, true},
    {"h.11.mlp.c_proj.bias", G3_ROW_DOWN_B, 1, {768, 1}, false},
    {"ln_f.weight", G3_ROW_LNF_W, 1, {768, 1}, false},
    {"ln_f.bias", G3_ROW_LNF_B, 1, {768, 1}, false},
    {"lm_head.weight", G3_ROW_HEAD, 2, {50257, 768}, false},
};

static void names_and_shapes(void **state) {
  (void)state;
  char name[G3_HF_NAME], prefixed[G3_HF_NAME];
  assert_int_equal(sizeof published / sizeof published[0], G3_ROWS);
  for (size_t i = 0; i < sizeof published / sizeof published[0]; i++) {
    const g3_param_place place = {published[i].row, 11};
    int64_t dim[2];
    bool transposed;
    g3_hf_name(place, false, name);
    assert_string_equal(name, published[i].name);
    g3_hf_name(place, true, prefixed);
    const bool head = published[i].row == G3_ROW_HEAD;
    assert_string_equal(prefixed + (head ? 0 : strlen("transformer.")), name);
    assert_int_equal(strncmp(prefixed, "transformer.", 12) == 0, !head);
    assert_int_equal(g3_hf_shape(&gpt2, published[i].row, dim, &transposed), published[i].ndim);
    assert_int_equal(dim[0], published[i].dim[0]);
    assert_int_equal(dim[1], published[i].dim[1]);
    assert_int_equal(transposed, published[i].transposed);
  }
}

static void masks(void **state) {
  (void)state;
  static const char *const yes[] = {"h.0.attn.bias", "transformer.h.11.attn.bias",
                                    "h.3.attn.masked_bias", "transformer.h.0.attn.masked_bias"};
  static const char *const no[] = {
      "h.12.attn.bias",     "h.-1.attn.bias",       "h.0.attn.bias2",
      "h.00.attn.bias",     "h. 1.attn.bias",       "attn.bias",
      "h.0.attn.",          "h.0.mlp.bias",         "",
      "x.h.0.attn.bias",    "h.0.attn.bias.weight", "h.0.attn.c_attn.bias",
      "h.9999999.attn.bias"};
  for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++)
    assert_true(g3_hf_is_mask(&gpt2, yes[i]));
  for (size_t i = 0; i < sizeof no / sizeof no[0]; i++)
    assert_false(g3_hf_is_mask(&gpt2, no[i]));
}

static void transposes(void **state) {
  (void)state;
  static const int64_t shapes[][2] = {{1, 1}, {1, 70}, {70, 1}, {32, 32}, {33, 95}, {64, 31}};
  for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
    const int64_t rows = shapes[s][0], columns = shapes[s][1];
    float in[95 * 70], out[95 * 70];
    for (int64_t i = 0; i < rows * columns; i++)
      in[i] = (float)i;
    g3_hf_transpose(out, in, rows, columns);
    for (int64_t i = 0; i < rows; i++)
      for (int64_t j = 0; j < columns; j++)
        assert_true(out[j * rows + i] == in[i * columns + j]);
  }
}

enum { SHAPE = 6 };

/* model_type and the shape that must be there, then one more. */
static g3_status read_with(const g3_field *more, g3_hf_config *out) {
  g3_field fields[SHAPE + 1] = {
      {"model_type", G3_FIELD_TEXT, 0, "gpt2"}, {"n_layer", G3_FIELD_NUMBER, 3, ""},
      {"n_head", G3_FIELD_NUMBER, 4, ""},       {"n_embd", G3_FIELD_NUMBER, 32, ""},
      {"n_positions", G3_FIELD_NUMBER, 16, ""}, {"vocab_size", G3_FIELD_NUMBER, 61, ""}};
  int n = SHAPE;
  for (int i = 0; more && i < SHAPE; i++)
    if (strcmp(fields[i].key, more->key) == 0) {
      fields[i] = *more;
      more = NULL;
    }
  if (more) fields[n++] = *more;
  return g3_hf_config_read(fields, n, "DIR/config.json", out);
}

static void takes_the_shape(void **state) {
  (void)state;
  const g3_field inner = {"n_inner", G3_FIELD_NUMBER, 100, ""};
  const g3_field none = {"n_inner", G3_FIELD_NULL, 0, ""};
  const g3_field untied = {"tie_word_embeddings", G3_FIELD_BOOL, 0, ""};
  const g3_field tied = {"tie_word_embeddings", G3_FIELD_BOOL, 1, ""};
  const g3_field dropout = {"attn_pdrop", G3_FIELD_NUMBER, 0.25, ""};
  g3_hf_config c;
  assert_int_equal(read_with(NULL, &c), G3_OK);
  assert_int_equal(c.model.layers, 3);
  assert_int_equal(c.model.heads, 4);
  assert_int_equal(c.model.width, 32);
  assert_int_equal(c.model.seq, 16);
  assert_int_equal(c.model.vocab, 61);
  assert_int_equal(c.model.ffn, 128);
  assert_int_equal(c.tied, G3_HF_TIED_UNSAID);
  assert_true(c.dropout[0] == 0.1 && c.dropout[1] == 0.1 && c.dropout[2] == 0.1);
  assert_int_equal(read_with(&inner, &c), G3_OK);
  assert_int_equal(c.model.ffn, 100);
  assert_int_equal(read_with(&none, &c), G3_OK);
  assert_int_equal(c.model.ffn, 128);
  assert_int_equal(read_with(&untied, &c), G3_OK);
  assert_true(c.tied == G3_HF_UNTIED && !c.model.tied);
  assert_int_equal(read_with(&tied, &c), G3_OK);
  assert_true(c.tied == G3_HF_TIED && c.model.tied);
  assert_int_equal(read_with(&dropout, &c), G3_OK);
  assert_true(c.dropout[0] == 0.1 && c.dropout[1] == 0.25);
}

static void takes_what_changes_nothing(void **state) {
  (void)state;
  static const g3_field fine[] = {{"activation_function", G3_FIELD_TEXT, 0, "gelu_pytorch_tanh"},
                                  {"layer_norm_epsilon", G3_FIELD_NUMBER, 1e-5, ""},
                                  {"layer_norm_epsilon", G3_FIELD_NUMBER, (double)1e-5f, ""},
                                  {"scale_attn_weights", G3_FIELD_BOOL, 1, ""},
                                  {"n_ctx", G3_FIELD_NUMBER, 16, ""},
                                  {"pruned_heads", G3_FIELD_LIST, 0, ""},
                                  {"summary_type", G3_FIELD_TEXT, 0, "cls_index"},
                                  {"_name_or_path", G3_FIELD_TEXT, 0, "gpt2"},
                                  {"architectures", G3_FIELD_LIST, 1, ""},
                                  {"eos_token_id", G3_FIELD_NUMBER, 50256, ""},
                                  {"some_new_switch", G3_FIELD_BOOL, 0, ""},
                                  {"some_new_setting", G3_FIELD_NULL, 0, ""}};
  g3_hf_config c;
  for (size_t i = 0; i < sizeof fine / sizeof fine[0]; i++)
    if (read_with(&fine[i], &c) != G3_OK) fail_msg("%s: %s", fine[i].key, g3_last_error());
}

static void refuses_what_it_does_not_compute(void **state) {
  (void)state;
  static const struct {
    g3_field field;
    g3_status status;
    const char *part;
  } bad[] = {
      {{"model_type", G3_FIELD_TEXT, 0, "gptj"},
       G3_EUNSUPPORTED,
       "model_type is \"gptj\"; gpt3d computes only \"gpt2\""},
      {{"activation_function", G3_FIELD_TEXT, 0, "relu"},
       G3_EUNSUPPORTED,
       "activation_function is \"relu\"; gpt3d computes only \"gelu_new\""},
      {{"activation_function", G3_FIELD_TEXT, 0, "gelu"}, G3_EUNSUPPORTED, "\"gelu\""},
      {{"layer_norm_epsilon", G3_FIELD_NUMBER, 1e-6, ""},
       G3_EUNSUPPORTED,
       "layer_norm_epsilon is 1e-06; gpt3d computes only 1e-05"},
      {{"scale_attn_weights", G3_FIELD_BOOL, 0, ""},
       G3_EUNSUPPORTED,
       "scale_attn_weights is false"},
      {{"scale_attn_by_inverse_layer_idx", G3_FIELD_BOOL, 1, ""},
       G3_EUNSUPPORTED,
       "scale_attn_by_inverse_layer_idx is true; gpt3d computes only false"},
      {{"reorder_and_upcast_attn", G3_FIELD_BOOL, 1, ""}, G3_EUNSUPPORTED, "is true"},
      {{"add_cross_attention", G3_FIELD_BOOL, 1, ""}, G3_EUNSUPPORTED, "is true"},
      {{"is_encoder_decoder", G3_FIELD_BOOL, 1, ""}, G3_EUNSUPPORTED, "is true"},
      {{"pruned_heads", G3_FIELD_LIST, 2, ""}, G3_EUNSUPPORTED, "pruned_heads is a list of 2"},
      {{"quantization_config", G3_FIELD_LIST, 5, ""}, G3_EUNSUPPORTED, "quantization_config"},
      {{"n_ctx", G3_FIELD_NUMBER, 32, ""},
       G3_EUNSUPPORTED,
       "n_ctx is 32; gpt3d computes only that"},
      {{"rope_theta", G3_FIELD_NUMBER, 1e4, ""},
       G3_EUNSUPPORTED,
       "rope_theta is 10000, a field that gpt3d does not know"},
      {{"some_new_switch", G3_FIELD_BOOL, 1, ""}, G3_EUNSUPPORTED, "does not know"},
      {{"n_layer", G3_FIELD_NUMBER, 0, ""}, G3_EFORMAT, "n_layer is 0; wanted a whole number"},
      {{"n_layer", G3_FIELD_NUMBER, 2.5, ""}, G3_EFORMAT, "n_layer is 2.5"},
      {{"n_layer", G3_FIELD_TEXT, 0, "12"}, G3_EFORMAT, "n_layer is \"12\""},
      {{"vocab_size", G3_FIELD_NUMBER, 1e300, ""}, G3_EFORMAT, "vocab_size is 1e+300"},
      {{"n_inner", G3_FIELD_NUMBER, -4, ""}, G3_EFORMAT, "n_inner is -4"},
      {{"tie_word_embeddings", G3_FIELD_NUMBER, 1, ""}, G3_EFORMAT, "wanted true or false"},
      {{"attn_pdrop", G3_FIELD_NUMBER, 1, ""}, G3_EFORMAT, "attn_pdrop is 1; wanted a share"},
      {{"embd_pdrop", G3_FIELD_NULL, 0, ""}, G3_EFORMAT, "embd_pdrop is null"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    g3_hf_config c = {.model = {.layers = -7}};
    assert_int_equal(read_with(&bad[i].field, &c), bad[i].status);
    if (!strstr(g3_last_error(), bad[i].part) || !strstr(g3_last_error(), "DIR/config.json"))
      fail_msg("\"%s\" lacks \"%s\"", g3_last_error(), bad[i].part);
    assert_int_equal(c.model.layers, -7);
  }
}

static void names_what_is_missing(void **state) {
  (void)state;
  static const char *const keys[] = {"model_type", "n_layer",     "n_head",
                                     "n_embd",     "n_positions", "vocab_size"};
  g3_field fields[SHAPE];
  g3_hf_config c;
  for (int left_out = 0; left_out < SHAPE; left_out++) {
    int n = 0;
    memset(fields, 0, sizeof fields);
    for (int i = 0; i < SHAPE; i++) {
      if (i == left_out) continue;
      g3_field *f = &fields[n++];
      snprintf(f->key, sizeof f->key, "%s", keys[i]);
      f->kind = i == 0 ? G3_FIELD_TEXT : G3_FIELD_NUMBER;
      f->number = 8;
      snprintf(f->text, sizeof f->text, "gpt2");
    }
    assert_int_equal(g3_hf_config_read(fields, n, "x", &c), G3_EFORMAT);
    assert_non_null(strstr(g3_last_error(), keys[left_out]));
  }
}

static void writes_a_config(void **state) {
  (void)state;
  char text[2048], small[64];
  g3_model_config c = gpt2;
  assert_int_equal(g3_hf_config_write(&c, text, sizeof text), G3_OK);
  static const char *const parts[] = {"\"model_type\":\"gpt2\"",
                                      "\"n_layer\":12",
                                      "\"n_inner\":3072",
                                      "\"vocab_size\":50257",
                                      "\"tie_word_embeddings\":true",
                                      "\"layer_norm_epsilon\":1e-05",
                                      "\"eos_token_id\":50256",
                                      "\"activation_function\":\"gelu_new\""};
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
    if (!strstr(text, parts[i])) fail_msg("%s lacks %s", text, parts[i]);
  c.layers = c.heads = c.width = c.ffn = c.seq = c.vocab = INT64_MAX;
  c.tied = false;
  c.dropout = 0.12345678901234567;
  assert_int_equal(g3_hf_config_write(&c, text, sizeof text), G3_OK);
  assert_non_null(strstr(text, "\"eos_token_id\":null"));
  assert_int_equal(g3_hf_config_write(&c, small, sizeof small), G3_EINVAL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(names_and_shapes),
      cmocka_unit_test(masks),
      cmocka_unit_test(transposes),
      cmocka_unit_test(takes_the_shape),
      cmocka_unit_test(takes_what_changes_nothing),
      cmocka_unit_test(refuses_what_it_does_not_compute),
      cmocka_unit_test(names_what_is_missing),
      cmocka_unit_test(writes_a_config),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
