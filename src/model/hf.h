/* GPT-2 as Hugging Face's transformers spells it: names, shapes and the fields of its config.json.
 * Pure: no files. */
#ifndef G3_MODEL_HF_H
#define G3_MODEL_HF_H
#include "model/spec.h"
#include "util/field.h"

enum { G3_HF_NAME = 96 };

/* Whether config.json says that the head uses the embedding's weights. */
typedef enum { G3_HF_TIED_UNSAID, G3_HF_TIED, G3_HF_UNTIED } g3_hf_tied;

/* What a config.json says. */
typedef struct {
  g3_model_config model; /* tied: what g3_hf_tied says, true when unsaid; dropout 0 */
  g3_hf_tied tied;
  double dropout[3]; /* embd_pdrop, attn_pdrop, resid_pdrop: of training alone */
} g3_hf_config;

/* Pure. The n fields of the config.json called `path` in messages. Each field that changes what the
 * model computes is taken, or G3_EUNSUPPORTED by name when it asks for what gpt3d does not compute
 * (another activation, epsilon or attention scale, cross-attention, ...); so is a field that is
 * unknown, unless it is null or false. G3_EFORMAT for a shape that is missing or no whole number.
 */
G3_MUST_USE g3_status g3_hf_config_read(const g3_field *fields, int n, const char *path,
                                        g3_hf_config *out);

/* Pure. config.json for a model, into text [size] with its NUL. G3_EINVAL when it does not fit,
 * which 2048 bytes prevent. */
G3_MUST_USE g3_status g3_hf_config_write(const g3_model_config *c, char *text, size_t size);

/* Pure. The name of a parameter, "transformer.h.3.mlp.c_fc.weight", or without the first component,
 * as older files have it (the head has none). */
void g3_hf_name(g3_param_place place, bool prefixed, char out[G3_HF_NAME]);

/* Pure. The stored shape: 1 or 2 dimensions, returned. Matrices of linear layers but the head are
 * stored [in, out] there, ours are [out, in]: *transposed. */
int g3_hf_shape(const g3_model_config *c, g3_row_id row, int64_t dim[2], bool *transposed);

/* Pure. True for the causal masks that older files hold beside the parameters: attn.bias and
 * attn.masked_bias of one of the blocks. */
bool g3_hf_is_mask(const g3_model_config *c, const char *name);

/* Pure. out [columns][rows] = in [rows][columns] transposed; they must not overlap. */
void g3_hf_transpose(float *out, const float *in, int64_t rows, int64_t columns);

#endif
