/* One value: from text, strictly, and back to text. */
#include "config/internal.h"
#include "util/text.h"
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void g3_list_append(char *out, size_t size, int i, int n, const char *word) {
  const size_t used = strlen(out);
  snprintf(out + used, size - used, "%s%s", i == 0 ? "" : i == n - 1 ? " or " : ", ", word);
}

static int names_count(const char *const *names) {
  int n = 0;
  while (names[n])
    n++;
  return n;
}

static void bound_text(const g3_option *o, double bound, g3_number_text out) {
  if (o->type == G3_OPT_FLOAT)
    g3_text_double(bound, out);
  else
    snprintf(out, G3_NUMBER_TEXT, "%.0f", bound);
}

void g3_value_wanted(const g3_option *o, char *out, size_t size) {
  static const char *const kinds[] = {
      [G3_OPT_INT] = "a whole number", [G3_OPT_UINT] = "a whole number",
      [G3_OPT_FLOAT] = "a number",     [G3_OPT_BOOL] = "true or false",
      [G3_OPT_TEXT] = "text",          [G3_OPT_ENUM] = ""};
  snprintf(out, size, "%s", kinds[o->type]);
  if (o->type == G3_OPT_UINT)
    snprintf(out, size, "%s from 0 to %" PRIu64, kinds[o->type], UINT64_MAX);
  if (o->type == G3_OPT_INT || o->type == G3_OPT_FLOAT) {
    g3_number_text low, high;
    bound_text(o, o->min, low);
    bound_text(o, o->max, high);
    snprintf(out, size, "%s from %s to %s", kinds[o->type], low, high);
  }
  const int n = o->type == G3_OPT_ENUM ? names_count(o->names) : 0;
  for (int i = 0; i < n; i++)
    g3_list_append(out, size, i, n, o->names[i]);
}

/* The name that messages use. */
static const char *option_name(const g3_option *o) {
  return *o->key ? o->key : o->flag;
}

static g3_status refuse(const g3_option *o, const char *text, const char *where, const char *why) {
  char wanted[256];
  g3_value_wanted(o, wanted, sizeof wanted);
  return G3_FAIL(G3_EINVAL, "%s: %s wants %s; found \"%.80s\"%s", where, option_name(o), wanted,
                 text, why);
}

/* Where a value is stored: memcpy, since the offset is all that is known of it. */
static void store(g3_config *c, const g3_option *o, const void *value, size_t size) {
  memcpy((char *)c + o->offset, value, size);
}

static void fetch(const g3_config *c, const g3_option *o, void *value, size_t size) {
  memcpy(value, (const char *)c + o->offset, size);
}

/* Whether the text has the form [+-]digits, without room for strtoll's own leniency. */
static bool is_integer(const char *text) {
  text += *text == '-' || *text == '+';
  return *text && text[strspn(text, "0123456789")] == '\0';
}

static g3_status parse_int(g3_config *c, const g3_option *o, const char *text, const char *where) {
  if (!is_integer(text)) return refuse(o, text, where, "");
  errno = 0;
  const int64_t x = strtoll(text, NULL, 10);
  if (errno == ERANGE) return refuse(o, text, where, ", which does not fit in 64 bits");
  if ((double)x < o->min || (double)x > o->max) return refuse(o, text, where, "");
  store(c, o, &x, sizeof x);
  return G3_OK;
}

static g3_status parse_uint(g3_config *c, const g3_option *o, const char *text, const char *where) {
  if (!is_integer(text) || *text == '-') return refuse(o, text, where, "");
  errno = 0;
  const uint64_t x = strtoull(text, NULL, 10);
  if (errno == ERANGE) return refuse(o, text, where, ", which does not fit in 64 bits");
  store(c, o, &x, sizeof x);
  return G3_OK;
}

