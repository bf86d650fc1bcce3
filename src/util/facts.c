#include "util/facts.h"
#include <stdarg.h>

static const char *const levels[] = {
    [G3_FACT_OK] = "ok", [G3_FACT_WARN] = "warn", [G3_FACT_MISSING] = "missing"};

void g3_fact(g3_facts *f, g3_fact_level level, const char *name, const char *fmt, ...) {
  f->count[level]++;
  if (!f->out) return;
  va_list args;
  va_start(args, fmt);
  fprintf(f->out, "%-8s %-13s ", levels[level], name);
  vfprintf(f->out, fmt, args);
  fputc('\n', f->out);
  va_end(args);
}
