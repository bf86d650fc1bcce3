/* A whole file, mapped read-only. */
#ifndef G3_DATA_MAP_H
#define G3_DATA_MAP_H
#include "util/status.h"
#include <stdint.h>

typedef struct {
  const uint8_t *data; /* NULL when the file is empty */
  int64_t size; /* bytes */
} g3_map;

/* Local. Maps a regular file; one that is empty is no failure. G3_EIO with the system's reason when
 * it is missing, unreadable or not a regular file. Released by g3_map_close. */
G3_MUST_USE g3_status g3_map_open(const char *path, g3_map *out);
void g3_map_close(g3_map *m); /* an empty or zeroed one is fine */

#endif
