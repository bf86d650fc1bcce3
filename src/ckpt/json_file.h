/* JSON files of other programs, read strictly: what a parser would forgive is refused. */
#ifndef G3_CKPT_JSON_FILE_H
#define G3_CKPT_JSON_FILE_H
#include "util/status.h"
#include <cjson/cJSON.h>
#include <stddef.h>

/* Local. Parses `size` bytes (followed by at least one NUL that is not counted) that must be one
 * object and nothing else. G3_EFORMAT, naming `where`, for bytes that are not JSON, NUL in the text
 * or escaped in a string, a name given twice on the first level. *out freed by cJSON_Delete. */
G3_MUST_USE g3_status g3_json_parse(const char *where, const char *text, size_t size, cJSON **out);

/* Local. The same of a whole file, of at most 16 MiB. */
G3_MUST_USE g3_status g3_json_read(const char *path, cJSON **out);

#endif
