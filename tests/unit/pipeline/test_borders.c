/* Slots and border buffers: every lane is played on buffers that hold names instead of numbers. */
#include "pipeline/borders.h"
#include "sched_tools.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { MAX_RANKS = 8, MAX_MICROS = 17, MAX_BUFFERS = 256, MAX_STAGES = 24, NOTHING = -1 };

/* The name of what stage `stage` makes of micro-batch `micro`. */
static int name_of(bool backward, int stage, int micro) {
  return (backward * MAX_STAGES + stage) * MAX_MICROS + micro;
}

typedef struct {
  const g3_schedule *s;
  const g3_borders *b;
  int holds[G3_BORDER_KINDS][MAX_BUFFERS];
  int slot[MAX_STAGES][MAX_MICROS]; /* whose forward a stage's slot holds */
} board;

static int *place(board *d, g3_border at) {
  assert_in_range(at.index, 0, d->b->count[at.kind] - 1);
  assert_true(at.index < MAX_BUFFERS);
  return &d->holds[at.kind][at.index];
}

/* An end of the pipeline has no buffer, elsewhere it holds the neighbour's result. */
static void assert_holds(board *d, g3_border at, g3_action a, int step) {
  const int beside = a.stage + step;
  if (beside < 0 || beside >= d->s->stages)
    assert_int_equal(at.index, NOTHING);
  else
    assert_int_equal(*place(d, at), name_of(step > 0, beside, a.micro));
}

static void write_result(board *d, g3_border to, g3_action a, int step) {
  const int beside = a.stage + step;
  if (beside < 0 || beside >= d->s->stages)
    assert_int_equal(to.index, NOTHING);
  else
    *place(d, to) = name_of(step < 0, a.stage, a.micro);
}

/* Where each forward read its input, which must still be there in the backward. */
typedef g3_border inputs[MAX_STAGES][MAX_MICROS];

static void play_compute(board *d, g3_action a, const g3_border_use *u, inputs in) {
  assert_in_range(u->slot, 0, d->b->slots - 1);
  int *slot = &d->slot[a.stage][u->slot];
  if (a.kind == G3_ACT_F) {
    assert_holds(d, u->from, a, -1);
    write_result(d, u->to, a, 1);
    in[a.stage][a.micro] = u->from;
    if (d->b->train) assert_int_equal(*slot, NOTHING);
    if (d->b->train) *slot = a.micro;
    return;
  }
  assert_int_equal(*slot, a.micro);
  assert_holds(d, u->from, a, 1);
  assert_holds(d, in[a.stage][a.micro], a, -1);
  if (a.kind != G3_ACT_W) write_result(d, u->to, a, -1);
  if (a.kind == G3_ACT_W) assert_int_equal(u->to.index, NOTHING);
  if (a.kind != G3_ACT_I) *slot = NOTHING;
}

/* Transfers of a group run in no order: none may touch what another writes. */
static void assert_alone(const g3_lane *l, const g3_borders *b, int at) {
  for (int i = at - 1; i >= 0 && l->act[i].group == l->act[at].group; i--)
    assert_false(b->use[i].from.kind == b->use[at].from.kind &&
                 b->use[i].from.index == b->use[at].from.index);
}

static void play_transfer(board *d, const g3_lane *l, int at) {
  const g3_action a = l->act[at];
  const g3_border_use *u = &d->b->use[at];
  assert_alone(l, d->b, at);
  const bool backward = a.kind == G3_ACT_SEND_B || a.kind == G3_ACT_RECV_B;
  if (a.kind == G3_ACT_SEND_F || a.kind == G3_ACT_SEND_B)
    assert_int_equal(*place(d, u->from), name_of(backward, a.stage, a.micro));
  else
    *place(d, u->from) = name_of(backward, a.stage + (backward ? 1 : -1), a.micro);
}

static void play(const g3_schedule *s, int rank, const g3_borders *b) {
  static board d;
  static inputs in;
  d.s = s;
  d.b = b;
  memset(d.holds, -1, sizeof d.holds);
  memset(d.slot, -1, sizeof d.slot);
  int lasts[MAX_STAGES] = {0};
  const g3_lane *l = &s->lane[rank];
  for (int i = 0; i < l->count; i++) {
    const g3_action a = l->act[i];
    if (g3_act_table[a.kind].backward) assert_int_equal(lasts[a.stage], 0);
    lasts[a.stage] += b->use[i].last;
    if (g3_act_table[a.kind].compute) play_compute(&d, a, &b->use[i], in);
    if (g3_act_table[a.kind].other != 0) play_transfer(&d, l, i);
  }
  for (int i = 0; i < s->stages; i++)
    assert_int_equal(lasts[i], b->train && s->rank_of_stage[i] == rank);
}

static void play_all(const g3_schedule *s) {
  for (int r = 0; r < s->ranks; r++) {
    g3_borders *b = NULL;
    assert_int_equal(g3_borders_make(s, r, &b), G3_OK);
    play(s, r, b);
    g3_borders_free(b);
  }
}

