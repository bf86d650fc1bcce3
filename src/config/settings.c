/* Where values meet: defaults, file, command line and checkpoint, each with its origin. */
#include "config/internal.h"
#include "util/array.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

g3_origin g3_origin_make(g3_origin_kind kind, const char *fmt, ...) {
  g3_origin origin = {.kind = kind};
  char text[2 * G3_CONFIG_TEXT];
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  const size_t n = strlen(text), room = sizeof origin.where - 1;
  if (n <= room)
    memcpy(origin.where, text, n + 1);
  else
    snprintf(origin.where, sizeof origin.where, "...%s", text + n - (room - 3));
  return origin;
}

g3_status g3_settings_put(g3_settings *s, const g3_option *o, const char *text, g3_origin origin) {
  g3_origin *held = &s->origin[o - g3_options];
  const char *where = *origin.where ? origin.where : "unknown origin";
  if (origin.kind >= held->kind) {
    G3_TRY(g3_value_parse(&s->value, o, text, where));
    *held = origin;
    return G3_OK;
  }
  g3_config scratch; /* a value that loses must still be right */
  G3_TRY(g3_value_parse(&scratch, o, text, where));
  return G3_OK;
}

g3_status g3_settings_set(g3_settings *s, const char *key, const char *text, g3_origin origin) {
  const g3_option *o = g3_option_by_key(key);
  char near[128];
  if (o) {
    G3_TRY(g3_settings_put(s, o, text, origin));
    return G3_OK;
  }
  if (g3_option_nearest(key, G3_SPELLED_KEY, near, sizeof near))
    return G3_FAIL(G3_EINVAL, "%s: unknown key %.100s; did you mean %s?", origin.where, key, near);
  return G3_FAIL(G3_EINVAL, "%s: unknown key %.100s; gpt3d --print-config lists all", origin.where,
                 key);
}

static g3_status set_defaults(g3_settings *s) {
  for (const g3_option *o = g3_options; o->flag; o++)
    G3_TRY(g3_settings_put(s, o, o->def, g3_origin_make(G3_FROM_DEFAULT, "default")));
  return G3_OK;
}

/* "configs/gpt2-124m.yaml" -> "gpt2-124m". */
static void name_from_file(const char *path, g3_text out) {
  const char *slash = strrchr(path, '/');
  snprintf(out, G3_CONFIG_TEXT, "%s", slash ? slash + 1 : path);
  char *dot = strrchr(out, '.');
  if (dot && dot != out && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0)) *dot = '\0';
}

static g3_origin *origin_of(const g3_settings *s, size_t offset) {
  return &s->origin[g3_option_at(offset) - g3_options];
}

/* Says that a value was made from others; how strong its source was stays. */
static void derived(g3_settings *s, size_t offset, const char *from) {
  g3_origin *origin = origin_of(s, offset);
  *origin = g3_origin_make(origin->kind, "%s", from);
}

/* Values that are made from others when they are left out. */
static g3_status resolve(g3_settings *s) {
  static const char folder[] = "runs/";
  g3_config *c = &s->value;
  if (c->model.ffn == 0) {
    c->model.ffn = 4 * c->model.width;
    derived(s, G3_AT(model.ffn), "4 x model.width");
  }
  if (c->train.exact && c->train.micro_batch != 1) {
    c->train.micro_batch = 1;
    derived(s, G3_AT(train.micro_batch), "train.exact: one sample at a time");
  }
  /* a rate given alone, such as --lr 0, brings its lower limit down with it */
  if (c->optim.min_lr > c->optim.lr &&
      origin_of(s, G3_AT(optim.lr))->kind > origin_of(s, G3_AT(optim.min_lr))->kind) {
    c->optim.min_lr = c->optim.lr;
    derived(s, G3_AT(optim.min_lr), "optim.lr");
  }
  if (!*c->run.name) {
    name_from_file(*c->command.config ? c->command.config : "tiny.yaml", c->run.name);
    derived(s, G3_AT(run.name), "the configuration's file");
  }
  if (!*c->run.out) {
    const size_t n = strlen(c->run.name), used = sizeof folder - 1;
    if (used + n >= sizeof c->run.out)
      return G3_FAIL(G3_EINVAL, "run.name is too long for run.out = %sNAME; give --out", folder);
    memcpy(c->run.out, folder, used);
    memcpy(c->run.out + used, c->run.name, n + 1);
    derived(s, G3_AT(run.out), "runs/ + run.name");
  }
  return G3_OK;
}

/* The command line goes first, since it names the file; the file cannot overrule it. */
static g3_status load(g3_settings *s, int argc, char *const *argv) {
  const g3_command_config *command = &s->value.command;
  G3_TRY(set_defaults(s));
  G3_TRY(g3_command_parse(s, argc, argv));
  if (command->help || command->version) return G3_OK;
  if (*command->config)
    G3_TRY(g3_yaml_file(s, command->config));
  else
    G3_TRY(g3_yaml_text(s, g3_tiny_yaml, "built-in tiny.yaml", G3_FROM_EMBEDDED));
  G3_TRY(resolve(s));
  return G3_OK;
}

g3_status g3_settings_load(int argc, char *const *argv, g3_settings **out) {
  g3_settings *s = NULL;
  g3_status st = G3_OK;
  G3_TRY(G3_NEW_ARRAY(1, &s));
  G3_TRY_TO(failed, st, G3_NEW_ARRAY(g3_option_count(), &s->origin));
  G3_TRY_TO(failed, st, load(s, argc, argv));
  *out = s;
  return G3_OK;
failed:
  g3_settings_free(s);
  return st;
}

void g3_settings_free(g3_settings *s) {
  if (!s) return;
  free(s->origin);
  free(s);
}
