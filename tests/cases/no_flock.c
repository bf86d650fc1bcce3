/* Preloaded: a file system that cannot lock. NO_FLOCK is the errno that it gives. */
#include <errno.h>
#include <stdlib.h>

int flock(int file, int operation);

int flock(int file, int operation) {
  (void)file;
  (void)operation;
  const char *text = getenv("NO_FLOCK");
  const long wanted = text ? strtol(text, NULL, 10) : 0;
  errno = wanted > 0 && wanted < 4096 ? (int)wanted : EIO;
  return -1;
}