static void test_contents(void **state) {
  (void)state;
  for (const g3_sched_kind *k = g3_sched_kinds; k->name; k++)
    for (int ranks = 1; ranks <= MAX_RANKS; ranks++)
      for (int chunks = 1; chunks <= (strcmp(k->name, "1f1b") == 0 ? 1 : 3); chunks++)
        for (int micros = 1; micros <= MAX_MICROS; micros++) {
          const g3_sched_shape shape = {ranks, chunks, micros};
          g3_schedule *s = NULL;
          assert_int_equal(g3_sched_make(k->name, &shape, &s), G3_OK);
          play_all(s);
          g3_sched_free(s);
        }
}

/* Split backwards, and two neighbouring stages on one rank of several. */
static void test_made_by_hand(void **state) {
  (void)state;
  static const char *const lists[] = {
      "0F0,0F1,0SEND_F0+0SEND_F1+0RECV_B0,0I0,0RECV_B1,0I1,0W0,0W1,0REDUCE\n"
      "1RECV_F0,1F0,1I0,1SEND_B0+1RECV_F1,1F1,1I1,1SEND_B1,1W0,1W1,1REDUCE\n",
      "0F0,0SEND_F0,3RECV_F0,3F0,3B0,3SEND_B0,0RECV_B0,0B0,3REDUCE,0REDUCE\n"
      "1RECV_F0,1F0,2F0,2SEND_F0,2RECV_B0,2B0,1B0,1SEND_B0,2REDUCE,1REDUCE\n",
  };
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
    g3_schedule *s = NULL;
    assert_int_equal(sched_from(lists[i], &s), G3_OK);
    if (g3_sched_check(s, NULL) != G3_OK) fail_msg("%s", g3_last_error());
    play_all(s);
    g3_sched_free(s);
  }
}

/* Whatever the check lets pass can be played. */
static void test_disturbed(void **state) {
  (void)state;
  int good = 0, bad = 0;
  for (uint32_t seed = 0; seed < 4000; seed++) {
    const g3_sched_shape shape = {2 + (int)(seed % 3), 1 + (int)(seed % 2), 1 + (int)(seed % 5)};
    g3_schedule *s = NULL;
    assert_int_equal(g3_sched_make(seed % 4 == 1 ? "forward" : "gpipe", &shape, &s), G3_OK);
    sched_disturb(s, seed);
    const bool passes = g3_sched_check(s, NULL) == G3_OK;
    if (passes) play_all(s);
    good += passes;
    bad += !passes;
    g3_sched_free(s);
  }
  assert_true(good > 100 && bad > 100);
}

static void assert_borders(const char *kind, int ranks, int micros, int rank, int slots, int in,
                           int out, int dout, int din) {
  const g3_sched_shape shape = {ranks, 1, micros};
  g3_schedule *s = NULL;
  g3_borders *b = NULL;
  assert_int_equal(g3_sched_make(kind, &shape, &s), G3_OK);
  assert_int_equal(g3_borders_make(s, rank, &b), G3_OK);
  assert_int_equal(b->slots, slots);
  assert_int_equal(b->count[G3_BORDER_IN], in);
  assert_int_equal(b->count[G3_BORDER_OUT], out);
  assert_int_equal(b->count[G3_BORDER_DOUT], dout);
  assert_int_equal(b->count[G3_BORDER_DIN], din);
  g3_borders_free(b);
  g3_sched_free(s);
}

/* No rank takes more than it needs. */
static void test_counts(void **state) {
  (void)state;
  assert_borders("1f1b", 1, 8, 0, 1, 0, 0, 0, 0);
  assert_borders("1f1b", 4, 8, 0, 4, 0, 1, 1, 0);
  assert_borders("1f1b", 4, 8, 3, 1, 2, 0, 0, 1);
  assert_borders("gpipe", 2, 8, 1, 8, 8, 0, 0, 1);
  assert_borders("forward", 3, 8, 1, 1, 1, 1, 0, 0);
}

/* Slots are what the check promises. */
static void test_slots(void **state) {
  (void)state;
  for (const g3_sched_kind *k = g3_sched_kinds; k->name; k++)
    for (int ranks = 1; ranks <= MAX_RANKS; ranks++)
      for (int micros = 1; micros <= MAX_MICROS; micros++) {
        const g3_sched_shape shape = {ranks, 1, micros};
        g3_schedule *s = NULL;
        int peak[MAX_RANKS];
        assert_int_equal(g3_sched_make(k->name, &shape, &s), G3_OK);
        assert_int_equal(g3_sched_check(s, peak), G3_OK);
        for (int r = 0; r < ranks; r++) {
          g3_borders *b = NULL;
          assert_int_equal(g3_borders_make(s, r, &b), G3_OK);
          assert_int_equal(b->slots, peak[r] > 1 ? peak[r] : 1);
          g3_borders_free(b);
        }
        g3_sched_free(s);
      }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_contents),  cmocka_unit_test(test_made_by_hand),
      cmocka_unit_test(test_disturbed), cmocka_unit_test(test_counts),
      cmocka_unit_test(test_slots),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
