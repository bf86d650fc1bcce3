#include "ckpt/seal.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

static const char magic[] = "gpt3d checkpoint index\n";

/* The length and the hash of what lies behind the block. False: errno says why. */
static bool hash_rest(int fd, int64_t *bytes, uint64_t *hash) {
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  unsigned char part[1 << 14];
  *bytes = 0;
  for (;;) {
    const ssize_t n = pread(fd, part, sizeof part, (off_t)(G3_CKPT_SEAL_BYTES + *bytes));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    if (n == 0) break;
    XXH3_64bits_update(&state, part, (size_t)n);
    *bytes += n;
  }
  *hash = XXH3_64bits_digest(&state);
  return true;
}

static void make_block(char block[G3_CKPT_SEAL_BYTES], int64_t bytes, uint64_t hash) {
  memset(block, 0, G3_CKPT_SEAL_BYTES);
  snprintf(block, G3_CKPT_SEAL_BYTES, "%sbytes %" PRId64 "\nxxh3 %016" PRIx64 "\n", magic, bytes,
           hash);
}

g3_status g3_ckpt_seal(const char *path) {
  char block[G3_CKPT_SEAL_BYTES];
  int64_t bytes = 0;
  uint64_t hash = 0;
  const int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return G3_FAIL(G3_EIO, "cannot seal %s: %s", path, strerror(errno));
  bool ok = hash_rest(fd, &bytes, &hash);
  if (ok) {
    make_block(block, bytes, hash);
    ok = pwrite(fd, block, sizeof block, 0) == (ssize_t)sizeof block;
  }
  const g3_status st = ok ? G3_OK : G3_FAIL(G3_EIO, "cannot seal %s: %s", path, strerror(errno));
  close(fd);
  return st;
}

static g3_status check(int fd, const char *path) {
  char found[G3_CKPT_SEAL_BYTES] = {0}, wanted[G3_CKPT_SEAL_BYTES];
  int64_t bytes = 0;
  uint64_t hash = 0;
  const ssize_t n = pread(fd, found, sizeof found, 0);
  if (n < 0 || !hash_rest(fd, &bytes, &hash))
    return G3_FAIL(G3_EIO, "cannot read %s: %s", path, strerror(errno));
  if (n != (ssize_t)sizeof found || memcmp(found, magic, sizeof magic - 1) != 0)
    return G3_FAIL(G3_EFORMAT, "%s is not the index of a gpt3d checkpoint", path);
  make_block(wanted, bytes, hash);
  if (memcmp(found, wanted, sizeof wanted) != 0)
    return G3_FAIL(G3_EFORMAT,
                   "%s is damaged: its bytes do not have the hash that was written with them",
                   path);
  return G3_OK;
}

g3_status g3_ckpt_seal_check(const char *path) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return G3_FAIL(G3_EIO, "cannot open the index %s: %s", path, strerror(errno));
  const g3_status st = check(fd, path);
  close(fd);
  return st;
}
