/* Every op of the backend, in every dtype, on shapes that divide by nothing, against plain float64
 * C and finite differences; the matrix of worst errors over their bounds comes at the end. */
#include "ops/groups.h"
#include "ops/harness.h"

int main(void) {
  static int (*const groups[])(void) = {
      ops_group_adamw, ops_group_attention, ops_group_exact,
      ops_group_gemm,  ops_group_layernorm, ops_group_pointwise,
      ops_group_sums,  ops_group_tables,    ops_group_xent,
  };
  int failed = 0;
  for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++)
    failed += groups[i]();
  ops_print_matrix();
  return failed != 0;
}
