/* Schedules as text: one rank a line, actions between commas, transfers of a group between pluses.
 */
#include "pipeline/schedule.h"
#include "util/array.h"
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static g3_status write_failed(void) {
  return G3_FAIL(G3_EIO, "the schedule could not be written: %s", strerror(errno));
}

g3_status g3_sched_write(FILE *out, const g3_schedule *s) {
  char text[G3_ACT_TEXT];
  for (int r = 0; r < s->ranks; r++) {
    const g3_lane *l = &s->lane[r];
    for (int i = 0; i < l->count; i++) {
      const bool joined = i && l->act[i].group >= 0 && l->act[i].group == l->act[i - 1].group;
      const char *between = i == 0 ? "" : joined ? "+" : ",";
      if (fprintf(out, "%s%s", between, g3_act_text(l->act[i], text)) < 0) return write_failed();
    }
    if (fputc('\n', out) == EOF) return write_failed();
  }
  return fflush(out) == 0 ? G3_OK : write_failed();
}

/* Reads a number at *p and steps over it; -1 when there is none, or it is more than an int. */
static int number(const char **p) {
  if (!isdigit((unsigned char)**p)) return -1;
  int64_t n = 0;
  while (isdigit((unsigned char)**p)) {
    n = n * 10 + (*(*p)++ - '0');
    if (n > INT_MAX - 1) return -1;
  }
  return (int)n;
}

/* The longest name that fits at `p`. */
static int kind_at(const char *p, size_t *length) {
  int found = -1;
  for (int k = 0; k < G3_ACT_KINDS; k++) {
    const size_t n = strlen(g3_act_table[k].name);
    if (strncmp(p, g3_act_table[k].name, n) != 0 || (found >= 0 && n <= *length)) continue;
    found = k;
    *length = n;
  }
  return found;
}

/* Reads one action at *p and steps over it. */
static bool action_at(const char **p, g3_action *out) {
  const int stage = number(p);
  size_t length = 0;
  const int kind = stage < 0 ? -1 : kind_at(*p, &length);
  if (kind < 0) return false;
  *p += length;
  const int micro = kind == G3_ACT_REDUCE ? -1 : number(p);
  if (kind != G3_ACT_REDUCE && micro < 0) return false;
  *out = (g3_action){(g3_act_kind)kind, stage, micro, -1};
  return true;
}

/* Reads one rank's line into a lane. */
static g3_status read_lane(const char *line, int number_of_line, g3_lane *lane) {
  const char *p = line;
  int group = -1;
  for (char before = ','; *p; before = *p++) {
    const char *start = p;
    g3_action a;
    if (!action_at(&p, &a) || (*p && *p != ',' && *p != '+'))
      return G3_FAIL(G3_EFORMAT,
                     "schedule, line %d, action %d: \"%.20s\" is not an action; wanted stage, kind "
                     "and micro-batch as in 0F0 or 1SEND_B2, with , or + between actions",
                     number_of_line, lane->count + 1, start);
    const bool moves = g3_act_table[a.kind].other != 0;
    const bool joined = before == '+';
    if (joined && (!moves || lane->act[lane->count - 1].group < 0))
      return G3_FAIL(G3_EFORMAT,
                     "schedule, line %d, action %d: \"%.20s\" is joined by +, which is for "
                     "neighbouring transfers only",
                     number_of_line, lane->count + 1, start);
    if (moves) a.group = joined ? group : ++group;
    G3_TRY(g3_lane_add(lane, a));
    if (*p && !p[1])
      return G3_FAIL(G3_EFORMAT, "schedule, line %d: ends in %c, with no action behind it",
                     number_of_line, *p);
    if (!*p) break;
  }
  return G3_OK;
}

/* Lanes while their number is not known. */
typedef struct {
  g3_lane *lane;
  int count, room;
} lanes;

