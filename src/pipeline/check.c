/* Proves that a schedule can run, or says what is wrong with it. */
#include "pipeline/schedule.h"
#include "util/array.h"
#include <stdlib.h>

enum { NOWHERE = -1 };

/* A message is (direction, stage that sends, micro-batch). */
typedef struct {
  const g3_schedule *s;
  bool train; /* there are backwards */
  uint16_t *seen; /* [stages][micros] a bit a kind */
  int *reduce; /* [stages] REDUCEs seen */
  int *send, *recv; /* [2][stages][micros] of each message: where it stands in its lane */
  int *last; /* [ranks] scratch */
} proof;

static uint16_t bit(g3_act_kind k) {
  return (uint16_t)(1u << k);
}

static uint16_t *seen(const proof *p, int stage, int micro) {
  return &p->seen[(int64_t)stage * p->s->micros + micro];
}

static bool is_transfer(g3_action a) {
  return g3_act_table[a.kind].other != 0;
}

static bool is_send(g3_action a) {
  return a.kind == G3_ACT_SEND_F || a.kind == G3_ACT_SEND_B;
}

static int peer_rank(const g3_schedule *s, g3_action transfer) {
  return s->rank_of_stage[transfer.stage + g3_act_table[transfer.kind].other];
}

static int64_t message(const proof *p, g3_action a) {
  const bool backward = a.kind == G3_ACT_SEND_B || a.kind == G3_ACT_RECV_B;
  const int sender = is_send(a) ? a.stage : a.stage + g3_act_table[a.kind].other;
  return ((int64_t)backward * p->s->stages + sender) * p->s->micros + a.micro;
}

/* Whether data from `stage + step` arrives by a transfer; false at an end of the pipeline too. */
static bool remote(const g3_schedule *s, int stage, int step) {
  const int other = stage + step;
  return other >= 0 && other < s->stages && s->rank_of_stage[other] != s->rank_of_stage[stage];
}

static bool local(const g3_schedule *s, int stage, int step) {
  const int other = stage + step;
  return other >= 0 && other < s->stages && s->rank_of_stage[other] == s->rank_of_stage[stage];
}

static g3_status refuse(int rank, int at, g3_action a, const char *why) {
  char text[G3_ACT_TEXT];
  return G3_FAIL(G3_EINVAL, "schedule, rank %d, action %d: %s %s", rank, at + 1,
                 g3_act_text(a, text), why);
}

static g3_status prove_shape(const g3_schedule *s) {
  if (s->ranks < 1 || s->stages < 1 || s->micros < 1)
    return G3_FAIL(G3_EINVAL, "schedule of %d ranks, %d stages, %d micro-batches: wanted 1 or more",
                   s->ranks, s->stages, s->micros);
  for (int i = 0; i < s->stages; i++)
    if (s->rank_of_stage[i] < 0 || s->rank_of_stage[i] >= s->ranks)
      return G3_FAIL(G3_EINVAL, "schedule: stage %d lives on rank %d, but ranks are 0 to %d", i,
                     s->rank_of_stage[i], s->ranks - 1);
  return G3_OK;
}

/* What an action says of itself: names that exist, the right rank, a group only for transfers. */
static g3_status prove_form(const g3_schedule *s, int rank, int at) {
  const g3_lane *l = &s->lane[rank];
  const g3_action a = l->act[at];
  if ((unsigned)a.kind >= G3_ACT_KINDS) return refuse(rank, at, a, "is of no known kind");
  if (a.stage < 0 || a.stage >= s->stages) return refuse(rank, at, a, "names a stage that is none");
  if (s->rank_of_stage[a.stage] != rank) return refuse(rank, at, a, "is of another rank's stage");
  if (a.kind == G3_ACT_REDUCE)
    return a.micro == -1 && a.group == -1
               ? G3_OK
               : refuse(rank, at, a, "bears a micro-batch or a group, which a REDUCE has not");
  if (a.micro < 0 || a.micro >= s->micros)
    return refuse(rank, at, a, "names a micro-batch that is none");
  if (!is_transfer(a)) return a.group == -1 ? G3_OK : refuse(rank, at, a, "stands in a group");
  if (!remote(s, a.stage, g3_act_table[a.kind].other))
    return refuse(rank, at, a, "crosses to no other rank");
  if (a.group < 0) return refuse(rank, at, a, "stands in no group");
  return G3_OK;
}

