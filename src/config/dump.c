/* All keys as YAML: config.yaml and --print-config. */
#include "config/internal.h"
#include "util/text.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { COMMENT_COLUMN = 34, ORIGIN_WIDTH = 26, LINE_BYTES = 3 * G3_CONFIG_TEXT };

/* Whether other YAML readers than ours would take the text for a text without quotes, too. */
static bool is_plain_text(const char *text) {
  static const char *const words[] = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"};
  static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-";
  if (!*text || *text == '-' || text[strspn(text, safe)]) return false;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (g3_text_distance(text, words[i]) == 0) return false;
  char *end = NULL;
  strtod(text, &end);
  return *end != '\0';
}

/* In single quotes a quote is doubled and nothing else is special. */
static void quote(const char *text, char *out) {
  *out++ = '\'';
  for (; *text; text++) {
    if (*text == '\'') *out++ = '\'';
    *out++ = *text;
  }
  *out++ = '\'';
  *out = '\0';
}

/* YAML 1.1 readers know a float by its point: 1e-08 -> 1.0e-08. */
static void with_point(const char *text, char *out, size_t size) {
  const size_t mantissa = strcspn(text, "e");
  const bool lacks = text[mantissa] && !memchr(text, '.', mantissa);
  snprintf(out, size, "%.*s%s%s", (int)mantissa, text, lacks ? ".0" : "", text + mantissa);
}

static void yaml_value(const g3_config *c, const g3_option *o, char *out, size_t size) {
  g3_text text;
  g3_settings_text(c, o, text, sizeof text);
  if (o->type == G3_OPT_TEXT && !is_plain_text(text))
    quote(text, out);
  else if (o->type == G3_OPT_FLOAT)
    with_point(text, out, size);
  else
    snprintf(out, size, "%s", text);
}

static void describe(const g3_origin *origin, char *out, size_t size) {
  static const char *const kinds[] = {[G3_FROM_DEFAULT] = "",
                                      [G3_FROM_EMBEDDED] = "",
                                      [G3_FROM_CHECKPOINT] = "checkpoint ",
                                      [G3_FROM_FILE] = "",
                                      [G3_FROM_COMMAND] = "command line "};
  snprintf(out, size, "%s%s", kinds[origin->kind], origin->where);
}

g3_status g3_settings_dump(const g3_settings *s, FILE *out, bool origins) {
  char value[LINE_BYTES], line[LINE_BYTES + 64], origin[256];
  const char *section = "";
  size_t n = 0;
  for (const g3_option *o = g3_options; o->flag; o++) {
    if (!*o->key) continue;
    const size_t length = strcspn(o->key, ".");
    if (length != n || strncmp(section, o->key, n) != 0) {
      section = o->key;
      n = length;
      fprintf(out, "%.*s:\n", (int)n, section);
    }
    yaml_value(&s->value, o, value, sizeof value);
    snprintf(line, sizeof line, "  %s: %s", o->key + n + 1, value);
    fprintf(out, "%-*s # ", COMMENT_COLUMN, line);
    if (origins) {
      describe(&s->origin[o - g3_options], origin, sizeof origin);
      fprintf(out, "%-*s ", ORIGIN_WIDTH, origin);
    }
    fprintf(out, "%s\n", o->about);
  }
  if (fflush(out) != 0 || ferror(out))
    return G3_FAIL(G3_EIO, "the configuration cannot be written: %s", strerror(errno));
  return G3_OK;
}
