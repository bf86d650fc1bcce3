#include "model/hf.h"
#include <stdio.h>
#include <string.h>

static const char prefix[] = "transformer.";

/* By row of our table; a %d is the block's number. */
static const struct {
  const char *name;
  bool transposed; /* a Conv1D of transformers: [in, out] */
  bool bare; /* outside what "transformer." names */
} names[G3_ROWS] = {
    [G3_ROW_WTE] = {"wte.weight", false, false},
    [G3_ROW_WPE] = {"wpe.weight", false, false},
    [G3_ROW_LN1_W] = {"h.%d.ln_1.weight", false, false},
    [G3_ROW_LN1_B] = {"h.%d.ln_1.bias", false, false},
    [G3_ROW_QKV_W] = {"h.%d.attn.c_attn.weight", true, false},
    [G3_ROW_QKV_B] = {"h.%d.attn.c_attn.bias", false, false},
    [G3_ROW_PROJ_W] = {"h.%d.attn.c_proj.weight", true, false},
    [G3_ROW_PROJ_B] = {"h.%d.attn.c_proj.bias", false, false},
    [G3_ROW_LN2_W] = {"h.%d.ln_2.weight", false, false},
    [G3_ROW_LN2_B] = {"h.%d.ln_2.bias", false, false},
    [G3_ROW_UP_W] = {"h.%d.mlp.c_fc.weight", true, false},
    [G3_ROW_UP_B] = {"h.%d.mlp.c_fc.bias", false, false},
    [G3_ROW_DOWN_W] = {"h.%d.mlp.c_proj.weight", true, false},
    [G3_ROW_DOWN_B] = {"h.%d.mlp.c_proj.bias", false, false},
    [G3_ROW_LNF_W] = {"ln_f.weight", false, false},
    [G3_ROW_LNF_B] = {"ln_f.bias", false, false},
    [G3_ROW_HEAD] = {"lm_head.weight", false, true},
};

void g3_hf_name(g3_param_place place, bool prefixed, char out[G3_HF_NAME]) {
  static const char block[] = "h.%d";
  const char *name = names[place.row].name,
             *lead = prefixed && !names[place.row].bare ? prefix : "";
  if (strncmp(name, block, sizeof block - 1) == 0)
    snprintf(out, G3_HF_NAME, "%sh.%d%s", lead, place.layer, name + sizeof block - 1);
  else
    snprintf(out, G3_HF_NAME, "%s%s", lead, name);
}

/* [3][width] of ours are one dimension there. */
int g3_hf_shape(const g3_model_config *c, g3_row_id row, int64_t dim[2], bool *transposed) {
  const g3_param_row *ours = &g3_gpt_rows[row];
  int64_t size[G3_MAX_DIMS];
  int ndim = 0;
  for (int d = 0; d < G3_MAX_DIMS && ours->dim[d] != G3_DIM_NONE; d++) {
    const int64_t one = g3_dim_size(c, (g3_dim)ours->dim[d]);
    if (d > 0 && ours->dim[d - 1] == G3_DIM_THREE)
      size[ndim - 1] *= one;
    else
      size[ndim++] = one;
  }
  *transposed = names[row].transposed;
  dim[0] = *transposed ? size[1] : size[0];
  dim[1] = ndim == 1 ? 1 : *transposed ? size[0] : size[1];
  return ndim;
}

bool g3_hf_is_mask(const g3_model_config *c, const char *name) {
  static const char *const masks[] = {"attn.bias", "attn.masked_bias"};
  char want[G3_HF_NAME];
  int layer;
  if (strncmp(name, prefix, sizeof prefix - 1) == 0) name += sizeof prefix - 1;
  if (sscanf(name, "h.%6d.", &layer) != 1 || layer < 0 || layer >= c->layers) return false;
  for (size_t i = 0; i < sizeof masks / sizeof masks[0]; i++) {
    snprintf(want, sizeof want, "h.%d.%s", layer, masks[i]);
    if (strcmp(name, want) == 0) return true;
  }
  return false;
}

/* In tiles that fit a cache. */
void g3_hf_transpose(float *out, const float *in, int64_t rows, int64_t columns) {
  enum { TILE = 32 };
  for (int64_t r = 0; r < rows; r += TILE)
    for (int64_t c = 0; c < columns; c += TILE)
      for (int64_t j = c; j < columns && j < c + TILE; j++)
        for (int64_t i = r; i < rows && i < r + TILE; i++)
          out[j * rows + i] = in[i * columns + j];
}
