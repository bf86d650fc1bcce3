/* The CPU backend: its ops, whose contracts device.h states, and what their files share. Compute is
 * done when a call returns. Every op begins with G3_TRY(g3_stream_drain(s)). */
#ifndef G3_DEVICE_CPU_CPU_H
#define G3_DEVICE_CPU_CPU_H
#include "device/device.h"
#include "util/array.h"

/* memory.c */
g3_status g3_cpu_alloc(g3_device *dev, size_t bytes, void **out);
void g3_cpu_release(g3_device *dev, void *p);
g3_status g3_cpu_copy(g3_stream *s, g3_tensor dst, g3_tensor src);
g3_status g3_cpu_fill(g3_stream *s, g3_tensor dst, float value);
g3_status g3_cpu_cast(g3_stream *s, g3_tensor dst, g3_tensor src);

/* order.c */
g3_status g3_cpu_stream_create(g3_device *dev, bool side, g3_tensor workspace, g3_stream **out);
void g3_cpu_stream_destroy(g3_stream *s);
g3_status g3_cpu_sync(g3_stream *s);
g3_status g3_cpu_event_create(g3_device *dev, g3_event **out);
void g3_cpu_event_destroy(g3_event *e);
g3_status g3_cpu_record(g3_stream *s, g3_event *e);
g3_status g3_cpu_wait(g3_stream *s, g3_event *e);

/* gemm.c, reduce.c */
size_t g3_cpu_workspace(const g3_workload *w);
g3_status g3_cpu_gemm(g3_stream *s, g3_tensor c, g3_tensor a, g3_tensor b,
                      const g3_gemm_spec *spec);
/* gemm.c: the product as one, `alone` on one thread's primitives. blocks.c: with spec->cut. */
g3_status g3_cpu_gemm_whole(g3_stream *s, g3_tensor c, g3_tensor a, g3_tensor b,
                            const g3_gemm_spec *spec, bool alone);
g3_status g3_cpu_gemm_blocks(g3_stream *s, g3_tensor c, g3_tensor a, g3_tensor b,
                             const g3_gemm_spec *spec);
/* blocks.c: bytes of workspace beyond those of gemm.c. */
size_t g3_cpu_blocks_workspace(const g3_workload *w);
enum { G3_CPU_WIDEN_BYTES = 3 * 512 * (512 + 16) * 4 }; /* of gemm.c's, where it has any */
g3_status g3_cpu_column_sum(g3_stream *s, g3_tensor sum, g3_tensor x);
g3_status g3_cpu_sum(g3_stream *s, g3_tensor out, g3_tensor x);
g3_status g3_cpu_sum_squares(g3_stream *s, g3_tensor out, g3_tensor x);

/* exact.c */
g3_status g3_cpu_add(g3_stream *s, g3_tensor y, g3_tensor x);
g3_status g3_cpu_tree_sum(g3_stream *s, g3_tensor out, g3_tensor parts);
g3_status g3_cpu_exact_sum(g3_stream *s, g3_tensor sum, g3_tensor x, bool squares);
g3_status g3_cpu_exact_value(g3_stream *s, g3_tensor out, g3_tensor sums);

/* layernorm.c, pointwise.c */
g3_status g3_cpu_layernorm(g3_stream *s, g3_tensor y, g3_tensor mean, g3_tensor rstd, g3_tensor x,
                           g3_tensor w, g3_tensor b);
g3_status g3_cpu_layernorm_bwd(g3_stream *s, g3_tensor dx, g3_tensor dres, g3_tensor dw,
                               g3_tensor db, g3_tensor dy, g3_tensor x, g3_tensor w, g3_tensor mean,
                               g3_tensor rstd);
g3_status g3_cpu_gelu(g3_stream *s, g3_tensor y, g3_tensor x);
g3_status g3_cpu_gelu_bwd(g3_stream *s, g3_tensor dx, g3_tensor dy, g3_tensor x);
g3_status g3_cpu_bias_dropout_add(g3_stream *s, g3_tensor y, g3_tensor x, g3_tensor bias,
                                  g3_tensor residual, const g3_dropout_spec *spec);
g3_status g3_cpu_dropout_bwd(g3_stream *s, g3_tensor dx, g3_tensor dy, const g3_dropout_spec *spec);

/* attention.c */
g3_status g3_cpu_attention(g3_stream *s, g3_tensor o, g3_tensor lse, g3_tensor q, g3_tensor k,
                           g3_tensor v, const g3_attention_spec *spec);
g3_status g3_cpu_attention_bwd(g3_stream *s, g3_tensor dq, g3_tensor dk, g3_tensor dv,
                               g3_tensor dout, g3_tensor o, g3_tensor lse, g3_tensor q, g3_tensor k,
                               g3_tensor v, const g3_attention_spec *spec);

/* embedding.c */
g3_status g3_cpu_embedding(g3_stream *s, g3_tensor y, g3_tensor ids, g3_tensor table,
                           int64_t first);
g3_status g3_cpu_embedding_bwd(g3_stream *s, g3_tensor dtable, g3_tensor ids, g3_tensor dy,
                               int64_t first);
g3_status g3_cpu_position(g3_stream *s, g3_tensor x, g3_tensor table, int64_t row, int64_t seq);
g3_status g3_cpu_position_bwd(g3_stream *s, g3_tensor dtable, g3_tensor dx, int64_t row,
                              int64_t seq);

/* xent.c */
g3_status g3_cpu_xent_peak(g3_stream *s, g3_tensor peak, g3_tensor logits, int64_t valid);
g3_status g3_cpu_xent_sums(g3_stream *s, g3_tensor sums, g3_tensor logits, g3_tensor peak,
                           g3_tensor targets, int64_t first, int64_t valid);
g3_status g3_cpu_xent_loss(g3_stream *s, g3_tensor loss, g3_tensor dlogits, g3_tensor logits,
                           g3_tensor peak, g3_tensor sums, g3_tensor targets, int64_t first,
                           int64_t valid, float scale);

/* adamw.c */
g3_status g3_cpu_control(g3_stream *s, g3_tensor control, g3_tensor sums, float max_norm);
g3_status g3_cpu_adamw(g3_stream *s, g3_tensor p, g3_tensor low, g3_tensor m, g3_tensor v,
                       g3_tensor g, const g3_adamw_spec *spec, g3_tensor control);

/* How many threads an op that touches `work` elements should use, for num_threads() of an OpenMP
 * region: all of the device's, or 1 where starting them would cost more than they save. Never a
 * number between, since libgomp ends and restarts threads whenever a region's size changes. */
static inline int g3_cpu_threads(const g3_stream *s, int64_t work) {
  return work < 16384 ? 1 : s->dev->threads;
}

#endif
