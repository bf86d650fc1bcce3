/* What `gpt3d bench train` measures on each rank, and how it is told. */
#ifndef G3_TRAIN_BENCH_H
#define G3_TRAIN_BENCH_H
#include "device/timed.h"
#include "train/job.h"
#include <stdio.h>

/* One rank's numbers, sent to rank 0 as they are. Seconds, operations and bytes are those of the
 * fastest step (rank 0's fastest, the same on all ranks), which other work on the machine has
 * disturbed least; memory in bytes. */
typedef struct {
  int64_t steps; /* that were timed */
  double mean; /* seconds of one of them */
  double seconds; /* of the fastest */
  double loss; /* of the last */
  double products, products_alone; /* seconds: in the step, and as many in a loop of their own */
  double products_flops;
  int64_t resident_before, resident_peak; /* before memory was allocated, and until the last step */
  int64_t planned;
  int nrows;
  g3_timed_row row[G3_TIMED_ROWS];
} g3_bench_rank;

/* A shape of products, with its rate in a loop by itself. */
typedef struct {
  g3_timed_product in_step;
  double alone; /* seconds of the fastest */
} g3_bench_product;

/* What rank 0 tells. */
typedef struct {
  const g3_job *job;
  const g3_bench_rank *rank; /* [job->world->size] */
  const g3_bench_product *product; /* [nproducts], rank 0's */
  int nproducts;
  double fast_seconds; /* with --exact: the fastest step of the same run without it; else 0 */
  int64_t fast_planned; /* bytes of a rank of that run, the highest */
} g3_bench;

/* Local. The products of `in_step` [n] again, each shape in a loop of its own on the job's compute
 * stream, whose device is not being timed: seconds of one into out [n] (of a core's time where
 * ranks are more than cores). The operands stay in the caches as far as they fit, which in a step
 * they may not. */
G3_MUST_USE g3_status g3_bench_products(const g3_job *job, const g3_timed_product *in_step, int n,
                                        g3_bench_product *out);

/* Local; rank 0. Tables for people. */
G3_MUST_USE g3_status g3_bench_print(const g3_bench *b, FILE *out);

/* Local; rank 0. The same numbers as one JSON object on a line. */
G3_MUST_USE g3_status g3_bench_json(const g3_bench *b, FILE *out);

#endif