/* The bits of which one must be set in this cell, or in that of the neighbour on the same rank. */
typedef struct {
  uint16_t here, beside;
  int step; /* to the neighbour */
  const char *why;
} need;

static bool met(const proof *p, g3_action a, need n) {
  if (n.here && !(*seen(p, a.stage, a.micro) & n.here)) return false;
  if (!n.beside || !local(p->s, a.stage, n.step)) return true;
  return (*seen(p, a.stage + n.step, a.micro) & n.beside) != 0;
}

/* Everything that must stand before `a` in its lane. */
static g3_status prove_needs(const proof *p, int rank, int at) {
  const g3_action a = p->s->lane[rank].act[at];
  const uint16_t forward = bit(G3_ACT_F), given = bit(G3_ACT_B) | bit(G3_ACT_I);
  const uint16_t in = remote(p->s, a.stage, -1) ? bit(G3_ACT_RECV_F) : 0;
  const uint16_t dout = remote(p->s, a.stage, 1) ? bit(G3_ACT_RECV_B) : 0;
  const need input = {in, forward, -1, "stands before its input has arrived"};
  const need gradient = {dout, given, 1, "stands before its gradient has arrived"};
  const need kept = {forward, 0, 0, "stands before its F"};
  const need result = {given, 0, 0, "stands before its B or I"};
  const need inner = {bit(G3_ACT_I), 0, 0, "stands before its I"};
  const need none = {0, 0, 0, ""};
  const need needs[G3_ACT_KINDS][2] = {
      [G3_ACT_F] = {input, none},     [G3_ACT_B] = {kept, gradient},
      [G3_ACT_I] = {kept, gradient},  [G3_ACT_W] = {inner, none},
      [G3_ACT_SEND_F] = {kept, none}, [G3_ACT_SEND_B] = {result, none},
      [G3_ACT_RECV_F] = {none, none}, [G3_ACT_RECV_B] = {none, none},
      [G3_ACT_REDUCE] = {none, none},
  };
  for (int i = 0; i < 2; i++)
    if (!met(p, a, needs[a.kind][i])) return refuse(rank, at, a, needs[a.kind][i].why);
  return G3_OK;
}

/* A whole backward excludes its halves. */
static g3_status prove_once(const proof *p, int rank, int at) {
  const g3_action a = p->s->lane[rank].act[at];
  const uint16_t halves = bit(G3_ACT_I) | bit(G3_ACT_W);
  const uint16_t also = a.kind == G3_ACT_B            ? halves
                        : (bit(a.kind) & halves) != 0 ? bit(G3_ACT_B)
                                                      : 0;
  if (*seen(p, a.stage, a.micro) & (bit(a.kind) | also)) return refuse(rank, at, a, "comes twice");
  *seen(p, a.stage, a.micro) |= bit(a.kind);
  return G3_OK;
}

/* Groups are runs of neighbours, numbered upwards. */
static g3_status prove_group(const g3_schedule *s, int rank, int at, int *group) {
  const g3_lane *l = &s->lane[rank];
  const g3_action a = l->act[at];
  const bool joined = at && l->act[at - 1].group == a.group;
  if (!joined && a.group <= *group)
    return refuse(rank, at, a, "bears the number of an earlier group");
  *group = a.group;
  return G3_OK;
}

static g3_status prove_lane(proof *p, int rank) {
  const g3_lane *l = &p->s->lane[rank];
  int group = -1;
  for (int i = 0; i < l->count; i++) {
    G3_TRY(prove_form(p->s, rank, i));
    const g3_action a = l->act[i];
    if (a.kind == G3_ACT_REDUCE) {
      if (p->reduce[a.stage]++) return refuse(rank, i, a, "comes twice");
      continue;
    }
    if (i && l->act[i - 1].kind == G3_ACT_REDUCE)
      return refuse(rank, i, a,
                    "stands behind a REDUCE, which may wait for ranks that wait for this one");
    G3_TRY(prove_needs(p, rank, i));
    G3_TRY(prove_once(p, rank, i));
    if (!is_transfer(a)) continue;
    G3_TRY(prove_group(p->s, rank, i, &group));
    int *where = is_send(a) ? p->send : p->recv;
    where[message(p, a)] = i;
  }
  return G3_OK;
}

