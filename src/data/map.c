#include "data/map.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

g3_status g3_map_open(const char *path, g3_map *out) {
  g3_status st = G3_OK;
  struct stat info;
  void *data = NULL;
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return G3_FAIL(G3_EIO, "%s: cannot be opened: %s", path, strerror(errno));
  if (fstat(fd, &info) != 0) {
    st = G3_FAIL(G3_EIO, "%s: cannot be examined: %s", path, strerror(errno));
  } else if (!S_ISREG(info.st_mode)) {
    st = G3_FAIL(G3_EIO, "%s: %s; give a file", path,
                 S_ISDIR(info.st_mode) ? "is a directory" : "is not a regular file");
  } else if (info.st_size > 0) {
    data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED)
      st = G3_FAIL(G3_EIO, "%s: its %lld bytes cannot be mapped: %s", path, (long long)info.st_size,
                   strerror(errno));
  }
  close(fd); /* read-only: nothing can be lost */
  if (st == G3_OK) *out = (g3_map){data, info.st_size};
  return st;
}

void g3_map_close(g3_map *m) {
  if (m->data) munmap((void *)(uintptr_t)m->data, (size_t)m->size);
  *m = (g3_map){NULL, 0};
}
