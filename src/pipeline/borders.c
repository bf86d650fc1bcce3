#include "pipeline/borders.h"
#include "util/array.h"
#include <stdlib.h>

enum { NONE = -1 };

/* Numbers that are given out and come back; the lowest free one goes first. */
typedef struct {
  bool *taken; /* [room] */
  int most; /* how many were ever needed */
} pool;

static int take(pool *p) {
  int i = 0;
  while (p->taken[i])
    i++;
  p->taken[i] = true;
  if (i >= p->most) p->most = i + 1;
  return i;
}

static void give(pool *p, int i) {
  if (i != NONE) p->taken[i] = false;
}

/* What lives, of one stage and micro-batch. */
typedef struct {
  int slot, border[G3_BORDER_KINDS];
} cell;

typedef struct {
  const g3_schedule *s;
  int rank;
  bool train;
  cell *cells; /* [stages][micros] */
  pool *slots; /* [stages] */
  pool borders[G3_BORDER_KINDS];
} player;

static cell *at(const player *p, int stage, int micro) {
  return &p->cells[(int64_t)stage * p->s->micros + micro];
}

static int take_border(player *p, g3_border_kind kind, int stage, int micro) {
  return at(p, stage, micro)->border[kind] = take(&p->borders[kind]);
}

static void give_border(player *p, g3_border_kind kind, int stage, int micro) {
  int *held = &at(p, stage, micro)->border[kind];
  give(&p->borders[kind], *held);
  *held = NONE;
}

/* Where what `a` makes goes: to a buffer of `leaving` when the stage beside lives elsewhere, into
 * that stage's own `entering` buffer when it lives here, nowhere at an end of the pipeline. */
static g3_border result(player *p, g3_action a, int step, g3_border_kind leaving,
                        g3_border_kind entering) {
  const int beside = a.stage + step;
  if (beside < 0 || beside >= p->s->stages) return (g3_border){leaving, NONE};
  if (p->s->rank_of_stage[beside] == p->rank)
    return (g3_border){entering, take_border(p, entering, beside, a.micro)};
  return (g3_border){leaving, take_border(p, leaving, a.stage, a.micro)};
}

static g3_border held(const player *p, g3_border_kind kind, g3_action a) {
  return (g3_border){kind, at(p, a.stage, a.micro)->border[kind]};
}

static g3_border_use play_forward(player *p, g3_action a) {
  cell *c = at(p, a.stage, a.micro);
  if (p->train) c->slot = take(&p->slots[a.stage]);
  const g3_border_use u = {.slot = p->train ? c->slot : 0,
                           .from = held(p, G3_BORDER_IN, a),
                           .to = result(p, a, 1, G3_BORDER_OUT, G3_BORDER_IN)};
  if (!p->train) give_border(p, G3_BORDER_IN, a.stage, a.micro);
  return u;
}

static g3_border_use play_backward(player *p, g3_action a) {
  cell *c = at(p, a.stage, a.micro);
  g3_border_use u = {
      .slot = c->slot, .from = held(p, G3_BORDER_DOUT, a), .to = {G3_BORDER_DIN, NONE}};
  if (a.kind != G3_ACT_W) u.to = result(p, a, -1, G3_BORDER_DIN, G3_BORDER_DOUT);
  if (a.kind == G3_ACT_I) return u;
  give(&p->slots[a.stage], c->slot);
  give_border(p, G3_BORDER_IN, a.stage, a.micro);
  give_border(p, G3_BORDER_DOUT, a.stage, a.micro);
  return u;
}

static g3_border_use play_receive(player *p, g3_action a) {
  const g3_border_kind kind = a.kind == G3_ACT_RECV_F ? G3_BORDER_IN : G3_BORDER_DOUT;
  return (g3_border_use){.from = {kind, take_border(p, kind, a.stage, a.micro)},
                         .to = {kind, NONE}};
}

static g3_border_use play_send(player *p, g3_action a) {
  const g3_border_kind kind = a.kind == G3_ACT_SEND_F ? G3_BORDER_OUT : G3_BORDER_DIN;
  const g3_border_use u = {.from = held(p, kind, a), .to = {kind, NONE}};
  give_border(p, kind, a.stage, a.micro);
  return u;
}

