/* --help, from the table. */
#include "config/internal.h"
#include <string.h>

enum { COLUMNS = 100, ABOUT_COLUMN = 34 };

/* What stands behind a flag: "N", "X", "TEXT", "true|false", or an enum's names. */
static void metavar(const g3_option *o, char *out, size_t size) {
  static const char *const kinds[] = {
      [G3_OPT_INT] = " N", [G3_OPT_UINT] = " N",    [G3_OPT_FLOAT] = " X",
      [G3_OPT_BOOL] = "",  [G3_OPT_TEXT] = " TEXT", [G3_OPT_ENUM] = " "};
  snprintf(out, size, "%s", kinds[o->type]);
  for (int i = 0; o->type == G3_OPT_ENUM && o->names[i]; i++) {
    const size_t used = strlen(out);
    snprintf(out + used, size - used, "%s%s", i ? "|" : "", o->names[i]);
  }
}

/* Prints words from column `at` on, wrapped to ABOUT_COLUMN .. COLUMNS. */
static void wrap(FILE *out, const char *text, int at) {
  while (*text) {
    const int n = (int)strcspn(text, " ");
    if (at + 1 + n > COLUMNS) {
      fprintf(out, "\n%*s", ABOUT_COLUMN, "");
      at = ABOUT_COLUMN;
    } else if (at > ABOUT_COLUMN) {
      fputc(' ', out);
      at++;
    }
    fprintf(out, "%.*s", n, text);
    at += n;
    text += n;
    text += strspn(text, " ");
  }
  fputc('\n', out);
}

static void print_option(FILE *out, const g3_option *o) {
  char value[128], head[256], about[512];
  metavar(o, value, sizeof value);
  snprintf(head, sizeof head, "  %s%s", o->flag, value);
  fputs(head, out);
  int at = (int)strlen(head);
  if (at + 2 > ABOUT_COLUMN) {
    fputc('\n', out);
    at = 0;
  }
  fprintf(out, "%*s", ABOUT_COLUMN - at, "");
  /* an option that has no key has no default worth a word */
  const bool show = *o->key && *o->def;
  snprintf(about, sizeof about, "%s%s%s%s%s%s", o->about, show ? " [" : "", show ? o->def : "",
           show ? "]" : "", o->alias ? "; also " : "", o->alias ? o->alias : "");
  wrap(out, about, ABOUT_COLUMN);
}

void g3_options_help(FILE *out) {
  fprintf(out, "Options: --flag VALUE or --flag=VALUE; a later one wins. Keys of a YAML file stand "
               "under\ntheir section and have [defaults]; --section.key=VALUE works as well.\n");
  const char *section = NULL;
  size_t n = 0;
  for (const g3_option *o = g3_options; o->flag; o++) {
    const size_t length = strcspn(o->key, ".");
    if (!section || length != n || strncmp(section, o->key, n) != 0) {
      section = o->key;
      n = length;
      if (n)
        fprintf(out, "\n%.*s:\n", (int)n, section);
      else
        fprintf(out, "\non the command line only:\n");
    }
    print_option(out, o);
  }
}
