/* What the runtime needs of a model: it knows neither layers nor GPT. */
#ifndef G3_PIPELINE_STAGE_H
#define G3_PIPELINE_STAGE_H
#include "device/device.h"

typedef struct g3_stage g3_stage;

/* Parts of a backward. A whole B is one call, layer by layer. */
typedef enum { G3_BWD_INPUT = 1, G3_BWD_WEIGHT = 2, G3_BWD_BOTH = 3 } g3_bwd_part;

/* Called as soon as a bucket's last gradient of the step is enqueued on `s`: its reduction may
 * start. */
typedef g3_status (*g3_bucket_done)(void *ctx, int bucket, g3_stream *s);

typedef struct {
  /* in: none on the first stage; out: none on the last. `slot` is where saved activations go;
   * `keep` is false in evaluation: then nothing is saved and the last stage adds the loss at once.
   * A stage may go on reading `in` until the backward of the same micro-batch returns. */
  g3_status (*forward)(g3_stage *, g3_stream *s, int micro, int slot, g3_tensor in, g3_tensor out,
                       bool keep);
  /* dout: none on the last stage, which makes the loss here; din: none on the first. Adds to the
   * gradients of weights. `done` is NULL but in the step's last backward of this stage. */
  g3_status (*backward)(g3_stage *, g3_stream *s, int micro, int slot, g3_tensor dout,
                        g3_tensor din, g3_bwd_part part, g3_bucket_done done, void *ctx);
} g3_stage_ops;

struct g3_stage {
  const g3_stage_ops *ops;
  int index; /* global stage number */
  void *impl;
};

#endif
