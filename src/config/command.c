/* The command line: --flag value, --flag=value, --section.key=value, and flags that stand alone. */
#include "config/internal.h"
#include <string.h>

/* A flag as it was typed, cut at its '='. */
typedef struct {
  char name[128];
  const char *value; /* after '=', or NULL */
} typed;

static g3_status unknown(const char *name) {
  char near[128];
  if (g3_option_nearest(name, G3_SPELLED_FLAG, near, sizeof near))
    return G3_FAIL(G3_EINVAL, "unknown flag %s; did you mean %s?", name, near);
  return G3_FAIL(G3_EINVAL, "unknown flag %s; gpt3d --help lists all", name);
}

static g3_status split(const char *word, typed *out) {
  if (word[0] != '-' || word[1] == '\0')
    return G3_FAIL(G3_EINVAL, "stray word \"%.80s\"; values follow their flag, as in --tp 2", word);
  const size_t n = strcspn(word, "=");
  if (n >= sizeof out->name)
    return G3_FAIL(G3_EINVAL, "unknown flag %.60s...; gpt3d --help lists all", word);
  memcpy(out->name, word, n);
  out->name[n] = '\0';
  out->value = word[n] ? word + n + 1 : NULL;
  return G3_OK;
}

static bool is_bool_word(const char *word) {
  return strcmp(word, "true") == 0 || strcmp(word, "false") == 0;
}

/* The value of a flag: after '=', or the next word, or "true" of a flag that stands alone. *used =
 * how many further words it took. */
static g3_status value_of(const g3_option *o, const typed *t, const char *next, const char **value,
                          int *used) {
  *used = 0;
  *value = t->value;
  if (t->value) return G3_OK;
  if (o->type == G3_OPT_BOOL && !(next && is_bool_word(next))) {
    *value = "true";
    return G3_OK;
  }
  char wanted[256];
  g3_value_wanted(o, wanted, sizeof wanted);
  if (!next)
    return G3_FAIL(G3_EINVAL, "%s: wants %s; found the end of the command line", t->name, wanted);
  if (strncmp(next, "--", 2) == 0)
    return G3_FAIL(G3_EINVAL,
                   "%s: wants %s; found the flag %.80s (a text that begins so goes as "
                   "%s=TEXT)",
                   t->name, wanted, next, t->name);
  *value = next;
  *used = 1;
  return G3_OK;
}

g3_status g3_command_parse(g3_settings *s, int argc, char *const *argv) {
  for (int i = 0; i < argc; i++) {
    typed t;
    const char *value = NULL;
    int used = 0;
    G3_TRY(split(argv[i], &t));
    const g3_option *o = g3_option_by_flag(t.name);
    if (!o) return unknown(t.name);
    G3_TRY(value_of(o, &t, i + 1 < argc ? argv[i + 1] : NULL, &value, &used));
    G3_TRY(g3_settings_put(s, o, value, g3_origin_make(G3_FROM_COMMAND, "%s", t.name)));
    i += used;
  }
  return G3_OK;
}
