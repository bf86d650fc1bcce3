/* What the files of the safetensors reader share. */
#ifndef G3_CKPT_ST_HEADER_H
#define G3_CKPT_ST_HEADER_H
#include "ckpt/files.h"
#include "ckpt/safetensors.h"

/* One open file. */
typedef struct {
  char path[G3_CKPT_PATH];
  int fd;
} g3_st_file;

struct g3_safetensors {
  g3_st_file *file; /* [nfiles] */
  int nfiles;
  g3_st_tensor *tensor; /* [ntensors] */
  int ntensors;
};

/* Local. Reads and checks the header of an open file, and appends its tensors, as file number
 * `number`, to the set's. */
G3_MUST_USE g3_status g3_st_header_read(const g3_st_file *file, int number, g3_safetensors *set);

/* Local. Reads bytes [at, at + n) of an open file. */
G3_MUST_USE g3_status g3_st_pread(const g3_st_file *file, void *out, int64_t n, int64_t at);

/* Local. Opens all shards that the index at `path`, in `dir`, names, and checks that they hold what
 * it says. What was opened is in the set also after a failure. */
G3_MUST_USE g3_status g3_st_index_open(const char *dir, const char *path, g3_safetensors *set);

/* Local. Opens one file of the set, whose room for files suffices, and reads its header. */
G3_MUST_USE g3_status g3_st_file_open(const char *path, g3_safetensors *set);

/* Orders tensors by name. For qsort. */
int g3_st_by_name(const void *a, const void *b);

#endif
