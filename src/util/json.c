#include "util/json.h"
#include "util/text.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

g3_json g3_json_begin(char *text, size_t size) {
  G3_CHECK(text && size >= 1, "JSON needs room for at least its NUL");
  g3_json j = {.text = text, .size = size};
  text[0] = '\0';
  return j;
}

static void put(g3_json *j, const char *s, size_t n) {
  if (j->full || n >= j->size - j->used) {
    j->full = true;
    return;
  }
  memcpy(j->text + j->used, s, n);
  j->used += n;
  j->text[j->used] = '\0';
}

/* What must stand before a value or a key at this level. */
static void separate(g3_json *j) {
  if (j->some[j->depth]) put(j, ",", 1);
  j->some[j->depth] = true;
}

static void before_value(g3_json *j) {
  if (j->keyed) {
    j->keyed = false;
    return;
  }
  G3_CHECK(j->depth == 0 || j->close[j->depth - 1] == ']', "a JSON object's value lacks its key");
  G3_CHECK(j->depth > 0 || !j->some[0], "a second JSON value after the whole one");
  separate(j);
}

static void raw(g3_json *j, const char *s) {
  before_value(j);
  put(j, s, strlen(s));
}

static void level(g3_json *j, const char *open, char close) {
  G3_CHECK(j->depth < G3_JSON_DEPTH, "JSON nests deeper than %d", G3_JSON_DEPTH);
  raw(j, open);
  j->close[j->depth++] = close;
  j->some[j->depth] = false;
}

static void level_end(g3_json *j, char close) {
  G3_CHECK(j->depth > 0 && j->close[j->depth - 1] == close && !j->keyed,
           "JSON's '%c' ends nothing that is open", close);
  j->depth--;
  put(j, &close, 1);
}

void g3_json_object(g3_json *j) {
  level(j, "{", '}');
}

void g3_json_object_end(g3_json *j) {
  level_end(j, '}');
}

void g3_json_array(g3_json *j) {
  level(j, "[", ']');
}

void g3_json_array_end(g3_json *j) {
  level_end(j, ']');
}

static void quoted(g3_json *j, const char *s) {
  static const char named[] =
      "\"\"\\\\\bb\ff\nn\rr\tt"; /* pairs: byte, letter after the backslash */
  put(j, "\"", 1);
  while (*s) {
    uint32_t code = 0;
    const int n = g3_utf8_decode(s, &code);
    const char *pair = NULL;
    for (const char *p = named; n == 1 && *p && !pair; p += 2)
      if (*p == *s) pair = p;
    char escape[8];
    if (n == 0)
      put(j, "\xEF\xBF\xBD", 3);
    else if (pair)
      put(j, escape, (size_t)snprintf(escape, sizeof escape, "\\%c", pair[1]));
    else if (code < 0x20)
      put(j, escape, (size_t)snprintf(escape, sizeof escape, "\\u%04x", (unsigned)code));
    else
      put(j, s, (size_t)n);
    s += n ? n : 1;
  }
  put(j, "\"", 1);
}

void g3_json_key(g3_json *j, const char *key) {
  G3_CHECK(j->depth > 0 && j->close[j->depth - 1] == '}' && !j->keyed,
           "the JSON key \"%s\" stands outside an object", key);
  separate(j);
  quoted(j, key);
  put(j, ":", 1);
  j->keyed = true;
}

void g3_json_string(g3_json *j, const char *s) {
  before_value(j);
  quoted(j, s);
}

void g3_json_int(g3_json *j, int64_t x) {
  char text[32];
  snprintf(text, sizeof text, "%" PRId64, x);
  raw(j, text);
}

void g3_json_uint(g3_json *j, uint64_t x) {
  char text[32];
  snprintf(text, sizeof text, "%" PRIu64, x);
  raw(j, text);
}

void g3_json_double(g3_json *j, double x) {
  g3_number_text text;
  raw(j, isfinite(x) ? g3_text_double(x, text) : "null");
}

void g3_json_bool(g3_json *j, bool x) {
  raw(j, x ? "true" : "false");
}

void g3_json_null(g3_json *j) {
  raw(j, "null");
}

g3_status g3_json_end(g3_json *j) {
  G3_CHECK(j->depth == 0 && j->some[0] && !j->keyed, "a JSON value ends before it is whole");
  if (j->full)
    return G3_FAIL(G3_EINVAL, "a JSON text is longer than its %zu bytes (the first %zu fitted)",
                   j->size, j->used);
  return G3_OK;
}
