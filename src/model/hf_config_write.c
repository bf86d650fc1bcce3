/* config.json for transformers. */
#include "model/hf.h"
#include "util/json.h"
#include <string.h>

static void put_text(g3_json *j, const char *key, const char *value) {
  g3_json_key(j, key);
  g3_json_string(j, value);
}

static void put_count(g3_json *j, const char *key, int64_t value) {
  g3_json_key(j, key);
  g3_json_int(j, value);
}

static void put_number(g3_json *j, const char *key, double value) {
  g3_json_key(j, key);
  g3_json_double(j, value);
}

static void put_bool(g3_json *j, const char *key, bool value) {
  g3_json_key(j, key);
  g3_json_bool(j, value);
}

/* GPT-2's end of text, where it is the last of GPT-2's own tokens; another vocabulary has none. */
static void put_end_of_text(g3_json *j, int64_t vocab) {
  static const char *const keys[] = {"bos_token_id", "eos_token_id"};
  for (int i = 0; i < 2; i++) {
    g3_json_key(j, keys[i]);
    if (vocab == 50257)
      g3_json_int(j, vocab - 1);
    else
      g3_json_null(j);
  }
}

g3_status g3_hf_config_write(const g3_model_config *c, char *text, size_t size) {
  g3_json j = g3_json_begin(text, size);
  g3_json_object(&j);
  g3_json_key(&j, "architectures");
  g3_json_array(&j);
  g3_json_string(&j, "GPT2LMHeadModel");
  g3_json_array_end(&j);
  put_text(&j, "model_type", "gpt2");
  put_count(&j, "n_layer", c->layers);
  put_count(&j, "n_head", c->heads);
  put_count(&j, "n_embd", c->width);
  put_count(&j, "n_positions", c->seq);
  put_count(&j, "n_ctx", c->seq);
  put_count(&j, "n_inner", c->ffn);
  put_count(&j, "vocab_size", c->vocab);
  put_bool(&j, "tie_word_embeddings", c->tied);
  put_text(&j, "activation_function", "gelu_new");
  put_number(&j, "layer_norm_epsilon", 1e-5);
  put_bool(&j, "scale_attn_weights", true);
  put_bool(&j, "scale_attn_by_inverse_layer_idx", false);
  put_bool(&j, "reorder_and_upcast_attn", false);
  put_number(&j, "embd_pdrop", c->dropout);
  put_number(&j, "attn_pdrop", c->dropout);
  put_number(&j, "resid_pdrop", c->dropout);
  put_number(&j, "initializer_range", 0.02);
  put_end_of_text(&j, c->vocab);
  put_text(&j, "torch_dtype", "float32");
  g3_json_object_end(&j);
  G3_TRY(g3_json_end(&j));
  if (j.used + 2 > size) return G3_FAIL(G3_EINVAL, "no room for the end of config.json");
  memcpy(text + j.used, "\n", 2);
  return G3_OK;
}
