#include "train/args.h"
#include "train/session.h"
#include "util/text.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FLAGS = 16 };

/* A third of the word may differ, but never all of it. */
const char *g3_args_nearest(const char *word, const char *const *names, int n) {
  const int length = (int)strnlen(word, 63);
  int best = length / 3 + 2;
  const char *near = NULL;
  for (int i = 0; i < n; i++) {
    const int d = g3_text_distance(word, names[i]);
    if (d >= best || d >= length) continue;
    best = d;
    near = names[i];
  }
  return near;
}

static int count_flags(const g3_args *a) {
  int n = 0;
  while (a->flags && a->flags[n].flag)
    n++;
  G3_CHECK(n <= MOST_FLAGS, "%s has more than %d flags", a->command, (int)MOST_FLAGS);
  return n;
}

static void print_help(const g3_args *a) {
  printf("usage: %s", a->command);
  for (int i = 0; i < count_flags(a); i++) {
    const g3_arg *f = &a->flags[i];
    printf(f->required ? " %s %s" : " [%s %s]", f->flag, f->meta);
  }
  printf("%s%s\n%s\n", *a->words ? " " : "", a->words, a->about);
  for (int i = 0; i < count_flags(a); i++) {
    char head[64];
    snprintf(head, sizeof head, "%s %s", a->flags[i].flag, a->flags[i].meta);
    printf("  %-22s %s\n", head, a->flags[i].about);
  }
}

/* The flag that `word` names up to its '='; NULL when there is none. */
static const g3_arg *find(const g3_args *a, const char *word) {
  const size_t n = strcspn(word, "=");
  for (int i = 0; i < count_flags(a); i++)
    if (strlen(a->flags[i].flag) == n && strncmp(a->flags[i].flag, word, n) == 0)
      return &a->flags[i];
  return NULL;
}

static g3_status unknown(const g3_args *a, const char *word) {
  const char *names[MOST_FLAGS];
  const int n = count_flags(a), length = (int)strcspn(word, "=");
  char name[64];
  for (int i = 0; i < n; i++)
    names[i] = a->flags[i].flag;
  snprintf(name, sizeof name, "%.*s", length, word);
  const char *near = g3_args_nearest(name, names, n);
  if (near)
    return G3_FAIL(G3_EINVAL, "%s: unknown flag %s; did you mean %s?", a->command, name, near);
  return G3_FAIL(G3_EINVAL, "%s: unknown flag %s; %s --help shows all", a->command, name,
                 a->command);
}

static g3_status take(const g3_args *a, const g3_arg *f, const char *value) {
  if (f->text) {
    if (!*value)
      return G3_FAIL(G3_EINVAL, "%s: %s wants %s; found an empty text", a->command, f->flag,
                     f->meta);
    *f->text = value;
    return G3_OK;
  }
  char *end;
  errno = 0;
  const long long n = strtoll(value, &end, 10);
  const bool digits = *value >= '0' && *value <= '9';
  if (!digits || *end != '\0' || errno != 0 || n < f->min || n > f->max)
    return G3_FAIL(G3_EINVAL, "%s: %s wants a whole number from %lld to %lld; found \"%.80s\"",
                   a->command, f->flag, (long long)f->min, (long long)f->max, value);
  *f->count = n;
  return G3_OK;
}

/* The flag at argv[*i], and its value, which may be the next word. */
static g3_status read_flag(const g3_args *a, int argc, char **argv, int *i, bool *given) {
  const char *word = argv[*i], *equals = strchr(word, '=');
  const g3_arg *f = find(a, word);
  if (!f) return unknown(a, word);
  given[f - a->flags] = true;
  if (equals) return take(a, f, equals + 1);
  if (*i + 1 >= argc || strncmp(argv[*i + 1], "--", 2) == 0)
    return G3_FAIL(G3_EINVAL, "%s: %s wants %s; found %s", a->command, f->flag, f->meta,
                   *i + 1 < argc ? argv[*i + 1] : "the end of the command line");
  return take(a, f, argv[++*i]);
}

static g3_status check_all_there(const g3_args *a, int nwords, const bool *given) {
  for (int i = 0; i < count_flags(a); i++)
    if (a->flags[i].required && !given[i])
      return G3_FAIL(G3_EINVAL, "%s: %s %s is missing; %s --help shows all", a->command,
                     a->flags[i].flag, a->flags[i].meta, a->command);
  if (nwords == a->nwords) return G3_OK;
  return G3_FAIL(G3_EINVAL, "%s wants %s; found %d of %d words", a->command, a->words, nwords,
                 a->nwords);
}

g3_status g3_args_parse(const g3_args *a, int argc, char **argv, bool *help) {
  bool given[MOST_FLAGS] = {false};
  int nwords = 0;
  *help = false;
  for (int i = 0; i < argc && !*help; i++)
    *help = strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0;
  if (*help) {
    print_help(a);
    return G3_OK;
  }
  for (int i = 0; i < argc; i++) {
    if (argv[i][0] == '-' && argv[i][1])
      G3_TRY(read_flag(a, argc, argv, &i, given));
    else if (nwords < a->nwords)
      a->word[nwords++] = argv[i];
    else
      return G3_FAIL(G3_EINVAL, "%s: stray word \"%.80s\"; %s --help shows what it takes",
                     a->command, argv[i], a->command);
  }
  return check_all_there(a, nwords, given);
}

g3_exit g3_args_verdict(g3_status st, g3_exit done) {
  const g3_session alone = {NULL, NULL};
  return g3_session_verdict(&alone, st, done);
}