static g3_border_use play_reduce(player *p, g3_action a) {
  (void)p;
  (void)a;
  return (g3_border_use){.from = {G3_BORDER_IN, NONE}, .to = {G3_BORDER_OUT, NONE}};
}

typedef g3_border_use (*play_fn)(player *, g3_action);

static const play_fn play[G3_ACT_KINDS] = {
    [G3_ACT_F] = play_forward,   [G3_ACT_B] = play_backward,     [G3_ACT_I] = play_backward,
    [G3_ACT_W] = play_backward,  [G3_ACT_SEND_F] = play_send,    [G3_ACT_RECV_F] = play_receive,
    [G3_ACT_SEND_B] = play_send, [G3_ACT_RECV_B] = play_receive, [G3_ACT_REDUCE] = play_reduce,
};

static void mark_last(const g3_lane *l, int stages, bool *marked, g3_border_use *use) {
  for (int i = 0; i < stages; i++)
    marked[i] = false;
  for (int i = l->count - 1; i >= 0; i--) {
    const g3_action a = l->act[i];
    if (!g3_act_table[a.kind].backward || marked[a.stage]) continue;
    use[i].last = marked[a.stage] = true;
  }
}

/* Room for the most that could ever live at once: all micro-batches of all stages. */
static g3_status player_setup(player *p) {
  const int64_t cells = (int64_t)p->s->stages * p->s->micros;
  G3_TRY(G3_NEW_ARRAY(cells, &p->cells));
  for (int64_t i = 0; i < cells; i++)
    p->cells[i] = (cell){NONE, {NONE, NONE, NONE, NONE}};
  G3_TRY(G3_NEW_ARRAY(p->s->stages, &p->slots));
  for (int i = 0; i < p->s->stages; i++)
    G3_TRY(G3_NEW_ARRAY(p->s->rank_of_stage[i] == p->rank ? p->s->micros : 0, &p->slots[i].taken));
  for (int k = 0; k < G3_BORDER_KINDS; k++)
    G3_TRY(G3_NEW_ARRAY(cells, &p->borders[k].taken));
  return G3_OK;
}

static void player_free(player *p) {
  for (int k = 0; k < G3_BORDER_KINDS; k++)
    free(p->borders[k].taken);
  for (int i = 0; p->slots && i < p->s->stages; i++)
    free(p->slots[i].taken);
  free(p->slots);
  free(p->cells);
}

static g3_status play_lane(player *p, g3_borders *b) {
  const g3_lane *l = &p->s->lane[p->rank];
  bool *marked = NULL;
  G3_TRY(G3_NEW_ARRAY(l->count, &b->use));
  G3_TRY(G3_NEW_ARRAY(p->s->stages, &marked));
  for (int i = 0; i < l->count; i++)
    p->train = p->train || g3_act_table[l->act[i].kind].backward;
  for (int i = 0; i < l->count; i++)
    b->use[i] = play[l->act[i].kind](p, l->act[i]);
  mark_last(l, p->s->stages, marked, b->use);
  free(marked);
  b->train = p->train;
  b->slots = 1;
  for (int i = 0; i < p->s->stages; i++)
    b->slots = p->slots[i].most > b->slots ? p->slots[i].most : b->slots;
  for (int k = 0; k < G3_BORDER_KINDS; k++)
    b->count[k] = p->borders[k].most;
  return G3_OK;
}

g3_status g3_borders_make(const g3_schedule *s, int rank, g3_borders **out) {
  G3_CHECK(rank >= 0 && rank < s->ranks, "rank %d of a schedule for %d", rank, s->ranks);
  player p = {.s = s, .rank = rank};
  g3_borders *b = NULL;
  g3_status st = G3_OK;
  G3_TRY_TO(done, st, G3_NEW_ARRAY(1, &b));
  G3_TRY_TO(done, st, player_setup(&p));
  G3_TRY_TO(done, st, play_lane(&p, b));
  *out = b;
  b = NULL;
done:
  g3_borders_free(b);
  player_free(&p);
  return st;
}

void g3_borders_free(g3_borders *b) {
  if (!b) return;
  free(b->use);
  free(b);
}
