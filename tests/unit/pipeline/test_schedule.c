/* Every schedule over many shapes: what it holds, that it is proved, and how long it takes. */
#include "sched_tools.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MAX_RANKS = 8, MAX_MICROS = 17, MAX_CHUNKS = 3, MAX_STAGES = MAX_RANKS * MAX_CHUNKS };
enum { STUCK = -1 };

static g3_schedule *make(const char *kind, int ranks, int chunks, int micros) {
  const g3_sched_shape shape = {ranks, chunks, micros};
  g3_schedule *s = NULL;
  if (g3_sched_make(kind, &shape, &s) != G3_OK) fail_msg("%s", g3_last_error());
  return s;
}

static int chunks_of(const char *kind) {
  return strcmp(kind, "1f1b") == 0 ? 1 : MAX_CHUNKS;
}

static bool trains(const char *kind) {
  return strcmp(kind, "forward") != 0;
}

typedef void (*shape_test)(const char *kind, const g3_schedule *s);

static void over_shapes(shape_test test) {
  for (const g3_sched_kind *k = g3_sched_kinds; k->name; k++)
    for (int ranks = 1; ranks <= MAX_RANKS; ranks++)
      for (int chunks = 1; chunks <= chunks_of(k->name); chunks++)
        for (int micros = 1; micros <= MAX_MICROS; micros++) {
          g3_schedule *s = make(k->name, ranks, chunks, micros);
          assert_int_equal(s->stages, ranks * chunks);
          test(k->name, s);
          g3_sched_free(s);
        }
}

static void check_peaks(const char *kind, const g3_schedule *s) {
  int peak[MAX_RANKS];
  assert_int_equal(g3_sched_check(s, peak), G3_OK);
  for (int r = 0; r < s->ranks; r++) {
    const int later = s->ranks - r;
    int want = s->micros * (s->stages / s->ranks);
    if (!trains(kind)) want = 0;
    if (strcmp(kind, "1f1b") == 0) want = later < s->micros ? later : s->micros;
    assert_int_equal(peak[r], want);
  }
}

static void test_peaks(void **state) {
  (void)state;
  over_shapes(check_peaks);
}

static void check_counts(const char *kind, const g3_schedule *s) {
  int64_t count[G3_ACT_KINDS] = {0};
  for (int r = 0; r < s->ranks; r++)
    for (int i = 0; i < s->lane[r].count; i++)
      count[s->lane[r].act[i].kind]++;
  const int64_t train = trains(kind), computes = (int64_t)s->stages * s->micros;
  const int64_t borders = s->ranks == 1 ? 0 : (int64_t)(s->stages - 1) * s->micros;
  assert_int_equal(count[G3_ACT_F], computes);
  assert_int_equal(count[G3_ACT_B], train * computes);
  assert_int_equal(count[G3_ACT_I] + count[G3_ACT_W], 0);
  assert_int_equal(count[G3_ACT_SEND_F], borders);
  assert_int_equal(count[G3_ACT_RECV_F], borders);
  assert_int_equal(count[G3_ACT_SEND_B], train * borders);
  assert_int_equal(count[G3_ACT_RECV_B], train * borders);
  assert_int_equal(count[G3_ACT_REDUCE], train * s->stages);
}

static void test_counts(void **state) {
  (void)state;
  over_shapes(check_counts);
}

/* Sums over micro-batches come out with the same bits whatever the schedule. */
static void check_micro_order(const char *kind, const g3_schedule *s) {
  (void)kind;
  int next[2][MAX_STAGES] = {{0}};
  for (int r = 0; r < s->ranks; r++)
    for (int i = 0; i < s->lane[r].count; i++) {
      const g3_action a = s->lane[r].act[i];
      if (!g3_act_table[a.kind].compute) continue;
      assert_int_equal(a.micro, next[g3_act_table[a.kind].backward][a.stage]++);
    }
}

static void test_micro_order(void **state) {
  (void)state;
  over_shapes(check_micro_order);
}

/* A run in which a transfer takes no time, but its sender waits for the receiver. */
typedef struct {
  const g3_schedule *s;
  int64_t clock[MAX_RANKS];
  int head[MAX_RANKS], tail[MAX_RANKS]; /* the group that a rank waits in */
  int64_t posted[G3_ACT_KINDS][MAX_STAGES][MAX_MICROS]; /* when; -1 before */
} sim;

