/* Schedules damaged by hand: each is refused, with rank and action named. */
#include "sched_tools.h"
#include "util/array.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void assert_says(const char *says, const char *of) {
  if (!strstr(g3_last_error(), says))
    fail_msg("%s\ngave \"%s\", which lacks \"%s\"", of, g3_last_error(), says);
}

static void test_damaged_text(void **state) {
  (void)state;
  static const struct {
    const char *text, *says;
  } damaged[] = {
      /* missing */
      {"0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE\n1RECV_F0,1F0,1SEND_B0,1REDUCE\n",
       "rank 1, action 3: 1SEND_B0 stands before its B or I"},
      {"0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE\n1RECV_F0,1F0,1B0,1REDUCE\n",
       "rank 1: 1SEND_B0 is missing"},
      {"0F0,0F1,0B1,0REDUCE\n", "rank 0: 0B0 is missing"},
      {"0F0,0F1,0B0,0I1,0REDUCE\n", "rank 0: 0W1 is missing"},
      {"0F0,0B0\n", "rank 0: 0REDUCE is missing"},
      {"0F0\n1RECV_F0,1F0\n", "rank 0: 0SEND_F0 is missing"},
      {"0F0,0SEND_F0\n1F0\n", "rank 1, action 1: 1F0 stands before its input"},
      /* twice */
      {"0F0,0F0,0B0,0REDUCE\n", "rank 0, action 2: 0F0 comes twice"},
      {"0F0,0I0,0B0,0REDUCE\n", "action 3: 0B0 comes twice"},
      {"0F0,0B0,0I0,0W0,0REDUCE\n", "action 3: 0I0 comes twice"},
      {"0F0,0I0,0W0,0W0,0REDUCE\n", "action 4: 0W0 comes twice"},
      {"0F0,0B0,0REDUCE,0REDUCE\n", "action 4: 0REDUCE comes twice"},
      {"0F0,0SEND_F0+0SEND_F0\n1RECV_F0,1F0\n", "rank 0, action 3: 0SEND_F0 comes twice"},
      /* too early */
      {"0B0,0F0,0REDUCE\n", "rank 0, action 1: 0B0 stands before its F"},
      {"0F0,0W0,0I0,0REDUCE\n", "action 2: 0W0 stands before its I"},
      {"0F0,1F0,0B0,1B0,0REDUCE,1REDUCE\n", "action 3: 0B0 stands before its gradient"},
      {"1F0,0F0\n", "action 1: 1F0 stands before its input"},
      {"0SEND_F0,0F0\n1RECV_F0,1F0\n", "rank 0, action 1: 0SEND_F0 stands before its F"},
      {"0F0,0SEND_F0,0B0,0RECV_B0,0REDUCE\n1RECV_F0,1F0,1B0,1SEND_B0,1REDUCE\n",
       "rank 0, action 3: 0B0 stands before its gradient"},
      {"0F0,0REDUCE,0B0\n", "rank 0, action 3: 0B0 stands behind a REDUCE"},
      {"0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE\n1RECV_F0,1F0,1B0,1REDUCE,1SEND_B0\n",
       "rank 1, action 5: 1SEND_B0 stands behind a REDUCE"},
      /* what belongs to nothing */
      {"0F0,0REDUCE\n", "rank 0: 0REDUCE is there, but no backward"},
      {"0F0,0SEND_F0,0RECV_B0\n1RECV_F0,1F0\n", "rank 0: 0RECV_B0 is there, but nothing"},
      {"0F0,0SEND_F0,1F0\n", "action 2: 0SEND_F0 crosses to no other rank"},
      {"0RECV_F0,0F0\n", "action 1: 0RECV_F0 crosses to no other rank"},
      {"0F0,1RECV_F0,0SEND_F0\n1F0\n", "rank 0, action 2: 1RECV_F0 is of another rank's stage"},
      /* order */
      {"0F0,0F1,0SEND_F0,0SEND_F1\n1RECV_F1,1RECV_F0,1F0,1F1\n",
       "rank 1, action 2: 1RECV_F0 is received in another order"},
      {"0F0,0F1,0SEND_F0+0SEND_F1\n1RECV_F1+1RECV_F0,1F0,1F1\n",
       "rank 1, action 2: 1RECV_F0 is received in another order"},
      /* waits that go round: each sends before it receives */
      {"0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1,0REDUCE\n"
       "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1,1REDUCE\n",
       "rank 0, action 4: 0SEND_F1 waits for ever: rank 1 first waits in the group that begins "
       "with 1SEND_B0"},
  };
  for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++) {
    g3_schedule *s = NULL;
    if (sched_from(damaged[i].text, &s) != G3_OK) fail_msg("%s", g3_last_error());
    if (g3_sched_check(s, NULL) != G3_EINVAL) fail_msg("%s was accepted", damaged[i].text);
    assert_says(damaged[i].says, damaged[i].text);
    g3_sched_free(s);
  }
}