/* The kinds that a cell must have, given how its backward is done. */
static uint16_t wanted(const proof *p, int stage, int micro) {
  const bool before = remote(p->s, stage, -1), after = remote(p->s, stage, 1);
  uint16_t w = bit(G3_ACT_F);
  if (before) w |= bit(G3_ACT_RECV_F);
  if (after) w |= bit(G3_ACT_SEND_F);
  if (!p->train) return w;
  if (before) w |= bit(G3_ACT_SEND_B);
  if (after) w |= bit(G3_ACT_RECV_B);
  const bool halves = (*seen(p, stage, micro) & (bit(G3_ACT_I) | bit(G3_ACT_W))) != 0;
  return w | (halves ? bit(G3_ACT_I) | bit(G3_ACT_W) : bit(G3_ACT_B));
}

static g3_status prove_complete(const proof *p) {
  char text[G3_ACT_TEXT];
  for (int i = 0; i < p->s->stages; i++) {
    const int rank = p->s->rank_of_stage[i];
    for (int m = 0; m < p->s->micros; m++) {
      const unsigned have = *seen(p, i, m), want = wanted(p, i, m);
      if (have == want) continue;
      const bool lacks = (want & ~have) != 0;
      const int kind = __builtin_ctz(lacks ? want & ~have : have & ~want);
      const g3_action a = {(g3_act_kind)kind, i, m, -1};
      return G3_FAIL(G3_EINVAL, "schedule, rank %d: %s is %s", rank, g3_act_text(a, text),
                     lacks ? "missing" : "there, but nothing that it belongs to");
    }
    if (p->reduce[i] != (p->train ? 1 : 0))
      return G3_FAIL(G3_EINVAL, "schedule, rank %d: %dREDUCE is %s", rank, i,
                     p->train ? "missing" : "there, but no backward");
  }
  return G3_OK;
}

/* Transfers match by order, without tags: what a rank receives from another, it must receive in the
 * order in which that one sends. */
static g3_status prove_order(const proof *p) {
  for (int r = 0; r < p->s->ranks; r++) {
    const g3_lane *l = &p->s->lane[r];
    for (int q = 0; q < p->s->ranks; q++)
      p->last[q] = NOWHERE;
    for (int i = 0; i < l->count; i++) {
      const g3_action a = l->act[i];
      if (!is_transfer(a) || is_send(a)) continue;
      const int from = peer_rank(p->s, a), sent = p->send[message(p, a)];
      if (sent < p->last[from])
        return refuse(r, i, a, "is received in another order than its sender sends in");
      p->last[from] = sent;
    }
  }
  return G3_OK;
}

/* Where each rank is: [head, tail) is the group that it waits in, empty at the end of its lane. */
typedef struct {
  int *head, *tail; /* [ranks] */
  bool *moved; /* [2][stages][micros] messages that have been */
} meeting;

static void next_group(const g3_schedule *s, meeting *m, int rank) {
  const g3_lane *l = &s->lane[rank];
  int i = m->tail[rank];
  while (i < l->count && !is_transfer(l->act[i]))
    i++;
  m->head[rank] = i;
  while (i < l->count && is_transfer(l->act[i]) && l->act[i].group == l->act[m->head[rank]].group)
    i++;
  m->tail[rank] = i;
}

/* Whether all of a rank's group has been; marks what can go because both ends are waiting. */
static bool group_goes(const proof *p, meeting *m, int rank) {
  const g3_lane *l = &p->s->lane[rank];
  bool all = true;
  for (int i = m->head[rank]; i < m->tail[rank]; i++) {
    const g3_action a = l->act[i];
    const int64_t id = message(p, a);
    const int peer = peer_rank(p->s, a), there = is_send(a) ? p->recv[id] : p->send[id];
    if (there >= m->head[peer] && there < m->tail[peer]) m->moved[id] = true;
    all = all && m->moved[id];
  }
  return all;
}

