/* Settings files of other programs: one JSON object. */
#ifndef G3_CKPT_FIELDS_H
#define G3_CKPT_FIELDS_H
#include "util/field.h"
#include "util/status.h"

/* Local. The members of the object in a JSON file, in its order. G3_EFORMAT for what is no JSON
 * object, and for keys that are there twice or not printable ASCII of at most 63 bytes. *out freed
 * with free(). */
G3_MUST_USE g3_status g3_fields_read(const char *path, g3_field **out, int *n);

#endif
