/* A YAML file, read event by event: maps become dotted keys, scalars stay text until the option
 * table says what they are. */
#include "config/internal.h"
#include "util/array.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yaml.h>

enum { KEY_BYTES = 256, MOST_DEPTH = 16 };

typedef struct {
  yaml_parser_t parser;
  g3_settings *settings;
  const char *name;
  g3_origin_kind kind;
  int *seen; /* [options] the line of each key that was read; 0 = none */
  int depth; /* maps that are open */
  char key[KEY_BYTES]; /* of the value that comes next: sections and name with dots */
  size_t prefix[MOST_DEPTH + 1]; /* length of the key of each open map */
  bool have_key; /* the next node is the value of `key` */
  bool document; /* one has begun already */
} reader;

static int line_of(const yaml_event_t *e) {
  return (int)e->start_mark.line + 1;
}

static g3_status not_yaml(const reader *r) {
  const yaml_parser_t *p = &r->parser;
  const char *problem = p->problem ? p->problem : "out of memory";
  const size_t line = p->problem_mark.line + 1;
  if (p->error == YAML_READER_ERROR)
    return G3_FAIL(G3_EINVAL, "%s: not a text file: %s at byte %zu", r->name, problem,
                   p->problem_offset);
  return G3_FAIL(G3_EINVAL,
                 "%s:%zu: not YAML: %s%s%s; check the indentation "
                 "(spaces, no tabs) and the space after each colon",
                 r->name, line, problem, p->context ? " " : "", p->context ? p->context : "");
}

/* Extends the key by one name. */
static g3_status on_key(reader *r, const yaml_event_t *e) {
  const size_t used = r->prefix[r->depth];
  const char *text = (const char *)e->data.scalar.value;
  const int n = snprintf(r->key + used, sizeof r->key - used, "%s%s", used ? "." : "", text);
  if (n < 0 || (size_t)n >= sizeof r->key - used)
    return G3_FAIL(G3_EINVAL, "%s:%d: a key is longer than %d bytes: \"%.60s...\"", r->name,
                   line_of(e), KEY_BYTES - 1, text);
  r->have_key = true;
  return G3_OK;
}

static bool is_plain(const yaml_event_t *e, const char *text) {
  return e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
         strcmp((const char *)e->data.scalar.value, text) == 0;
}

static g3_status on_value(reader *r, const yaml_event_t *e) {
  const int line = line_of(e);
  const char *text = (const char *)e->data.scalar.value;
  r->have_key = false;
  if (g3_option_is_section(r->key)) {
    if (is_plain(e, "")) return G3_OK; /* a section whose keys are all left out */
    return G3_FAIL(G3_EINVAL,
                   "%s:%d: %s is a section, found the value \"%.80s\"; write its keys "
                   "indented below it",
                   r->name, line, r->key, text);
  }
  const g3_option *o = g3_option_by_key(r->key);
  if (o && (is_plain(e, "") || is_plain(e, "~") || is_plain(e, "null")))
    return G3_FAIL(G3_EINVAL,
                   "%s:%d: %s has no value; give one (\"\" is an empty text) or leave "
                   "the key out",
                   r->name, line, r->key);
  if (o && r->seen[o - g3_options])
    return G3_FAIL(G3_EINVAL, "%s:%d: %s stands here a second time; line %d has it already",
                   r->name, line, r->key, r->seen[o - g3_options]);
  if (o) r->seen[o - g3_options] = line;
  G3_TRY(
      g3_settings_set(r->settings, r->key, text, g3_origin_make(r->kind, "%s:%d", r->name, line)));
  return G3_OK;
}

static g3_status on_scalar(reader *r, const yaml_event_t *e) {
  if (strlen((const char *)e->data.scalar.value) != e->data.scalar.length)
    return G3_FAIL(G3_EINVAL, "%s:%d: a zero byte inside a text", r->name, line_of(e));
  if (r->depth == 0)
    return G3_FAIL(G3_EINVAL, "%s:%d: wants keys with values, such as \"model:\"; found \"%.80s\"",
                   r->name, line_of(e), (const char *)e->data.scalar.value);
  if (r->have_key)
    G3_TRY(on_value(r, e));
  else
    G3_TRY(on_key(r, e));
  return G3_OK;
}

static g3_status on_map(reader *r, const yaml_event_t *e) {
  if (r->depth > 0 && !r->have_key)
    return G3_FAIL(G3_EINVAL, "%s:%d: a map cannot be a key", r->name, line_of(e));
  if (g3_option_by_key(r->key))
    return G3_FAIL(G3_EINVAL, "%s:%d: %s takes one value, found a map", r->name, line_of(e),
                   r->key);
  if (r->depth == MOST_DEPTH)
    return G3_FAIL(G3_EINVAL, "%s:%d: maps nest deeper than %d", r->name, line_of(e), MOST_DEPTH);
  r->prefix[++r->depth] = strlen(r->key);
  r->have_key = false;
  return G3_OK;
}

