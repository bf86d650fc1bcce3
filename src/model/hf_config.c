/* config.json of transformers' GPT2Config: one row a field. */
#include "model/hf.h"
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* What is done with a field. */
typedef enum {
  TAKE_COUNT, /* a whole number > 0 of the model; must be there */
  TAKE_INNER, /* n_inner: null is 4 * n_embd */
  TAKE_TIED,
  TAKE_DROPOUT,
  WANT_TEXT, /* one of `texts` */
  WANT_NUMBER,
  WANT_TRUE,
  WANT_FALSE,
  WANT_NOTHING, /* null, false or empty */
  SAME_AS_SEQ, /* an older name of n_positions */
  HARMLESS /* says nothing of what logits are */
} rule;

typedef struct {
  const char *name;
  rule rule;
  size_t offset; /* TAKE_*: into g3_hf_config */
  double number; /* WANT_NUMBER */
  const char *texts[2]; /* WANT_TEXT */
  bool required;
} row;

#define OF_MODEL(field) offsetof(g3_hf_config, model.field)

static const row table[] = {
    {.name = "model_type", .rule = WANT_TEXT, .texts = {"gpt2", "gpt2"}, .required = true},
    {.name = "n_layer", .rule = TAKE_COUNT, .offset = OF_MODEL(layers), .required = true},
    {.name = "n_head", .rule = TAKE_COUNT, .offset = OF_MODEL(heads), .required = true},
    {.name = "n_embd", .rule = TAKE_COUNT, .offset = OF_MODEL(width), .required = true},
    {.name = "n_positions", .rule = TAKE_COUNT, .offset = OF_MODEL(seq), .required = true},
    {.name = "vocab_size", .rule = TAKE_COUNT, .offset = OF_MODEL(vocab), .required = true},
    {.name = "n_inner", .rule = TAKE_INNER, .offset = OF_MODEL(ffn)},
    {.name = "n_ctx", .rule = SAME_AS_SEQ},
    {.name = "tie_word_embeddings", .rule = TAKE_TIED},
    {.name = "embd_pdrop", .rule = TAKE_DROPOUT, .offset = offsetof(g3_hf_config, dropout[0])},
    {.name = "attn_pdrop", .rule = TAKE_DROPOUT, .offset = offsetof(g3_hf_config, dropout[1])},
    {.name = "resid_pdrop", .rule = TAKE_DROPOUT, .offset = offsetof(g3_hf_config, dropout[2])},
    {.name = "activation_function", .rule = WANT_TEXT, .texts = {"gelu_new", "gelu_pytorch_tanh"}},
    {.name = "layer_norm_epsilon", .rule = WANT_NUMBER, .number = 1e-5},
    {.name = "scale_attn_weights", .rule = WANT_TRUE},
    {.name = "scale_attn_by_inverse_layer_idx", .rule = WANT_FALSE},
    {.name = "reorder_and_upcast_attn", .rule = WANT_FALSE},
    {.name = "add_cross_attention", .rule = WANT_FALSE},
    {.name = "is_encoder_decoder", .rule = WANT_FALSE},
    {.name = "pruned_heads", .rule = WANT_NOTHING},
    {.name = "quantization_config", .rule = WANT_NOTHING},
};

enum { ROWS = sizeof table / sizeof table[0] };

/* Fields of labels, generation, files and the Python side; a * stands for any ending. */
static const char *const harmless[] = {
    "_*",
    "architectures",
    "auto_map",
    "bad_words_ids",
    "begin_suppress_tokens",
    "bos_token_id",
    "chunk_size_feed_forward",
    "decoder_start_token_id",
    "diversity_penalty",
    "do_sample",
    "dtype",
    "early_stopping",
    "encoder_no_repeat_ngram_size",
    "eos_token_id",
    "exponential_decay_length_penalty",
    "finetuning_task",
    "forced_*",
    "gradient_checkpointing",
    "id2label",
    "initializer_range",
    "is_decoder",
    "label2id",
    "length_penalty",
    "max_length",
    "min_length",
    "n_special",
    "no_repeat_ngram_size",
    "num_beam_groups",
    "num_beams",
    "num_return_sequences",
    "output_*",
    "pad_token_id",
    "predict_special_tokens",
    "prefix",
    "problem_type",
    "remove_invalid_values",
    "repetition_penalty",
    "return_dict*",
    "sep_token_id",
    "summary_*",
    "suppress_tokens",
    "task_specific_params",
    "temperature",
    "tf_legacy_loss",
    "tokenizer_class",
    "top_k",
    "top_p",
    "torch_dtype",
    "torchscript",
    "transformers_version",
    "typical_p",
    "use_bfloat16",
    "use_cache",
};

static bool is_harmless(const char *key) {
  for (size_t i = 0; i < sizeof harmless / sizeof harmless[0]; i++) {
    const size_t n = strlen(harmless[i]);
    const bool any_end = harmless[i][n - 1] == '*';
    if (any_end ? strncmp(key, harmless[i], n - 1) == 0 : strcmp(key, harmless[i]) == 0)
      return true;
  }
  return false;
}

static const char *value_text(const g3_field *f, char out[80]) {
  switch (f->kind) {
  case G3_FIELD_NULL:
    snprintf(out, 80, "null");
    break;
  case G3_FIELD_BOOL:
    snprintf(out, 80, "%s", f->number > 0.0 ? "true" : "false");
    break;
  case G3_FIELD_NUMBER:
    snprintf(out, 80, "%.10g", f->number);
    break;
  case G3_FIELD_TEXT:
    snprintf(out, 80, "\"%s\"", f->text);
    break;
  case G3_FIELD_LIST:
    snprintf(out, 80, "a list of %.0f", f->number);
    break;
  }
  return out;
}