/* The circle of the last case above is gone when the two transfers are one exchange. */
static void test_group_mends_circle(void **state) {
  (void)state;
  g3_schedule *s = NULL;
  int peak[2] = {-1, -1};
  assert_int_equal(sched_from("0F0,0SEND_F0,0F1,0SEND_F1+0RECV_B0,0B0,0RECV_B1,0B1,0REDUCE\n"
                              "1RECV_F0,1F0,1B0,1SEND_B0+1RECV_F1,1F1,1B1,1SEND_B1,1REDUCE\n",
                              &s),
                   G3_OK);
  if (g3_sched_check(s, peak) != G3_OK) fail_msg("%s", g3_last_error());
  assert_int_equal(peak[0], 2);
  assert_int_equal(peak[1], 1);
  g3_sched_free(s);
}

/* Damage that text cannot express. */
static void test_damaged_fields(void **state) {
  (void)state;
  static const struct {
    int rank, at;
    g3_action to;
    const char *says;
  } damage[] = {
      {0, 0, {(g3_act_kind)42, 0, 0, -1}, "rank 0, action 1: 0?0 is of no known kind"},
      {0, 0, {G3_ACT_F, 2, 0, -1}, "rank 0, action 1: 2F0 names a stage that is none"},
      {0, 0, {G3_ACT_F, -1, 0, -1}, "action 1: -1F0 names a stage"},
      {0, 0, {G3_ACT_F, 1, 0, -1}, "action 1: 1F0 is of another rank's stage"},
      {0, 0, {G3_ACT_F, 0, 2, -1}, "action 1: 0F2 names a micro-batch that is none"},
      {0, 0, {G3_ACT_F, 0, 0, 0}, "action 1: 0F0 stands in a group"},
      {0, 1, {G3_ACT_SEND_F, 0, 0, -1}, "action 2: 0SEND_F0 stands in no group"},
      {0, 3, {G3_ACT_SEND_F, 0, 1, 0}, "action 4: 0SEND_F1 bears the number of an earlier group"},
      {0, 8, {G3_ACT_REDUCE, 0, 0, -1}, "action 9: 0REDUCE0 bears a micro-batch or a group"},
  };
  const g3_sched_shape shape = {2, 1, 2};
  for (size_t i = 0; i < sizeof damage / sizeof *damage; i++) {
    g3_schedule *s = NULL;
    assert_int_equal(g3_sched_make("1f1b", &shape, &s), G3_OK);
    assert_true(damage[i].at < s->lane[damage[i].rank].count);
    s->lane[damage[i].rank].act[damage[i].at] = damage[i].to;
    assert_int_equal(g3_sched_check(s, NULL), G3_EINVAL);
    assert_says(damage[i].says, "a changed field");
    g3_sched_free(s);
  }
}

static void test_shape(void **state) {
  (void)state;
  const g3_sched_shape shape = {2, 1, 2};
  g3_schedule *s = NULL;
  assert_int_equal(g3_sched_make("gpipe", &shape, &s), G3_OK);
  s->rank_of_stage[1] = 2;
  assert_int_equal(g3_sched_check(s, NULL), G3_EINVAL);
  assert_says("stage 1 lives on rank 2, but ranks are 0 to 1", "a stage on no rank");
  s->rank_of_stage[1] = 1;
  s->micros = 0;
  assert_int_equal(g3_sched_check(s, NULL), G3_EINVAL);
  assert_says("0 micro-batches", "no micro-batches");
  g3_sched_free(s);
}

/* Any one action left out of a good schedule is missed. */
static void test_each_action_needed(void **state) {
  (void)state;
  const g3_sched_shape shape = {3, 1, 4};
  for (const g3_sched_kind *k = g3_sched_kinds; k->name; k++) {
    g3_schedule *s = NULL;
    assert_int_equal(g3_sched_make(k->name, &shape, &s), G3_OK);
    for (int r = 0; r < s->ranks; r++) {
      g3_lane *l = &s->lane[r];
      const g3_lane whole = *l;
      g3_action *less = NULL;
      assert_int_equal(G3_NEW_ARRAY(whole.count, &less), G3_OK);
      for (int gone = 0; gone < whole.count; gone++) {
        memcpy(less, whole.act, (size_t)gone * sizeof *less);
        memcpy(less + gone, whole.act + gone + 1, (size_t)(whole.count - gone - 1) * sizeof *less);
        *l = (g3_lane){less, whole.count - 1, whole.room};
        assert_int_equal(g3_sched_check(s, NULL), G3_EINVAL);
      }
      *l = whole;
      free(less);
    }
    assert_int_equal(g3_sched_check(s, NULL), G3_OK);
    g3_sched_free(s);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_damaged_text),       cmocka_unit_test(test_group_mends_circle),
      cmocka_unit_test(test_damaged_fields),     cmocka_unit_test(test_shape),
      cmocka_unit_test(test_each_action_needed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
