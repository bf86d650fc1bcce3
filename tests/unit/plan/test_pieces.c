/* What ranks save and load: over all ranks of a layout each element of each tensor is given once,
 * from where it lies; and each rank asks for all that it holds. No memory is allocated for it. */
#include "plan/pieces.h"
#include "unit/util/cm.h"
#include "util/array.h"
#include <stdlib.h>
#include <string.h>

static void ok(g3_status st) {
  if (st != G3_OK) fail_msg("%s", g3_last_error());
}

typedef struct {
  const char *tp, *pp, *dp, *zero, *tied, *dtype;
  bool sequence;
} layout;

static g3_settings *settings_of(const layout *l) {
  char *args[40] = {"--layers",
                    "3",
                    "--width",
                    "24",
                    "--heads",
                    "4",
                    "--ffn",
                    "40",
                    "--seq",
                    "8",
                    "--vocab",
                    "37",
                    "--micro-batch",
                    "2",
                    "--bucket-elements",
                    "5000",
                    "--tp",
                    (char *)l->tp,
                    "--pp",
                    (char *)l->pp,
                    "--dp",
                    (char *)l->dp,
                    "--zero",
                    (char *)l->zero,
                    "--tied",
                    (char *)l->tied,
                    "--dtype",
                    (char *)l->dtype};
  int n = 0;
  while (args[n])
    n++;
  args[n++] = "--global-batch";
  args[n++] = "24";
  if (l->sequence) args[n++] = "--sequence-parallel";
  g3_settings *s;
  ok(g3_settings_load(n, args, &s));
  ok(g3_config_world(s, s->value.parallel.tp * s->value.parallel.pp * s->value.parallel.dp));
  ok(g3_config_check(s));
  return s;
}

/* How often each element of each tensor was given. */
typedef struct {
  char name[96];
  g3_slice whole;
  uint8_t *seen;
} counted;

typedef struct {
  counted *of;
  int n, room;
} counts;

static counted *count_of(counts *c, const g3_ckpt_item *item) {
  for (int i = 0; i < c->n; i++)
    if (strcmp(c->of[i].name, item->name) == 0) return &c->of[i];
  assert_true(c->n < c->room);
  counted *fresh = &c->of[c->n++];
  memcpy(fresh->name, item->name, sizeof fresh->name);
  fresh->whole = g3_slice_whole(item->slice.ndim, item->slice.global);
  ok(G3_NEW_ARRAY(g3_slice_count(&fresh->whole), &fresh->seen));
  return fresh;
}

static void add(counts *c, const g3_ckpt_item *item) {
  counted *t = count_of(c, item);
  const int64_t n = g3_slice_count(&item->slice);
  assert_true(g3_slice_valid(&item->slice) && n > 0);
  assert_int_equal(g3_tensor_count(item->local), n);
  uint8_t *ones;
  ok(G3_NEW_ARRAY(n, &ones));
  uint8_t *part;
  const int64_t all = g3_slice_count(&t->whole);
  ok(G3_NEW_ARRAY(all, &part));
  memset(ones, 1, (size_t)n);
  assert_int_equal(g3_slice_copy(&t->whole, part, &item->slice, ones, 1), n);
  for (int64_t i = 0; i < all; i++)
    t->seen[i] = (uint8_t)(t->seen[i] + part[i]);
  free(part);
  free(ones);
}

static void expect_each(const counts *c, uint8_t times, const char *what) {
  for (int i = 0; i < c->n; i++)
    for (int64_t k = 0; k < g3_slice_count(&c->of[i].whole); k++)
      if (c->of[i].seen[k] != times)
        fail_msg("%s: element %lld of %s is there %d times, wanted %d", what, (long long)k,
                 c->of[i].name, c->of[i].seen[k], times);
}

static counts counts_make(void) {
  counts c = {.room = 256};
  ok(G3_NEW_ARRAY(c.room, &c.of));
  return c;
}

static void counts_free(counts *c) {
  for (int i = 0; i < c->n; i++)
    free(c->of[i].seen);
  free(c->of);
}

/* A piece of the weights lies where its elements lie in the parameter, in the flat space. */
static void check_address(const g3_rank *r, const g3_ckpt_item *item) {
  if (strncmp(item->name, "model/", 6) != 0) return;
  for (int i = 0; i < r->flat->nparams; i++) {
    const g3_param *p = &r->flat->param[i];
    if (strcmp(p->name, item->name + 6) != 0) continue;
    int64_t at = 0;
    for (int d = 0; d < p->slice.ndim; d++)
      at = at * p->slice.count[d] + item->slice.start[d] - p->slice.start[d];
    assert_ptr_equal(item->local.data, g3_tensor_at(r->params, p->offset + at));
    assert_int_equal(item->local.dtype, r->params.dtype);
    return;
  }
  fail_msg("%s is of no parameter of this rank", item->name);
}