static void on_map_end(reader *r) {
  r->depth--;
  r->key[r->prefix[r->depth]] = '\0';
}

static g3_status on_document(reader *r, const yaml_event_t *e) {
  if (r->document)
    return G3_FAIL(G3_EINVAL, "%s:%d: a second document begins; a configuration is one", r->name,
                   line_of(e));
  r->document = true;
  return G3_OK;
}

/* What YAML has and a configuration does not. */
static g3_status on_foreign(const reader *r, const yaml_event_t *e, const char *what) {
  return G3_FAIL(G3_EINVAL, "%s:%d: %s%s%s; a configuration has only maps and single values",
                 r->name, line_of(e), *r->key ? r->key : "the file", *r->key ? " is " : " holds ",
                 what);
}

static bool has_name_or_tag(const yaml_event_t *e) {
  return (e->type == YAML_SCALAR_EVENT && (e->data.scalar.anchor || e->data.scalar.tag)) ||
         (e->type == YAML_MAPPING_START_EVENT &&
          (e->data.mapping_start.anchor || e->data.mapping_start.tag));
}

static g3_status on_event(reader *r, const yaml_event_t *e) {
  if (has_name_or_tag(e)) return on_foreign(r, e, "marked with an anchor (&) or a tag (!)");
  switch (e->type) {
  case YAML_SCALAR_EVENT:
    return on_scalar(r, e);
  case YAML_MAPPING_START_EVENT:
    return on_map(r, e);
  case YAML_MAPPING_END_EVENT:
    on_map_end(r);
    return G3_OK;
  case YAML_SEQUENCE_START_EVENT:
    return on_foreign(r, e, "a list");
  case YAML_ALIAS_EVENT:
    return on_foreign(r, e, "an alias (*)");
  case YAML_DOCUMENT_START_EVENT:
    return on_document(r, e);
  default:
    return G3_OK; /* begin and end of stream and document */
  }
}

static g3_status read_events(reader *r) {
  for (bool more = true; more;) {
    yaml_event_t e;
    if (!yaml_parser_parse(&r->parser, &e)) return not_yaml(r);
    const g3_status st = on_event(r, &e);
    more = e.type != YAML_STREAM_END_EVENT;
    yaml_event_delete(&e);
    G3_TRY(st);
  }
  return G3_OK;
}

/* Reads from `file`, or from `text` when that is NULL. */
static g3_status read_yaml(g3_settings *s, FILE *file, const char *text, const char *name,
                           g3_origin_kind kind) {
  reader r = {.settings = s, .name = name, .kind = kind};
  g3_status st = G3_OK;
  G3_TRY(G3_NEW_ARRAY(g3_option_count(), &r.seen));
  if (!yaml_parser_initialize(&r.parser)) {
    free(r.seen);
    return G3_FAIL(G3_ENOMEM, "%s: no memory to read it", name);
  }
  if (file)
    yaml_parser_set_input_file(&r.parser, file);
  else
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, strlen(text));
  G3_TRY_TO(done, st, read_events(&r));
  if (file && ferror(file)) st = G3_FAIL(G3_EIO, "%s: cannot be read to its end", name);
done:
  yaml_parser_delete(&r.parser);
  free(r.seen);
  return st;
}

g3_status g3_yaml_text(g3_settings *s, const char *text, const char *name, g3_origin_kind kind) {
  G3_TRY(read_yaml(s, NULL, text, name, kind));
  return G3_OK;
}

/* Opens without waiting: a pipe without a writer would hold the job up for ever. */
static g3_status open_regular(const char *path, FILE **out) {
  const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return G3_FAIL(G3_EIO, "--config: %s cannot be read: %s", path, strerror(errno));
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    close(fd);
    return G3_FAIL(G3_EIO, "--config: %s is %s; wants a YAML file", path,
                   S_ISDIR(info.st_mode) ? "a directory" : "not a regular file");
  }
  FILE *file = fdopen(fd, "r");
  if (!file) {
    close(fd);
    return G3_FAIL(G3_ENOMEM, "--config: %s cannot be read: %s", path, strerror(errno));
  }
  *out = file;
  return G3_OK;
}

g3_status g3_yaml_file(g3_settings *s, const char *path) {
  FILE *file = NULL;
  G3_TRY(open_regular(path, &file));
  const g3_status st = read_yaml(s, file, NULL, path, G3_FROM_FILE);
  if (fclose(file) != 0 && st == G3_OK)
    return G3_FAIL(G3_EIO, "%s: cannot be closed: %s", path, strerror(errno));
  G3_TRY(st);
  return G3_OK;
}
