/* The header file of Megatron-LM's indexed data sets: which bytes of PREFIX.bin are tokens. Layout
 * in docs/formats.md. */
#ifndef G3_DATA_IDX_H
#define G3_DATA_IDX_H
#include "data/map.h"
#include <stdbool.h>

/* Bytes of the layout. */
enum { G3_IDX_MAGIC_BYTES = 9, G3_IDX_HEADER_BYTES = 34, G3_IDX_VERSION = 1 };
extern const uint8_t g3_idx_magic[G3_IDX_MAGIC_BYTES];

/* How a token is stored. */
typedef struct {
  uint8_t code; /* in the header */
  uint8_t bytes;
  bool is_signed;
  const char *name;
} g3_token_type;

extern const g3_token_type g3_token_byte; /* one unsigned byte, code 1 */

/* Sequences that lie one after another in the file: one run in the files that tools write. */
typedef struct {
  int64_t token; /* number of the first token */
  int64_t byte; /* where it lies in PREFIX.bin */
} g3_token_run;

typedef struct {
  g3_token_type type;
  int64_t tokens; /* in all sequences */
  g3_token_run *run; /* [runs], ascending by token; freed with free() */
  int64_t runs;
} g3_idx;

/* Local. Reads the mapped header file `idx` (called `path` in messages) of a token file of
 * `bin_bytes` bytes. Every length, offset and document index is checked: G3_EFORMAT with the place.
 * No tokens at all is G3_EFORMAT too. */
G3_MUST_USE g3_status g3_idx_parse(const char *path, const g3_map *idx, int64_t bin_bytes,
                                   g3_idx *out);

/* Local. Which document of a header file that was parsed before holds a token, counted from 0, and
 * how many tokens of it come before. G3_EFORMAT when none does. */
G3_MUST_USE g3_status g3_idx_document(const char *path, const g3_map *idx, int64_t token,
                                      int64_t *document, int64_t *inside);

#endif
