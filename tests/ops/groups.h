/* The groups of tests, one a file: each runs all of its own and returns how many failed. */
#ifndef G3_TESTS_OPS_GROUPS_H
#define G3_TESTS_OPS_GROUPS_H

int ops_group_adamw(void);
int ops_group_attention(void);
int ops_group_exact(void);
int ops_group_gemm(void);
int ops_group_layernorm(void);
int ops_group_pointwise(void);
int ops_group_sums(void);
int ops_group_tables(void);
int ops_group_xent(void);

#endif
