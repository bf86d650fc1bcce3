#include "model/spec.h"
#include "util/array.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Biases of row-parallel layers and everything that works on hidden states between regions see only
 * a part of the tokens under sequence parallelism: G3_OVER_SEQUENCE. */
const g3_param_row g3_gpt_rows[G3_ROWS] = {
    [G3_ROW_WTE] = {.name = "embed.tokens.weight",
                    .places = G3_AT_FIRST | G3_AT_LAST,
                    .dim = {G3_DIM_VOCAB, G3_DIM_WIDTH},
                    .cut_tp = 0,
                    .sum_over = G3_OVER_ENDS,
                    .init_std = 0.02f,
                    .decay = true},
    [G3_ROW_WPE] = {.name = "embed.positions.weight",
                    .places = G3_AT_FIRST,
                    .dim = {G3_DIM_SEQ, G3_DIM_WIDTH},
                    .cut_tp = -1,
                    .sum_over = G3_OVER_SEQUENCE,
                    .init_std = 0.02f,
                    .decay = true},
    [G3_ROW_LN1_W] = {.name = "blocks.%d.ln1.weight",
                      .places = G3_AT_BLOCK,
                      .dim = {G3_DIM_WIDTH},
                      .cut_tp = -1,
                      .sum_over = G3_OVER_SEQUENCE,
                      .init_std = -1.0f},
    [G3_ROW_LN1_B] = {.name = "blocks.%d.ln1.bias",
                      .places = G3_AT_BLOCK,
                      .dim = {G3_DIM_WIDTH},
                      .cut_tp = -1,
                      .sum_over = G3_OVER_SEQUENCE},
    [G3_ROW_QKV_W] = {.name = "blocks.%d.attn.qkv.weight",
                      .places = G3_AT_BLOCK,
                      .dim = {G3_DIM_THREE, G3_DIM_WIDTH, G3_DIM_WIDTH},
                      .cut_tp = 1,
                      .init_std = 0.02f,
                      .decay = true},
    [G3_ROW_QKV_B] = {.name = "blocks.%d.attn.qkv.bias",
                      .places = G3_AT_BLOCK,
                      .dim = {G3_DIM_THREE, G3_DIM_WIDTH},
                      .cut_tp = 1},
    [G3_ROW_PROJ_W] = {.name = "blocks.%d.attn.proj.weight",
                       .places = G3_AT_BLOCK,
                       .dim = {G3_DIM_WIDTH, G3_DIM_WIDTH},
                       .cut_tp = 1,
                       .init_std = 0.02f,
                       .scaled = true,
                       .decay = true},
    [G3_ROW_PROJ_B] = {.name = "blocks.%d.attn.proj.bias",
                       .places = G3_AT_BLOCK,
                       .dim = {G3_DIM_WIDTH},
                       .cut_tp = -1,
                       .sum_over = G3_OVER_SEQUENCE},
    [G3_ROW_LN2_W] = {.name = "blocks.%d.ln2.weight",
                      .places = G3_AT_BLOCK,
                      .dim = {G3_DIM_WIDTH},
                      .cut_tp = -1,
                      .sum_over = G3_OVER_SEQUENCE,
                      .init_std = -1.0f},
    [G3_ROW_LN2_B] = {.name = "blocks.%d.ln2.bias",
                      .places = G3_AT_BLOCK,
                      .dim = {G3_DIM_WIDTH},
                      .cut_tp = -1,
                      .sum_over = G3_OVER_SEQUENCE},
    [G3_ROW_UP_W] = {.name = "blocks.%d.mlp.up.weight",
                     .places = G3_AT_BLOCK,
                     .dim = {G3_DIM_FFN, G3_DIM_WIDTH},
                     .cut_tp = 0,
                     .init_std = 0.02f,
                     .decay = true},
    [G3_ROW_UP_B] = {.name = "blocks.%d.mlp.up.bias",
                     .places = G3_AT_BLOCK,
                     .dim = {G3_DIM_FFN},
                     .cut_tp = 0},
    [G3_ROW_DOWN_W] = {.name = "blocks.%d.mlp.down.weight",
                       .places = G3_AT_BLOCK,
                       .dim = {G3_DIM_WIDTH, G3_DIM_FFN},
                       .cut_tp = 1,
                       .init_std = 0.02f,
                       .scaled = true,
                       .decay = true},
    [G3_ROW_DOWN_B] = {.name = "blocks.%d.mlp.down.bias",
                       .places = G3_AT_BLOCK,
                       .dim = {G3_DIM_WIDTH},
                       .cut_tp = -1,
                       .sum_over = G3_OVER_SEQUENCE},
    [G3_ROW_LNF_W] = {.name = "final.ln.weight",
                      .places = G3_AT_LAST,
                      .dim = {G3_DIM_WIDTH},
                      .cut_tp = -1,
                      .sum_over = G3_OVER_SEQUENCE,
                      .init_std = -1.0f},
    [G3_ROW_LNF_B] = {.name = "final.ln.bias",
                      .places = G3_AT_LAST,
                      .dim = {G3_DIM_WIDTH},
                      .cut_tp = -1,
                      .sum_over = G3_OVER_SEQUENCE},
    [G3_ROW_HEAD] = {.name = "head.weight",
                     .places = G3_AT_LAST,
                     .dim = {G3_DIM_VOCAB, G3_DIM_WIDTH},
                     .cut_tp = 0,
                     .init_std = 0.02f,
                     .decay = true,
                     .untied_only = true},
};