static g3_status refuse(const char *path, const g3_field *f, const char *wanted) {
  char value[80];
  return G3_FAIL(G3_EUNSUPPORTED, "%s: %s is %s; gpt3d computes only %s", path, f->key,
                 value_text(f, value), wanted);
}

static g3_status malformed(const char *path, const g3_field *f, const char *wanted) {
  char value[80];
  return G3_FAIL(G3_EFORMAT, "%s: %s is %s; wanted %s", path, f->key, value_text(f, value), wanted);
}

static g3_status take_count(const char *path, const g3_field *f, int64_t *out) {
  const double most = 0x1p40; /* more than any option allows */
  if (f->kind != G3_FIELD_NUMBER || !(f->number >= 1.0 && f->number <= most) ||
      f->number != floor(f->number))
    return malformed(path, f, "a whole number above 0");
  *out = (int64_t)f->number;
  return G3_OK;
}

static bool is_off(const g3_field *f) {
  return f->kind == G3_FIELD_NULL || (f->kind != G3_FIELD_TEXT && !(f->number != 0.0));
}

static g3_status want_text(const char *path, const row *r, const g3_field *f) {
  char wanted[80];
  for (int i = 0; i < 2; i++)
    if (f->kind == G3_FIELD_TEXT && strcmp(f->text, r->texts[i]) == 0) return G3_OK;
  snprintf(wanted, sizeof wanted, "\"%s\"", r->texts[0]);
  return refuse(path, f, wanted);
}

static g3_status want_bool(const char *path, const g3_field *f, bool wanted) {
  if (f->kind == G3_FIELD_BOOL && (f->number > 0.0) == wanted) return G3_OK;
  return refuse(path, f, wanted ? "true" : "false");
}

static g3_status want_number(const char *path, const row *r, const g3_field *f) {
  char wanted[32];
  if (f->kind == G3_FIELD_NUMBER && fabs(f->number - r->number) <= 1e-6 * r->number) return G3_OK;
  snprintf(wanted, sizeof wanted, "%g", r->number);
  return refuse(path, f, wanted);
}

static g3_status apply(const char *path, const row *r, const g3_field *f, g3_hf_config *out) {
  void *at = (char *)out + r->offset;
  switch (r->rule) {
  case TAKE_COUNT:
    return take_count(path, f, at);
  case TAKE_INNER:
    return f->kind == G3_FIELD_NULL ? G3_OK : take_count(path, f, at);
  case TAKE_TIED:
    if (f->kind != G3_FIELD_BOOL) return malformed(path, f, "true or false");
    out->tied = f->number > 0.0 ? G3_HF_TIED : G3_HF_UNTIED;
    return G3_OK;
  case TAKE_DROPOUT:
    if (f->kind != G3_FIELD_NUMBER || !(f->number >= 0.0 && f->number < 1.0))
      return malformed(path, f, "a share below 1");
    *(double *)at = f->number;
    return G3_OK;
  case WANT_TEXT:
    return want_text(path, r, f);
  case WANT_NUMBER:
    return want_number(path, r, f);
  case WANT_TRUE:
  case WANT_FALSE:
    return want_bool(path, f, r->rule == WANT_TRUE);
  case WANT_NOTHING:
    return is_off(f) ? G3_OK : refuse(path, f, "without it");
  case SAME_AS_SEQ: /* once all fields are known */
  case HARMLESS:
    return G3_OK;
  }
  return G3_OK;
}

static const g3_field *find(const g3_field *fields, int n, const char *name) {
  for (int i = 0; i < n; i++)
    if (strcmp(fields[i].key, name) == 0) return &fields[i];
  return NULL;
}

static g3_status check_known(const char *path, const g3_field *f) {
  char value[80];
  for (int i = 0; i < ROWS; i++)
    if (strcmp(table[i].name, f->key) == 0) return G3_OK;
  if (is_harmless(f->key) || f->kind == G3_FIELD_NULL ||
      (f->kind == G3_FIELD_BOOL && f->number == 0.0))
    return G3_OK;
  return G3_FAIL(
      G3_EUNSUPPORTED,
      "%s: %s is %s, a field that gpt3d does not know and that may change what the model "
      "computes; take it out of the file if it does not",
      path, f->key, value_text(f, value));
}

static g3_status check_context(const char *path, const g3_field *f, int64_t seq) {
  char wanted[64];
  if (!f || (f->kind == G3_FIELD_NUMBER && f->number == (double)seq)) return G3_OK;
  snprintf(wanted, sizeof wanted, "that of n_positions, %lld", (long long)seq);
  return refuse(path, f, wanted);
}

g3_status g3_hf_config_read(const g3_field *fields, int n, const char *path, g3_hf_config *out) {
  /* What transformers takes where nothing is said. */
  g3_hf_config c = {.tied = G3_HF_TIED_UNSAID, .dropout = {0.1, 0.1, 0.1}};
  for (int i = 0; i < ROWS; i++) {
    const g3_field *f = find(fields, n, table[i].name);
    if (f)
      G3_TRY(apply(path, &table[i], f, &c));
    else if (table[i].required)
      return G3_FAIL(G3_EFORMAT, "%s does not say %s", path, table[i].name);
  }
  for (int i = 0; i < n; i++)
    G3_TRY(check_known(path, &fields[i]));
  G3_TRY(check_context(path, find(fields, n, "n_ctx"), c.model.seq));
  if (c.model.ffn == 0) c.model.ffn = 4 * c.model.width;
  c.model.tied = c.tied != G3_HF_UNTIED;
  *out = c;
  return G3_OK;
}