static g3_status parse_float(g3_config *c, const g3_option *o, const char *text,
                             const char *where) {
  /* strtod also takes spaces, "nan", "inf" and hexadecimal: not here */
  if (text[strspn(text, "0123456789+-.eE")] != '\0') return refuse(o, text, where, "");
  char *end = NULL;
  errno = 0;
  const double x = strtod(text, &end);
  if (end == text || *end) return refuse(o, text, where, "");
  if (errno == ERANGE && (x == 0 || isinf(x)))
    return refuse(o, text, where, ", which does not fit in a double");
  if (x < o->min || x > o->max) return refuse(o, text, where, "");
  store(c, o, &x, sizeof x);
  return G3_OK;
}

static g3_status parse_bool(g3_config *c, const g3_option *o, const char *text, const char *where) {
  const bool x = strcmp(text, "true") == 0;
  if (!x && strcmp(text, "false") != 0) return refuse(o, text, where, "");
  store(c, o, &x, sizeof x);
  return G3_OK;
}

/* Whether YAML holds the character as it is inside quotes: printable, and no kind of line end. */
static bool is_plain_character(uint32_t code) {
  return (code >= 0x20 && code < 0x7F) || (code >= 0xA0 && code != 0x2028 && code != 0x2029 &&
                                           code != 0xFEFF && (code & 0xFFFE) != 0xFFFE);
}

static g3_status parse_text(g3_config *c, const g3_option *o, const char *text, const char *where) {
  const size_t bytes = strlen(text);
  if (bytes >= G3_CONFIG_TEXT)
    return G3_FAIL(G3_EINVAL, "%s: %s is %zu bytes long; at most %d are taken", where,
                   option_name(o), bytes, G3_CONFIG_TEXT - 1);
  for (size_t i = 0; i < bytes;) {
    uint32_t code = 0;
    const int n = g3_utf8_decode(text + i, &code);
    if (n == 0 || !is_plain_character(code))
      return G3_FAIL(
          G3_EINVAL,
          "%s: %s has a control character or bytes that are not UTF-8 at byte %zu, which "
          "config.yaml could not hold; use another name",
          where, option_name(o), i);
    i += (size_t)n;
  }
  store(c, o, text, bytes + 1);
  return G3_OK;
}

static g3_status parse_enum(g3_config *c, const g3_option *o, const char *text, const char *where) {
  for (int i = 0; o->names[i]; i++)
    if (strcmp(o->names[i], text) == 0) {
      store(c, o, &i, sizeof i);
      return G3_OK;
    }
  return refuse(o, text, where, "");
}

g3_status g3_value_parse(g3_config *c, const g3_option *o, const char *text, const char *where) {
  typedef g3_status (*parser)(g3_config *, const g3_option *, const char *, const char *);
  static const parser parsers[] = {
      [G3_OPT_INT] = parse_int,   [G3_OPT_UINT] = parse_uint, [G3_OPT_FLOAT] = parse_float,
      [G3_OPT_BOOL] = parse_bool, [G3_OPT_TEXT] = parse_text, [G3_OPT_ENUM] = parse_enum};
  G3_TRY(parsers[o->type](c, o, text, where));
  return G3_OK;
}

void g3_settings_text(const g3_config *c, const g3_option *o, char *out, size_t size) {
  int64_t i = 0;
  uint64_t u = 0;
  double d = 0;
  bool b = false;
  int e = 0;
  g3_number_text number;
  switch (o->type) {
  case G3_OPT_INT:
    fetch(c, o, &i, sizeof i);
    snprintf(out, size, "%" PRId64, i);
    break;
  case G3_OPT_UINT:
    fetch(c, o, &u, sizeof u);
    snprintf(out, size, "%" PRIu64, u);
    break;
  case G3_OPT_FLOAT:
    fetch(c, o, &d, sizeof d);
    snprintf(out, size, "%s", g3_text_double(d, number));
    break;
  case G3_OPT_BOOL:
    fetch(c, o, &b, sizeof b);
    snprintf(out, size, "%s", b ? "true" : "false");
    break;
  case G3_OPT_TEXT:
    snprintf(out, size, "%s", (const char *)c + o->offset);
    break;
  case G3_OPT_ENUM:
    fetch(c, o, &e, sizeof e);
    snprintf(out, size, "%s", o->names[e]);
    break;
  }
}