static g3_status refuse_cycle(const proof *p, const meeting *m) {
  for (int r = 0; r < p->s->ranks; r++)
    for (int i = m->head[r]; i < m->tail[r]; i++) {
      const g3_action a = p->s->lane[r].act[i];
      if (m->moved[message(p, a)]) continue;
      const int peer = peer_rank(p->s, a);
      char mine[G3_ACT_TEXT], theirs[G3_ACT_TEXT];
      return G3_FAIL(G3_EINVAL,
                     "schedule, rank %d, action %d: %s waits for ever: rank %d first waits in the "
                     "group that begins with %s, and the waits go round in a circle",
                     r, i + 1, g3_act_text(a, mine), peer,
                     g3_act_text(p->s->lane[peer].act[m->head[peer]], theirs));
    }
  G3_CHECK(false, "a stuck schedule in which nobody waits");
}

/* Runs the schedule with sends that block until they are received. */
static g3_status prove_meetings(const proof *p) {
  const g3_schedule *s = p->s;
  meeting m = {0};
  g3_status st = G3_OK;
  G3_TRY_TO(done, st, G3_NEW_ARRAY(s->ranks, &m.head));
  G3_TRY_TO(done, st, G3_NEW_ARRAY(s->ranks, &m.tail));
  G3_TRY_TO(done, st, G3_NEW_ARRAY((int64_t)2 * s->stages * s->micros, &m.moved));
  for (int r = 0; r < s->ranks; r++)
    next_group(s, &m, r);
  for (bool moving = true, waiting = true; waiting;) {
    moving = waiting = false;
    for (int r = 0; r < s->ranks; r++) {
      if (m.head[r] == m.tail[r]) continue;
      waiting = true;
      if (!group_goes(p, &m, r)) continue;
      next_group(s, &m, r);
      moving = true;
    }
    if (waiting && !moving) {
      st = refuse_cycle(p, &m);
      break;
    }
  }
done:
  free(m.moved);
  free(m.tail);
  free(m.head);
  return st;
}

static int peak(const g3_lane *l) {
  int live = 0, most = 0;
  for (int i = 0; i < l->count; i++) {
    live +=
        (l->act[i].kind == G3_ACT_F) - (l->act[i].kind == G3_ACT_B) - (l->act[i].kind == G3_ACT_W);
    most = live > most ? live : most;
  }
  return most;
}

static bool has_backward(const g3_schedule *s) {
  for (int r = 0; r < s->ranks; r++)
    for (int i = 0; i < s->lane[r].count; i++) {
      const unsigned kind = s->lane[r].act[i].kind;
      if (kind < G3_ACT_KINDS && g3_act_table[kind].backward) return true;
    }
  return false;
}

g3_status g3_sched_check(const g3_schedule *s, int *peak_live) {
  G3_TRY(prove_shape(s));
  proof p = {.s = s, .train = has_backward(s)};
  const int64_t cells = (int64_t)s->stages * s->micros;
  g3_status st = G3_OK;
  G3_TRY_TO(done, st, G3_NEW_ARRAY(cells, &p.seen));
  G3_TRY_TO(done, st, G3_NEW_ARRAY(s->stages, &p.reduce));
  G3_TRY_TO(done, st, G3_NEW_ARRAY(2 * cells, &p.send));
  G3_TRY_TO(done, st, G3_NEW_ARRAY(2 * cells, &p.recv));
  G3_TRY_TO(done, st, G3_NEW_ARRAY(s->ranks, &p.last));
  for (int r = 0; r < s->ranks; r++)
    G3_TRY_TO(done, st, prove_lane(&p, r));
  G3_TRY_TO(done, st, prove_complete(&p));
  G3_TRY_TO(done, st, prove_order(&p));
  G3_TRY_TO(done, st, prove_meetings(&p));
  for (int r = 0; peak_live && r < s->ranks; r++)
    peak_live[r] = p.train ? peak(&s->lane[r]) : 0;
done:
  free(p.last);
  free(p.recv);
  free(p.send);
  free(p.reduce);
  free(p.seen);
  return st;
}
