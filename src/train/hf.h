/* Models of Hugging Face's transformers, to and from checkpoints. */
#ifndef G3_TRAIN_HF_H
#define G3_TRAIN_HF_H
#include "util/status.h"

/* Local. Reads the GPT-2 in `dir` (config.json with model.safetensors, or with its index and
 * shards) and writes it as step 0, weights only, in the folder `out`, which must not have
 * checkpoints yet. Tensors that are missing, too many, of another shape or type, or given twice are
 * all printed, and nothing is written. Weights that are not finite are G3_ENUMERIC. */
G3_MUST_USE g3_status g3_hf_import(const char *dir, const char *out);

/* Local. Writes the newest checkpoint of `ckpt` into the folder `out`, which must not have them
 * yet, as config.json and model.safetensors: whole or not at all. Of a bf16 run it is the f32
 * master weights. */
G3_MUST_USE g3_status g3_hf_export(const char *ckpt, const char *out);

#endif
