/* Where a step's time goes. A device's table of ops is replaced, while it lasts, by one that
 * forwards to it and keeps time; what is not timed pays nothing. Each op first completes what is
 * pending on its stream, in the same order as it would itself, so that waiting for transfers is
 * counted where it belongs: to the transfer. On a backend that only enqueues, each op is waited
 * for, which makes the step slower than it is without. */
#ifndef G3_DEVICE_TIMED_H
#define G3_DEVICE_TIMED_H
#include "device/device.h"

enum { G3_TIMED_ROWS = 80, G3_TIMED_PRODUCTS = 64 };

/* What the work of an operation is counted in. */
typedef enum {
  G3_TIMED_FLOPS, /* floating-point operations */
  G3_TIMED_BYTES, /* bytes read and written */
  G3_TIMED_MOVED /* bytes that go from rank to rank, or wait to */
} g3_timed_unit;

/* Time of one operation. */
typedef struct {
  char name[40]; /* "gemm", "attention_bwd", "all_reduce tp" */
  g3_timed_unit unit;
  int64_t calls;
  double seconds, work;
} g3_timed_row;

/* Time of the products of one shape: C [m, n] = op(A) [m, k] op(B) [k, n], cut into blocks or not.
 */
typedef struct {
  int64_t m, n, k;
  g3_gemm_cut cut;
  int64_t block;
  g3_dtype input, output;
  bool trans_a, trans_b, accumulate, bias;
  int64_t calls;
  double seconds;
} g3_timed_product;

typedef struct g3_timed g3_timed;

/* Local. Replaces the table of `dev`, whose streams may exist already, and begins to count.
 * Borrows dev until g3_timed_end, which gives it back its table; a device that is being timed
 * cannot be closed. */
G3_MUST_USE g3_status g3_timed_begin(g3_device *dev, g3_timed **out);
void g3_timed_end(g3_timed *t); /* NULL is fine */

/* Local. All counts become 0; rows stay. */
void g3_timed_clear(g3_timed *t);

/* Local. What was counted so far; owned by t. At most G3_TIMED_ROWS rows, in no order, some without
 * calls. At most G3_TIMED_PRODUCTS shapes: products of further ones are in the row alone. */
const g3_timed_row *g3_timed_rows(const g3_timed *t, int *n);
const g3_timed_product *g3_timed_products(const g3_timed *t, int *n);

/* For layers above that time what they do themselves (comm/timed.h). All local.
 *
 * A new row, its number in *out; G3_EINVAL when all are taken. */
G3_MUST_USE g3_status g3_timed_add_row(g3_timed *t, const char *name, g3_timed_unit unit, int *out);

/* Adds to a row. */
void g3_timed_add(g3_timed *t, int row, int64_t calls, double seconds, double work);

/* What has become pending on `s` since the last call belongs to `row`: waiting for it counts
 * there. */
void g3_timed_claim(g3_timed *t, const g3_stream *s, int row);

/* As g3_stream_drain, with each wait counted to the row that it was claimed for. */
G3_MUST_USE g3_status g3_timed_drain(g3_timed *t, g3_stream *s);

#endif
