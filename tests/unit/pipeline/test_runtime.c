/* The runtime with stages and a communicator that write down what they were asked to do. */
#include "pipeline/runtime.h"
#include "sched_tools.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 2, WIDTH = 3, MAX_STAGES = 8, LOG_BYTES = 4096 };

/* The border memory and the diary of one run. */
typedef struct {
  char log[LOG_BYTES];
  g3_bucket_done done; /* as run was given it */
  int fail_at; /* the stage whose backward fails; -1: none */
  float memory[1024] __attribute__((aligned(G3_ARENA_ALIGN)));
} diary;

static void note(diary *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void note(diary *d, const char *fmt, ...) {
  const size_t used = strlen(d->log);
  va_list args;
  va_start(args, fmt);
  const int n = vsnprintf(d->log + used, LOG_BYTES - used, fmt, args);
  va_end(args);
  assert_true(n >= 0 && used + (size_t)n < LOG_BYTES);
}

/* "-" for none, else the number of the buffer in the arena. */
static const char *buffer_name(const diary *d, g3_tensor t, char name[8]) {
  if (!t.data) return "-";
  assert_int_equal(t.ndim, 2);
  assert_int_equal(t.dim[0], ROWS);
  assert_int_equal(t.dim[1], WIDTH);
  assert_int_equal(t.dtype, G3_BF16);
  const ptrdiff_t offset = (char *)t.data - (const char *)d->memory;
  assert_int_equal(offset % G3_ARENA_ALIGN, 0);
  snprintf(name, 8, "%d", (int)(offset / G3_ARENA_ALIGN));
  return name;
}

static g3_status note_forward(g3_stage *stage, g3_stream *s, int micro, int slot, g3_tensor in,
                              g3_tensor out, bool keep) {
  (void)s;
  diary *d = stage->impl;
  char a[8], b[8];
  note(d, "%dF%d slot %d, %s to %s%s\n", stage->index, micro, slot, buffer_name(d, in, a),
       buffer_name(d, out, b), keep ? "" : ", not kept");
  return G3_OK;
}

static g3_status note_backward(g3_stage *stage, g3_stream *s, int micro, int slot, g3_tensor dout,
                               g3_tensor din, g3_bwd_part part, g3_bucket_done done, void *ctx) {
  (void)s;
  static const char letter[] = {[G3_BWD_INPUT] = 'I', [G3_BWD_WEIGHT] = 'W', [G3_BWD_BOTH] = 'B'};
  diary *d = stage->impl;
  char a[8], b[8];
  assert_ptr_equal(ctx, d);
  assert_true(done == NULL || done == d->done);
  note(d, "%d%c%d slot %d, %s to %s%s\n", stage->index, letter[part], micro, slot,
       buffer_name(d, dout, a), buffer_name(d, din, b), done ? ", last" : "");
  if (stage->index == d->fail_at) return G3_FAIL(G3_EBACKEND, "stage %d failed", stage->index);
  return G3_OK;
}

static const g3_stage_ops stage_ops = {note_forward, note_backward};

static g3_status note_exchange(g3_comm *c, g3_stream *s, const g3_xfer *x, int n) {
  (void)s;
  diary *d = c->impl;
  char name[8];
  for (int i = 0; i < n; i++)
    note(d, "%s%s rank %d, %s", i ? " + " : "", x[i].dir == G3_SEND ? "to" : "from", x[i].peer,
         buffer_name(d, x[i].t, name));
  note(d, "\n");
  return G3_OK;
}

static const g3_comm_ops comm_ops = {.name = "diary", .exchange = note_exchange};

static g3_status note_done(void *ctx, int bucket, g3_stream *s) {
  (void)ctx;
  (void)bucket;
  (void)s;
  return G3_OK;
}

static g3_status note_reduce(void *ctx, int stage, g3_stream *s) {
  (void)s;
  note(ctx, "%dREDUCE\n", stage);
  return G3_OK;
}

/* Runs rank `rank` of a schedule with or without callbacks; the schedule is freed. */
static g3_status run(g3_schedule *s, int rank, bool callbacks, int fail_at, diary *d) {
  memset(d, 0, sizeof *d);
  d->fail_at = fail_at;
  d->done = callbacks ? note_done : NULL;
  g3_arenas measured = g3_arenas_measuring(), real = g3_arenas_measuring();
  const g3_runtime_spec spec = {s, rank, ROWS, WIDTH, G3_BF16};
  g3_runtime *r = NULL;
  assert_int_equal(g3_runtime_create(&spec, &measured, &r), G3_OK);
  g3_runtime_destroy(r);
  const size_t need = measured.of[G3_MEM_BOUNDARY].used;
  assert_true(need <= sizeof d->memory);
  for (int c = 0; c < G3_MEM_CLASSES; c++)
    real.of[c] = (g3_arena){(char *)d->memory, 0, c == G3_MEM_BOUNDARY ? need : 0};
  assert_int_equal(g3_runtime_create(&spec, &real, &r), G3_OK);
  assert_int_equal(real.of[G3_MEM_BOUNDARY].used, need);

  g3_comm comm = {.ops = &comm_ops, .rank = rank, .size = s->ranks, .impl = d};
  g3_stream stream = {0};
  g3_stage stage[MAX_STAGES], *mine[MAX_STAGES];
  int n = 0;
  for (int i = 0; i < s->stages; i++)
    if (s->rank_of_stage[i] == rank) {
      stage[n] = (g3_stage){&stage_ops, i, d};
      mine[n] = &stage[n];
      n++;
    }
  g3_runtime_attach(r, mine, n, &comm, &stream);
  const g3_status st = g3_runtime_run(r, d->done, callbacks ? note_reduce : NULL, d);
  g3_runtime_destroy(r);
  g3_sched_free(s);
  return st;
}

static g3_schedule *made(const char *kind, int ranks, int chunks, int micros) {
  const g3_sched_shape shape = {ranks, chunks, micros};
  g3_schedule *s = NULL;
  assert_int_equal(g3_sched_make(kind, &shape, &s), G3_OK);
  return s;
}

/* Buffers are numbered as they are taken: in, out, dout, din. */
static void test_middle_rank(void **state) {
  (void)state;
  static diary d;
  assert_int_equal(run(made("1f1b", 3, 1, 2), 1, true, -1, &d), G3_OK);
  assert_string_equal(d.log, "from rank 0, 0\n"
                             "1F0 slot 0, 0 to 2\n"
                             "from rank 0, 1 + to rank 2, 2\n"
                             "1F1 slot 1, 1 to 2\n"
                             "to rank 2, 2 + from rank 2, 3\n"
                             "1B0 slot 0, 3 to 4\n"
                             "to rank 0, 4 + from rank 2, 3\n"
                             "1B1 slot 1, 3 to 4, last\n"
                             "to rank 0, 4\n"
                             "1REDUCE\n");
}

static void test_ends(void **state) {
  (void)state;
  static diary d;
  assert_int_equal(run(made("gpipe", 2, 1, 2), 0, true, -1, &d), G3_OK);
  assert_string_equal(d.log, "0F0 slot 0, - to 0\n"
                             "to rank 1, 0\n"
                             "0F1 slot 1, - to 0\n"
                             "to rank 1, 0 + from rank 1, 1\n"
                             "0B0 slot 0, 1 to -\n"
                             "from rank 1, 1\n"
                             "0B1 slot 1, 1 to -, last\n"
                             "0REDUCE\n");
  assert_int_equal(run(made("forward", 2, 1, 2), 1, false, -1, &d), G3_OK);
  assert_string_equal(d.log, "from rank 0, 0\n"
                             "1F0 slot 0, 0 to -, not kept\n"
                             "from rank 0, 0\n"
                             "1F1 slot 0, 0 to -, not kept\n");
}

/* Stages that are neighbours on one rank hand over without a transfer. */
static void test_alone(void **state) {
  (void)state;
  static diary d;
  assert_int_equal(run(made("gpipe", 1, 3, 1), 0, true, -1, &d), G3_OK);
  assert_string_equal(d.log, "0F0 slot 0, - to 0\n"
                             "1F0 slot 0, 0 to 1\n"
                             "2F0 slot 0, 1 to -\n"
                             "2B0 slot 0, - to 2, last\n"
                             "1B0 slot 0, 2 to 3, last\n"
                             "0B0 slot 0, 3 to -, last\n"
                             "2REDUCE\n1REDUCE\n0REDUCE\n");
}

static void test_split_backward(void **state) {
  (void)state;
  static diary d;
  g3_schedule *s = NULL;
  assert_int_equal(sched_from("0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE\n"
                              "1RECV_F0,1F0,1I0,1SEND_B0,1W0,1REDUCE\n",
                              &s),
                   G3_OK);
  assert_int_equal(g3_sched_check(s, NULL), G3_OK);
  assert_int_equal(run(s, 1, true, -1, &d), G3_OK);
  assert_string_equal(d.log, "from rank 0, 0\n"
                             "1F0 slot 0, 0 to -\n"
                             "1I0 slot 0, - to 1\n"
                             "to rank 0, 1\n"
                             "1W0 slot 0, - to -, last\n"
                             "1REDUCE\n");
}

/* A failure ends the run at once, with the stage's message; callbacks may be left out. */
static void test_failure_and_no_callbacks(void **state) {
  (void)state;
  static diary d;
  assert_int_equal(run(made("1f1b", 1, 1, 2), 0, false, 0, &d), G3_EBACKEND);
  assert_string_equal(g3_last_error(), "stage 0 failed");
  assert_string_equal(d.log, "0F0 slot 0, - to -\n0B0 slot 0, - to -\n");
  assert_int_equal(run(made("1f1b", 1, 1, 1), 0, false, -1, &d), G3_OK);
  assert_string_equal(d.log, "0F0 slot 0, - to -\n0B0 slot 0, - to -\n");
}

static void test_slots(void **state) {
  (void)state;
  g3_schedule *s = made("1f1b", 4, 1, 3);
  for (int rank = 0; rank < 4; rank++) {
    g3_arenas arenas = g3_arenas_measuring();
    const g3_runtime_spec spec = {s, rank, 1 << 20, 1 << 14, G3_F32};
    g3_runtime *r = NULL;
    assert_int_equal(g3_runtime_create(&spec, &arenas, &r), G3_OK);
    assert_int_equal(g3_runtime_slots(r), 4 - rank < 3 ? 4 - rank : 3);
    assert_int_equal(arenas.of[G3_MEM_BOUNDARY].used % ((size_t)4 << 34), 0);
    for (int c = 0; c < G3_MEM_CLASSES; c++)
      if (c != G3_MEM_BOUNDARY) assert_int_equal(arenas.of[c].used, 0);
    g3_runtime_destroy(r);
  }
  g3_runtime_destroy(NULL);
  g3_sched_free(s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_middle_rank), cmocka_unit_test(test_ends),
      cmocka_unit_test(test_alone),       cmocka_unit_test(test_split_backward),
      cmocka_unit_test(test_slots),       cmocka_unit_test(test_failure_and_no_callbacks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
