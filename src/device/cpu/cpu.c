#include "device/cpu/cpu.h"
#include "device/backend.h"
#include "device/cpu/product.h"

const g3_device_ops g3_cpu_ops = {
    .name = "cpu",
    .alloc = g3_cpu_alloc,
    .release = g3_cpu_release,
    .copy = g3_cpu_copy,
    .fill = g3_cpu_fill,
    .cast = g3_cpu_cast,
    .stream_create = g3_cpu_stream_create,
    .stream_destroy = g3_cpu_stream_destroy,
    .sync = g3_cpu_sync,
    .event_create = g3_cpu_event_create,
    .event_destroy = g3_cpu_event_destroy,
    .record = g3_cpu_record,
    .wait = g3_cpu_wait,
    .workspace = g3_cpu_workspace,
    .gemm = g3_cpu_gemm,
    .column_sum = g3_cpu_column_sum,
    .layernorm = g3_cpu_layernorm,
    .layernorm_bwd = g3_cpu_layernorm_bwd,
    .gelu = g3_cpu_gelu,
    .gelu_bwd = g3_cpu_gelu_bwd,
    .attention = g3_cpu_attention,
    .attention_bwd = g3_cpu_attention_bwd,
    .embedding = g3_cpu_embedding,
    .embedding_bwd = g3_cpu_embedding_bwd,
    .position = g3_cpu_position,
    .position_bwd = g3_cpu_position_bwd,
    .bias_dropout_add = g3_cpu_bias_dropout_add,
    .dropout_bwd = g3_cpu_dropout_bwd,
    .xent_peak = g3_cpu_xent_peak,
    .xent_sums = g3_cpu_xent_sums,
    .xent_loss = g3_cpu_xent_loss,
    .sum = g3_cpu_sum,
    .sum_squares = g3_cpu_sum_squares,
    .add = g3_cpu_add,
    .tree_sum = g3_cpu_tree_sum,
    .exact_sum = g3_cpu_exact_sum,
    .exact_value = g3_cpu_exact_value,
    .control = g3_cpu_control,
    .adamw = g3_cpu_adamw,
};

/* A CPU device's own state is its table of products; one host thread uses it at a time. */
static g3_status cpu_open(g3_device *dev) {
  g3_products *products;
  G3_TRY(g3_products_create(dev->threads, &products));
  dev->impl = products;
  return G3_OK;
}

static void cpu_close(g3_device *dev) {
  g3_products_destroy(dev->impl);
}

const g3_backend g3_cpu_backend = {&g3_cpu_ops, cpu_open, cpu_close};
