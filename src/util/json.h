/* Writes JSON (RFC 8259) into a buffer of the caller's, without allocating: a line of
 * metrics.jsonl, an answer of --json. Commas and colons are placed by the writer. A value that does
 * not fit sets `full` and is left out with all that follows; g3_json_end reports it. Calls that
 * break the grammar (a value without a key inside an object, an end that was not begun) are
 * mistakes of the program and end the job. */
#ifndef G3_UTIL_JSON_H
#define G3_UTIL_JSON_H
#include "util/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { G3_JSON_DEPTH = 16 };

typedef struct {
  char *text; /* the caller's; always ends with NUL */
  size_t size, used; /* bytes; used without the NUL */
  bool full; /* something did not fit */
  bool keyed; /* a key waits for its value */
  int depth;
  char close[G3_JSON_DEPTH]; /* '}' or ']' of each level that is open */
  bool some[G3_JSON_DEPTH + 1]; /* the level holds a member already; [0]: the value itself */
} g3_json;

/* Local. An empty writer over `text`, borrowed; size >= 1. */
g3_json g3_json_begin(char *text, size_t size);

/* Levels: at most G3_JSON_DEPTH. */
void g3_json_object(g3_json *j);
void g3_json_object_end(g3_json *j);
void g3_json_array(g3_json *j);
void g3_json_array_end(g3_json *j);

/* A member's name; its value or level follows. */
void g3_json_key(g3_json *j, const char *key);

/* Values. Bytes of a string that are not UTF-8 become U+FFFD; a double is the shortest decimal that
 * reads back the same; NaN and infinities, which JSON lacks, become null. */
void g3_json_string(g3_json *j, const char *s);
void g3_json_int(g3_json *j, int64_t x);
void g3_json_uint(g3_json *j, uint64_t x);
void g3_json_double(g3_json *j, double x);
void g3_json_bool(g3_json *j, bool x);
void g3_json_null(g3_json *j);

/* Local. Ends one whole value, without a newline. G3_EINVAL with both sizes when it did not fit;
 * the text is then not JSON. */
G3_MUST_USE g3_status g3_json_end(g3_json *j);

#endif
