/* Preloaded: a file system that cannot lock. NO_FLOCK is the errno it gives. */
#include <errno.h>
#include <stdlib.h>

int flock(int file, int operation);

int flock(int file, int operation) {
  (void)file;
  (void)operation;
  const char *text = getenv("NO_FLOCK");
  errno = text ? atoi(text) : EIO;
  return -1;
}