static g3_rank *measured(const g3_settings *s, const g3_grid *grid, int rank) {
  g3_arenas arenas = g3_arenas_measuring();
  g3_rank *r;
  ok(g3_rank_build(&s->value, grid, g3_grid_coord(grid, rank), &arenas, &r));
  return r;
}

static void check_saved(const g3_settings *s, const g3_grid *grid, const char *what) {
  counts c = counts_make();
  const int kinds = s->value.train.dtype == G3_TYPE_BF16 ? 4 : 3;
  for (int rank = 0; rank < g3_grid_size(grid); rank++) {
    g3_rank *r = measured(s, grid, rank);
    g3_ckpt_item *items;
    int n;
    ok(g3_pieces_to_save(r, &items, &n));
    for (int i = 0; i < n; i++) {
      add(&c, &items[i]);
      check_address(r, &items[i]);
    }
    free(items);
    g3_rank_destroy(r);
  }
  assert_int_equal(c.n, kinds * g3_gpt_tensors(&s->value.model));
  expect_each(&c, 1, what);
  counts_free(&c);
}

/* A rank loads each element of its weights once; of the optimizer's state, dp ranks together hold
 * it once with ZeRO, each of them all of it without. */
static void check_loaded(const g3_settings *s, const g3_grid *grid, const char *what) {
  const bool zero = s->value.parallel.zero > 0;
  const int dp = grid->size[G3_DP];
  for (int rank = 0; rank < g3_grid_size(grid); rank++) {
    if (g3_grid_coord(grid, rank).at[G3_DP] > 0) continue;
    g3_coord at = g3_grid_coord(grid, rank);
    int64_t weights = 0, states = 0, mine = 0;
    for (int d = 0; d < dp; d++) {
      at.at[G3_DP] = d;
      g3_rank *r = measured(s, grid, g3_grid_rank(grid, at));
      g3_ckpt_item *items;
      int n;
      mine = 0;
      for (int i = 0; i < r->flat->nparams; i++)
        mine += g3_slice_count(&r->flat->param[i].slice);
      ok(g3_rank_load_items(r, &items, &n));
      for (int i = 0; i < n; i++) {
        const bool weight = strncmp(items[i].name, "model/", 6) == 0;
        *(weight ? &weights : &states) += g3_slice_count(&items[i].slice);
        check_address(r, &items[i]);
      }
      free(items);
      g3_rank_destroy(r);
    }
    const int kinds = s->value.train.dtype == G3_TYPE_BF16 ? 3 : 2;
    if (weights != mine * dp || states != mine * kinds * (zero ? 1 : dp))
      fail_msg("%s, rank %d: loads %lld weights and %lld of state, holds %lld", what, rank,
               (long long)weights, (long long)states, (long long)mine);
  }
}

static void check(const layout *l) {
  char what[96];
  g3_grid grid;
  g3_settings *s = settings_of(l);
  const g3_parallel_config *p = &s->value.parallel;
  snprintf(what, sizeof what, "tp %s pp %s dp %s zero %s tied %s %s", l->tp, l->pp, l->dp, l->zero,
           l->tied, l->dtype);
  ok(g3_grid_make((int)p->tp, (int)p->pp, (int)p->dp, (int)(p->tp * p->pp * p->dp), &grid));
  check_saved(s, &grid, what);
  check_loaded(s, &grid, what);
  g3_settings_free(s);
}

static void every_element_once(void **state) {
  (void)state;
  static const layout layouts[] = {
      {"1", "1", "1", "1", "true", "f32", false},  {"1", "1", "3", "1", "false", "bf16", false},
      {"2", "1", "2", "0", "true", "bf16", true},  {"4", "1", "2", "1", "true", "f32", true},
      {"1", "3", "1", "1", "true", "bf16", false}, {"1", "2", "4", "1", "true", "f32", false},
      {"2", "2", "2", "0", "false", "f32", false}, {"2", "2", "3", "1", "true", "bf16", true},
      {"4", "3", "1", "0", "false", "bf16", true}, {"2", "3", "4", "1", "false", "f32", false},
  };
  for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++)
    check(&layouts[i]);
}

/* Work is shared out: no rank of a dp group writes all of it. */
static void shared_over_dp(void **state) {
  (void)state;
  const layout l = {"1", "1", "4", "0", "true", "f32", false};
  g3_settings *s = settings_of(&l);
  g3_grid grid;
  int64_t least = INT64_MAX, most = 0;
  ok(g3_grid_make(1, 1, 4, 4, &grid));
  for (int rank = 0; rank < 4; rank++) {
    g3_rank *r = measured(s, &grid, rank);
    int64_t n = 0;
    for (int i = 0; i < r->nsave; i++)
      n += g3_slice_count(&r->save[i].slice);
    least = n < least ? n : least;
    most = n > most ? n : most;
    g3_rank_destroy(r);
  }
  assert_true(least > 0);
  assert_true(most < 2 * least);
  g3_settings_free(s);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_element_once),
                                     cmocka_unit_test(shared_over_dp)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