enum { VOCAB_ALIGN = 8 }; /* rows: leading dimensions of products stay multiples of 8 */

int64_t g3_dim_size(const g3_model_config *c, g3_dim d) {
  switch (d) {
  case G3_DIM_NONE:
    return 1;
  case G3_DIM_THREE:
    return 3;
  case G3_DIM_WIDTH:
    return c->width;
  case G3_DIM_FFN:
    return c->ffn;
  case G3_DIM_VOCAB:
    return c->vocab;
  case G3_DIM_SEQ:
    return c->seq;
  }
  return 0;
}

int64_t g3_vocab_part(int64_t vocab, int tp, int64_t chunks) {
  if (chunks > 0) return chunks / tp * g3_round_up(g3_ceil_div(vocab, chunks), VOCAB_ALIGN);
  return g3_round_up(g3_ceil_div(vocab, tp), VOCAB_ALIGN);
}

static bool row_exists(const g3_model_config *c, const g3_param_row *row) {
  return !(row->untied_only && c->tied);
}

static g3_slice row_whole(const g3_model_config *c, const g3_param_row *row) {
  int64_t global[G3_MAX_DIMS];
  int ndim = 0;
  while (ndim < G3_MAX_DIMS && row->dim[ndim] != G3_DIM_NONE) {
    global[ndim] = g3_dim_size(c, (g3_dim)row->dim[ndim]);
    ndim++;
  }
  return g3_slice_whole(ndim, global);
}

int64_t g3_gpt_count(const g3_model_config *c) {
  int64_t total = 0;
  for (int r = 0; r < G3_ROWS; r++) {
    const g3_param_row *row = &g3_gpt_rows[r];
    if (!row_exists(c, row)) continue;
    const g3_slice whole = row_whole(c, row);
    total += g3_slice_count(&whole) * (row->places & G3_AT_BLOCK ? c->layers : 1);
  }
  return total;
}

enum { BLOCK_ROWS = G3_ROW_LNF_W - G3_ROW_LN1_W };

int g3_gpt_tensors(const g3_model_config *c) {
  return G3_ROWS - BLOCK_ROWS - (c->tied ? 1 : 0) + BLOCK_ROWS * (int)c->layers;
}

double g3_gpt_flops_per_token(const g3_model_config *c) {
  const double w = (double)c->width, layers = (double)c->layers;
  const double products = layers * (4.0 * w * w + 2.0 * w * (double)c->ffn) + w * (double)c->vocab;
  return 6.0 * products + 6.0 * layers * w * (double)c->seq;
}

/* Its place in table order over the whole model. */
static int row_number(const g3_model_config *c, g3_row_id row, int layer) {
  if (row < G3_ROW_LN1_W) return (int)row;
  if (row < G3_ROW_LNF_W) return (int)row + layer * BLOCK_ROWS;
  return (int)row + ((int)c->layers - 1) * BLOCK_ROWS;
}

