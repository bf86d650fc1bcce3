/* Text form: exact, read back as it was, and refused by line and action when it is wrong. */
#include "sched_tools.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void test_known(void **state) {
  (void)state;
  const g3_sched_shape shape = {2, 1, 2};
  g3_schedule *s = NULL;
  char text[1024];
  assert_int_equal(g3_sched_make("1f1b", &shape, &s), G3_OK);
  sched_into(s, text, sizeof text);
  assert_string_equal(text, "0F0,0SEND_F0,0F1,0SEND_F1+0RECV_B0,0B0,0RECV_B1,0B1,0REDUCE\n"
                            "1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1,1REDUCE\n");
  g3_sched_free(s);
}

static void assert_same(const g3_schedule *a, const g3_schedule *b) {
  assert_int_equal(a->ranks, b->ranks);
  assert_int_equal(a->stages, b->stages);
  assert_int_equal(a->micros, b->micros);
  for (int i = 0; i < a->stages; i++)
    assert_int_equal(a->rank_of_stage[i], b->rank_of_stage[i]);
  for (int r = 0; r < a->ranks; r++) {
    assert_int_equal(a->lane[r].count, b->lane[r].count);
    for (int i = 0; i < a->lane[r].count; i++) {
      const g3_action x = a->lane[r].act[i], y = b->lane[r].act[i];
      assert_int_equal(x.kind, y.kind);
      assert_int_equal(x.stage, y.stage);
      assert_int_equal(x.micro, y.micro);
      assert_int_equal(x.group, y.group);
    }
  }
}

static void round_trip(const g3_schedule *s) {
  static char text[1 << 18];
  g3_schedule *back = NULL;
  sched_into(s, text, sizeof text);
  if (sched_from(text, &back) != G3_OK) fail_msg("%s", g3_last_error());
  assert_same(s, back);
  g3_sched_free(back);
}

static void test_round_trip(void **state) {
  (void)state;
  for (const g3_sched_kind *k = g3_sched_kinds; k->name; k++)
    for (int ranks = 1; ranks <= 8; ranks++)
      for (int chunks = 1; chunks <= (strcmp(k->name, "1f1b") == 0 ? 1 : 2); chunks++)
        for (int micros = 1; micros <= 17; micros++) {
          const g3_sched_shape shape = {ranks, chunks, micros};
          g3_schedule *s = NULL;
          assert_int_equal(g3_sched_make(k->name, &shape, &s), G3_OK);
          round_trip(s);
          g3_sched_free(s);
          assert_int_equal(g3_sched_generate(k->name, &shape, &s), G3_OK);
          assert_int_equal(g3_sched_lower(s), G3_OK);
          round_trip(s); /* not fused: each transfer a group of its own */
          g3_sched_free(s);
        }
}

static void test_comments_and_idle_ranks(void **state) {
  (void)state;
  g3_schedule *s = NULL;
  assert_int_equal(sched_from("# made by hand\n0F0,1F0\n\n# the end\n2F0", &s), G3_OK);
  assert_int_equal(s->ranks, 3);
  assert_int_equal(s->stages, 3);
  assert_int_equal(s->micros, 1);
  assert_int_equal(s->rank_of_stage[2], 2);
  assert_int_equal(s->lane[0].count, 2);
  assert_int_equal(s->lane[1].count, 0);
  g3_sched_free(s);
}

static void test_refusals(void **state) {
  (void)state;
  static const struct {
    const char *text, *says;
  } wrong[] = {
      {"\n", "names no stage"},
      {"# nothing\n", "names no stage"},
      {"0REDUCE\n", "names no stage and micro-batch"},
      {"0F0\n1X0\n", "line 2, action 1: \"1X0\" is not an action"},
      {"0F0,F1\n", "line 1, action 2: \"F1\""},
      {"0F0,0F\n", "action 2: \"0F\""},
      {"0F-1\n", "action 1: \"0F-1\""},
      {"0F0 ,0F1\n", "action 1: \"0F0 ,0F1\""},
      {"0F0,,0F1\n", "action 2: \",0F1\""},
      {"0F0,\n", "line 1: ends in ,"},
      {"0SEND_F0+\n", "line 1: ends in +"},
      {"0F0,0REDUCE1\n", "action 2: \"0REDUCE1\""},
      {"0F99999999999\n", "action 1: \"0F99999999999\""},
      {"4294967296F0\n", "action 1"},
      {"0F2000000000\n", "fewer than one for each"},
      {"0F0+0SEND_F0\n", "action 2: \"0SEND_F0\" is joined by +"},
      {"0SEND_F0+0F0\n", "action 2: \"0F0\" is joined by +"},
      {"0F0,1F0\n1F0\n", "stage 1 computes on rank 0 and on rank 1"},
      {"0F0,2F0,0B0\n", "stage 1 of 3 computes nowhere"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    g3_schedule *s = NULL;
    if (sched_from(wrong[i].text, &s) != G3_EFORMAT) fail_msg("%s was read", wrong[i].text);
    assert_null(s);
    if (!strstr(g3_last_error(), wrong[i].says))
      fail_msg("\"%s\" lacks \"%s\"", g3_last_error(), wrong[i].says);
  }
}

static void test_file_trouble(void **state) {
  (void)state;
  const g3_sched_shape shape = {2, 1, 2};
  g3_schedule *s = NULL, *back = NULL;
  assert_int_equal(g3_sched_make("gpipe", &shape, &s), G3_OK);
  FILE *full = fopen("/dev/full", "w");
  assert_non_null(full);
  assert_int_equal(g3_sched_write(full, s), G3_EIO);
  assert_non_null(strstr(g3_last_error(), "could not be written"));
  fclose(full);
  FILE *folder = fopen(".", "r");
  assert_non_null(folder);
  assert_int_equal(g3_sched_read(folder, &back), G3_EIO);
  assert_non_null(strstr(g3_last_error(), "could not be read"));
  fclose(folder);
  assert_null(back);
  g3_sched_free(s);
}

static void test_action_text(void **state) {
  (void)state;
  char text[G3_ACT_TEXT];
  assert_string_equal(g3_act_text((g3_action){G3_ACT_W, 7, 12, -1}, text), "7W12");
  assert_string_equal(g3_act_text((g3_action){G3_ACT_REDUCE, 3, -1, -1}, text), "3REDUCE");
  assert_string_equal(g3_act_text((g3_action){(g3_act_kind)99, 3, 1, -1}, text), "3?1");
  assert_string_equal(g3_act_text((g3_action){G3_ACT_SEND_B, INT32_MIN, INT32_MIN, -1}, text),
                      "-2147483648SEND_B-2147483648");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_known),
      cmocka_unit_test(test_round_trip),
      cmocka_unit_test(test_comments_and_idle_ranks),
      cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_file_trouble),
      cmocka_unit_test(test_action_text),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