static int64_t *post(sim *m, g3_act_kind kind, int stage, int micro) {
  return &m->posted[kind][stage][micro];
}

static void reach_group(sim *m, int r) {
  const g3_lane *l = &m->s->lane[r];
  int i = m->tail[r];
  for (; i < l->count && l->act[i].group < 0; i++)
    m->clock[r] += g3_act_table[l->act[i].kind].cost;
  m->head[r] = i;
  for (; i < l->count && l->act[i].group == l->act[m->head[r]].group; i++)
    *post(m, l->act[i].kind, l->act[i].stage, l->act[i].micro) = m->clock[r];
  m->tail[r] = i;
}

static bool leave_group(sim *m, int r) {
  static const g3_act_kind opposite[G3_ACT_KINDS] = {[G3_ACT_SEND_F] = G3_ACT_RECV_F,
                                                     [G3_ACT_RECV_F] = G3_ACT_SEND_F,
                                                     [G3_ACT_SEND_B] = G3_ACT_RECV_B,
                                                     [G3_ACT_RECV_B] = G3_ACT_SEND_B};
  if (m->head[r] == m->tail[r]) return false;
  int64_t end = m->clock[r];
  for (int i = m->head[r]; i < m->tail[r]; i++) {
    const g3_action a = m->s->lane[r].act[i];
    const int64_t theirs =
        *post(m, opposite[a.kind], a.stage + g3_act_table[a.kind].other, a.micro);
    if (theirs < 0) return false;
    end = theirs > end ? theirs : end;
  }
  m->clock[r] = end;
  reach_group(m, r);
  return true;
}

/* When the last rank is done; STUCK when they wait for each other. */
static int64_t makespan(const g3_schedule *s) {
  static sim m;
  memset(&m, 0, sizeof m);
  memset(m.posted, -1, sizeof m.posted);
  m.s = s;
  for (int r = 0; r < s->ranks; r++)
    reach_group(&m, r);
  for (bool moving = true; moving;) {
    moving = false;
    for (int r = 0; r < s->ranks; r++)
      moving = leave_group(&m, r) || moving;
  }
  int64_t last = 0;
  for (int r = 0; r < s->ranks; r++) {
    if (m.tail[r] < s->lane[r].count || m.head[r] < m.tail[r]) return STUCK;
    last = m.clock[r] > last ? m.clock[r] : last;
  }
  return last;
}

/* Waiting sends included, no schedule of one chunk takes longer than its bubble: (micros + ranks -
 * 1) of a forward, and of a backward, which costs twice as much. */
static void check_time(const char *kind, const g3_schedule *s) {
  if (s->stages != s->ranks) return;
  assert_int_equal(makespan(s), (s->micros + s->ranks - 1) * (trains(kind) ? 3 : 1));
}

static void test_time(void **state) {
  (void)state;
  over_shapes(check_time);
}

/* A schedule with split backwards: 1F1B whose I goes on at once and whose W waits (Qi et al., "Zero
 * bubble pipeline parallelism", ICLR'24, section 2.3). */
static void test_split_backward(void **state) {
  (void)state;
  enum { RANKS = 3, MICROS = 4 };
  g3_schedule *s = NULL;
  assert_int_equal(g3_sched_new(RANKS, RANKS, MICROS, &s), G3_OK);
  for (int r = 0; r < RANKS; r++) {
    s->rank_of_stage[r] = r;
    const int ahead = RANKS - 1 - r;
    for (int m = 0; m < MICROS + RANKS - 1; m++) {
      const struct {
        g3_act_kind kind;
        int micro;
      } now[] = {{G3_ACT_F, m}, {G3_ACT_I, m - ahead}, {G3_ACT_W, m - RANKS + 1}};
      for (int k = 0; k < 3; k++)
        if (now[k].micro >= 0 && now[k].micro < MICROS)
          assert_int_equal(g3_lane_add(&s->lane[r], (g3_action){now[k].kind, r, now[k].micro, -1}),
                           G3_OK);
    }
  }
  assert_int_equal(g3_sched_lower(s), G3_OK);
  g3_sched_fuse(s);
  int peak[RANKS];
  assert_int_equal(g3_sched_check(s, peak), G3_OK);
  for (int r = 0; r < RANKS; r++)
    assert_int_equal(peak[r], RANKS);
  const int64_t time = makespan(s);
  assert_true(time != STUCK && time < (MICROS + RANKS - 1) * 3);
  g3_sched_free(s);
}