static g3_param make_param(const g3_model_config *c, const g3_gpt_part *part, g3_row_id id,
                           int layer, bool copy) {
  const g3_param_row *row = &g3_gpt_rows[id];
  const bool apart = !(part->first && part->last) || part->chunks > 0;
  const bool ends = id == G3_ROW_WTE && c->tied && apart;
  g3_param p = {.number = row_number(c, id, layer), .decay = row->decay};
  if (row->places & G3_AT_BLOCK) {
    snprintf(p.name, sizeof p.name, "blocks.%d%s", layer, row->name + strlen("blocks.%d"));
    p.group = 1 + layer;
  } else {
    snprintf(p.name, sizeof p.name, "%s", row->name);
    p.group = part->first && (row->places & G3_AT_FIRST) && !copy ? 0 : 1 + (int)c->layers;
  }
  const g3_slice whole = row_whole(c, row);
  p.slice = whole;
  p.count = g3_slice_count(&whole);
  if (row->cut_tp >= 0) {
    const int d = row->cut_tp;
    const bool vocab = row->dim[d] == G3_DIM_VOCAB;
    const int64_t rows = whole.global[d];
    const int64_t each = vocab ? g3_vocab_part(rows, part->tp, part->chunks) : rows / part->tp;
    p.slice = g3_slice_cut(&whole, d, each, part->tp_rank);
    p.count = p.count / rows * each;
  }
  p.whole_on_tp = row->cut_tp < 0;
  /* with chunks each sample's gradient is summed over tp at once, but where ranks share no element
   */
  p.sum_tp = (row->sum_over & G3_OVER_SEQUENCE) && part->sequence_parallel && part->tp > 1 &&
             (part->chunks == 0 || id == G3_ROW_WPE);
  p.sum_ends = ends;
  p.copy = ends && (copy || !part->first);
  return p;
}

static bool on_part(const g3_model_config *c, const g3_gpt_part *part, const g3_param_row *row) {
  if (!row_exists(c, row)) return false;
  const bool tied_end = c->tied && part->last && (row->places & G3_AT_FIRST) != 0;
  const bool first = part->first && (row->places & G3_AT_FIRST);
  const bool last =
      part->last && (row->places & G3_AT_LAST) && (!(row->places & G3_AT_FIRST) || tied_end);
  return first || last;
}

g3_status g3_gpt_params(const g3_model_config *c, const g3_gpt_part *part, g3_param **out,
                        g3_param_place **place, int *n) {
  const int most = G3_ROWS + BLOCK_ROWS * part->nlayers;
  g3_param *params;
  g3_param_place *places;
  G3_TRY(G3_NEW_ARRAY(most, &params));
  const g3_status st = G3_NEW_ARRAY(most, &places);
  if (st != G3_OK) {
    free(params);
    return st;
  }
  int count = 0;
  for (int r = 0; r < G3_ROWS; r++) {
    if (r == G3_ROW_LN1_W) {
      for (int l = part->first_layer; l < part->first_layer + part->nlayers; l++)
        for (int b = G3_ROW_LN1_W; b < G3_ROW_LNF_W; b++) {
          places[count] = (g3_param_place){(g3_row_id)b, l};
          params[count++] = make_param(c, part, (g3_row_id)b, l, false);
        }
    }
    const bool in_block = r >= G3_ROW_LN1_W && r < G3_ROW_LNF_W;
    if (in_block || !on_part(c, part, &g3_gpt_rows[r])) continue;
    places[count] = (g3_param_place){(g3_row_id)r, 0};
    params[count++] = make_param(c, part, (g3_row_id)r, 0, false);
  }
  if (c->tied && part->first && part->last && part->chunks > 0) {
    places[count] = (g3_param_place){G3_ROW_WTE, 0};
    params[count++] = make_param(c, part, G3_ROW_WTE, 0, true);
  }
  *out = params;
  if (place)
    *place = places;
  else
    free(places);
  *n = count;
  return G3_OK;
}
