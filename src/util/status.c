#include "util/status.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGE_BYTES = 2048, TRACE_BYTES = 1024 };

static _Thread_local char message[MESSAGE_BYTES];
static _Thread_local char trace[TRACE_BYTES];
static void (*fatal_hook)(int);
static char fatal_place[128];

const char *g3_status_text(g3_status s) {
#define G3_AS_TEXT(name, text) text,
  static const char *const texts[] = {G3_STATUS_LIST(G3_AS_TEXT)};
#undef G3_AS_TEXT
  return (unsigned)s < G3_STATUS_COUNT ? texts[s] : "unknown status";
}

g3_status g3_fail(g3_status code, const char *file, int line, const char *fmt, ...) {
  char text[MESSAGE_BYTES]; /* the arguments may quote the message that this one replaces */
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  memcpy(message, text, sizeof text);
  snprintf(trace, sizeof trace, "%s:%d", file, line);
  return code;
}

g3_status g3_trace_up(g3_status code, const char *file, int line) {
  size_t used = strlen(trace);
  snprintf(trace + used, sizeof trace - used, " < %s:%d", file, line);
  return code;
}

const char *g3_last_error(void) {
  return message;
}

const char *g3_last_trace(void) {
  return trace;
}

void g3_set_fatal_hook(void (*hook)(int)) {
  fatal_hook = hook;
}

void g3_set_fatal_place(const char *place) {
  snprintf(fatal_place, sizeof fatal_place, "%s", place);
}

void g3_die(const char *file, int line, const char *fmt, ...) {
  va_list args;
  fprintf(stderr, "gpt3d: fatal: %s%s%s:%d: ", fatal_place, fatal_place[0] ? ": " : "", file, line);
  va_start(args, fmt);
  vfprintf(stderr, fmt, args);
  va_end(args);
  fputc('\n', stderr);
  fflush(NULL);
  if (fatal_hook) fatal_hook(1);
  abort();
}