/* The check finds a circle of waits exactly when a run gets stuck in one. */
static void test_disturbed(void **state) {
  (void)state;
  int good = 0, stuck = 0;
  for (uint32_t seed = 0; seed < 4000; seed++) {
    g3_schedule *s = make("1f1b", 2 + (int)(seed % 4), 1, 1 + (int)(seed % 7));
    sched_disturb(s, seed);
    const bool passes = g3_sched_check(s, NULL) == G3_OK;
    const bool circle = !passes && strstr(g3_last_error(), "circle");
    if (passes || circle) assert_int_equal(makespan(s) != STUCK, passes);
    good += passes;
    stuck += circle;
    g3_sched_free(s);
  }
  assert_true(good > 100 && stuck > 100);
}

static void refuses_make(const char *kind, int ranks, int chunks, int micros, const char *says) {
  const g3_sched_shape shape = {ranks, chunks, micros};
  g3_schedule *const untouched = (g3_schedule *)&shape;
  g3_schedule *s = untouched;
  assert_int_equal(g3_sched_make(kind, &shape, &s), G3_EINVAL);
  assert_ptr_equal(s, untouched);
  if (!strstr(g3_last_error(), says)) fail_msg("\"%s\" lacks \"%s\"", g3_last_error(), says);
}

static void test_refusals(void **state) {
  (void)state;
  refuses_make("zigzag", 2, 1, 2, "\"zigzag\"; use one of gpipe, 1f1b, forward");
  refuses_make("1f1b", 2, 2, 4, "one chunk a rank, but 2");
  refuses_make("gpipe", 0, 1, 4, "at least 1 rank");
  refuses_make("gpipe", 2, 1, 0, "2, 2 and 0");
  refuses_make("gpipe", 2, -1, 1, "2, -2 and 1");
  refuses_make("gpipe", 1 << 16, 1 << 16, 1, "too many stages");
  refuses_make("gpipe", 1 << 10, 1, 1 << 20, "too long");
}

/* Computes in an order that cannot run, and lists that are lowered already, are left as they were.
 */
static void test_lower_refuses(void **state) {
  (void)state;
  g3_schedule *s = NULL;
  assert_int_equal(g3_sched_new(2, 2, 2, &s), G3_OK);
  s->rank_of_stage[1] = 1;
  const g3_action first[] = {{G3_ACT_F, 0, 0, -1}, {G3_ACT_B, 0, 0, -1}, {G3_ACT_F, 0, 1, -1}};
  for (int i = 0; i < 3; i++)
    assert_int_equal(g3_lane_add(&s->lane[0], first[i]), G3_OK);
  assert_int_equal(g3_lane_add(&s->lane[1], (g3_action){G3_ACT_F, 1, 1, -1}), G3_OK);
  assert_int_equal(g3_sched_lower(s), G3_EINVAL);
  assert_non_null(strstr(g3_last_error(), "rank 0: 0B0 waits"));
  assert_int_equal(s->lane[0].count, 3);
  assert_int_equal(s->lane[1].count, 1);
  assert_int_equal(g3_lane_add(&s->lane[1], (g3_action){G3_ACT_REDUCE, 1, -1, -1}), G3_OK);
  assert_int_equal(g3_sched_lower(s), G3_EINVAL);
  assert_non_null(strstr(g3_last_error(), "found 1REDUCE"));
  g3_sched_free(s);
  g3_sched_free(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_peaks),          cmocka_unit_test(test_counts),
      cmocka_unit_test(test_micro_order),    cmocka_unit_test(test_time),
      cmocka_unit_test(test_split_backward), cmocka_unit_test(test_disturbed),
      cmocka_unit_test(test_refusals),       cmocka_unit_test(test_lower_refuses),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
