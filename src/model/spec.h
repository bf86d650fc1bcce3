/* The parameter table: one row a parameter. Allocation, initial values, gradient sums, the global
 * norm, checkpoints, counts and memory plans all read it. */
#ifndef G3_MODEL_SPEC_H
#define G3_MODEL_SPEC_H
#include "config/config.h"
#include "parallel/flat.h"
#include "parallel/mesh.h"

/* What the size of a dimension is. */
typedef enum {
  G3_DIM_NONE,
  G3_DIM_THREE,
  G3_DIM_WIDTH,
  G3_DIM_FFN,
  G3_DIM_VOCAB,
  G3_DIM_SEQ
} g3_dim;

/* A set: the tied embedding lives at both ends. */
enum { G3_AT_FIRST = 1, G3_AT_BLOCK = 2, G3_AT_LAST = 4 };

/* What a gradient must still be summed over after backward; a set. */
enum {
  G3_OVER_SEQUENCE = 1 /* tp, under sequence parallelism */,
  G3_OVER_ENDS = 2 /* when tied */
};

/* Rows of the table, in its order: the order of the whole model's parameters. */
typedef enum {
  G3_ROW_WTE,
  G3_ROW_WPE,
  G3_ROW_LN1_W,
  G3_ROW_LN1_B,
  G3_ROW_QKV_W,
  G3_ROW_QKV_B,
  G3_ROW_PROJ_W,
  G3_ROW_PROJ_B,
  G3_ROW_LN2_W,
  G3_ROW_LN2_B,
  G3_ROW_UP_W,
  G3_ROW_UP_B,
  G3_ROW_DOWN_W,
  G3_ROW_DOWN_B,
  G3_ROW_LNF_W,
  G3_ROW_LNF_B,
  G3_ROW_HEAD,
  G3_ROWS
} g3_row_id;

/* One parameter, or one of each block. */
typedef struct {
  const char *name; /* with %d where the block's number goes */
  uint8_t places;
  uint8_t dim[G3_MAX_DIMS]; /* g3_dim, outermost first */
  int8_t cut_tp; /* the dimension that tensor parallelism cuts; -1: whole on every rank */
  uint8_t sum_over;
  float init_std; /* > 0: normal; 0: zeros; < 0: ones */
  bool scaled; /* init_std / sqrt(2 * layers), for the layers that write into the residual stream */
  bool decay;
  bool untied_only; /* the row exists when embeddings are not tied */
} g3_param_row;

/* The table, by row. */
extern const g3_param_row g3_gpt_rows[G3_ROWS];

/* Elements of a dimension in the whole model. */
int64_t g3_dim_size(const g3_model_config *c, g3_dim d);

/* Rows of the local vocabulary of one of tp ranks, padding included; cut into `chunks` blocks of
 * one size over all ranks when that is not 0. */
int64_t g3_vocab_part(int64_t vocab, int tp, int64_t chunks);

/* Parameters of the whole model, each once; and how many tensors they are. */
int64_t g3_gpt_count(const g3_model_config *c);
int g3_gpt_tensors(const g3_model_config *c);

/* Floating-point operations of forward and backward for one token: 6 * (parameters in products) +
 * 6 * layers * width * seq for causal attention counted half (as in Narayanan et al., SC'21,
 * equation 3, but without recompute and without the masked half). Look-ups cost none; the head
 * always counts. */
double g3_gpt_flops_per_token(const g3_model_config *c);

/* Which part of the model a rank holds. */
typedef struct {
  int first_layer, nlayers;
  bool first, last;
  int tp, tp_rank;
  bool sequence_parallel;
  int64_t chunks; /* exact: into how many blocks the whole model's products are cut; 0 = not */
} g3_gpt_part;

/* Local. The parameters that a part holds, in table order, with their slices; *out freed with
 * free(). Their groups: 0 = the embeddings, 1 + layer = a block, layers + 1 = the end. When chunks
 * are given, a tied head has its copy of the embedding on a lone stage, too, as the last parameter:
 * its gradient is then a sum of its own in any layout. `row` (may be NULL) gets the row and layer
 * of each. */
typedef struct {
  g3_row_id row;
  int layer;
} g3_param_place;
G3_MUST_USE g3_status g3_gpt_params(const g3_model_config *c, const g3_gpt_part *part,
                                    g3_param **out, g3_param_place **place, int *n);

#endif