static g3_status add_lane(lanes *ls, g3_lane **out) {
  if (ls->count == ls->room) {
    const int64_t room = ls->room ? (int64_t)ls->room * 2 : 16;
    g3_lane *grown = NULL;
    if (room > INT_MAX) return G3_FAIL(G3_EFORMAT, "a schedule of over %d lines", ls->room);
    G3_TRY(G3_NEW_ARRAY(room, &grown));
    if (ls->count) memcpy(grown, ls->lane, (size_t)ls->count * sizeof *grown);
    free(ls->lane);
    ls->lane = grown;
    ls->room = (int)room;
  }
  *out = &ls->lane[ls->count++];
  return G3_OK;
}

static g3_status read_lines(FILE *in, lanes *ls) {
  char *line = NULL;
  size_t room = 0;
  ssize_t length;
  g3_status st = G3_OK;
  for (int n = 1; (length = getline(&line, &room, in)) >= 0; n++) {
    if (line[0] == '#') continue;
    if (length > 0 && line[length - 1] == '\n') line[length - 1] = '\0';
    g3_lane *lane = NULL;
    G3_TRY_TO(done, st, add_lane(ls, &lane));
    G3_TRY_TO(done, st, read_lane(line, n, lane));
  }
  if (ferror(in)) st = G3_FAIL(G3_EIO, "the schedule could not be read: %s", strerror(errno));
done:
  free(line);
  return st;
}

/* Stages and micro-batches are as many as are named; a stage is where it computes. */
static g3_status place_stages(const lanes *ls, g3_schedule *s) {
  for (int i = 0; i < s->stages; i++)
    s->rank_of_stage[i] = -1;
  for (int r = 0; r < ls->count; r++)
    for (int i = 0; i < ls->lane[r].count; i++) {
      const g3_action a = ls->lane[r].act[i];
      if (!g3_act_table[a.kind].compute) continue;
      int *rank = &s->rank_of_stage[a.stage];
      if (*rank >= 0 && *rank != r)
        return G3_FAIL(G3_EFORMAT, "schedule: stage %d computes on rank %d and on rank %d", a.stage,
                       *rank, r);
      *rank = r;
    }
  for (int i = 0; i < s->stages; i++)
    if (s->rank_of_stage[i] < 0)
      return G3_FAIL(G3_EFORMAT, "schedule: stage %d of %d computes nowhere", i, s->stages);
  return G3_OK;
}

static g3_status assemble(lanes *ls, g3_schedule **out) {
  int stages = 0, micros = 0;
  int64_t actions = 0;
  for (int r = 0; r < ls->count; r++)
    for (int i = 0; i < ls->lane[r].count; i++) {
      const g3_action a = ls->lane[r].act[i];
      stages = a.stage >= stages ? a.stage + 1 : stages;
      micros = a.micro >= micros ? a.micro + 1 : micros;
      actions++;
    }
  if (stages == 0 || micros == 0)
    return G3_FAIL(G3_EFORMAT, "the schedule names no stage and micro-batch");
  if ((int64_t)stages * micros > actions)
    return G3_FAIL(G3_EFORMAT,
                   "the schedule names stage %d and micro-batch %d, but has %lld actions, fewer "
                   "than one for each stage and micro-batch",
                   stages - 1, micros - 1, (long long)actions);
  g3_schedule *s = NULL;
  G3_TRY(g3_sched_new(ls->count, stages, micros, &s));
  const g3_status st = place_stages(ls, s);
  if (st != G3_OK) {
    g3_sched_free(s);
    return st;
  }
  memcpy(s->lane, ls->lane, (size_t)ls->count * sizeof *s->lane);
  ls->count = 0; /* the lanes belong to `s` now */
  *out = s;
  return G3_OK;
}

g3_status g3_sched_read(FILE *in, g3_schedule **out) {
  lanes ls = {0};
  g3_status st = G3_OK;
  G3_TRY_TO(done, st, read_lines(in, &ls));
  G3_TRY_TO(done, st, assemble(&ls, out));
done:
  for (int r = 0; r < ls.count; r++)
    free(ls.lane[r].act);
  free(ls.lane);
  return st;
}
