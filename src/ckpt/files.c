#include "ckpt/files.h"
#include "util/array.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

g3_status g3_ckpt_path(char *out, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  const int n = vsnprintf(out, G3_CKPT_PATH, fmt, args);
  va_end(args);
  if (n < 0 || n >= G3_CKPT_PATH)
    return G3_FAIL(G3_EINVAL, "the path %.60s... has %d bytes; at most %d are possible", out, n,
                   G3_CKPT_PATH - 1);
  return G3_OK;
}

bool g3_ckpt_is(const char *path, bool dir) {
  struct stat st;
  return stat(path, &st) == 0 && (dir ? S_ISDIR(st.st_mode) : S_ISREG(st.st_mode));
}

g3_status g3_ckpt_make_dirs(const char *path) {
  char part[G3_CKPT_PATH];
  G3_TRY(g3_ckpt_path(part, "%s", path));
  for (char *p = part + 1;; p++) {
    if (*p != '/' && *p != '\0') continue;
    const char was = *p;
    *p = '\0';
    if (mkdir(part, 0777) != 0 && (errno != EEXIST || !g3_ckpt_is(part, true))) {
      const int why = errno == EEXIST ? ENOTDIR : errno;
      return G3_FAIL(G3_EIO, "cannot make the directory %s: %s", part, strerror(why));
    }
    *p = was;
    if (was == '\0') return G3_OK;
  }
}

int g3_ckpt_remove_dir(const char *path) {
  DIR *d = opendir(path);
  if (!d) return errno == ENOENT ? 0 : errno;
  int bad = 0;
  for (struct dirent *e; (errno = 0, e = readdir(d)) != NULL;) {
    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
    if (unlinkat(dirfd(d), e->d_name, 0) != 0 && errno != ENOENT && !bad) bad = errno;
  }
  if (errno && !bad) bad = errno;
  closedir(d);
  if (rmdir(path) != 0 && !bad) bad = errno;
  return bad;
}

g3_status g3_ckpt_sync(const char *path, int64_t *bytes) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return G3_FAIL(G3_EIO, "cannot open %s to sync it: %s", path, strerror(errno));
  struct stat st;
  g3_status status = G3_OK;
  /* Some network file systems cannot sync directories, and say EINVAL. */
  if (fstat(fd, &st) != 0 || (fsync(fd) != 0 && !(S_ISDIR(st.st_mode) && errno == EINVAL)))
    status = G3_FAIL(G3_EIO, "cannot sync %s to disk: %s", path, strerror(errno));
  else if (bytes)
    *bytes = (int64_t)st.st_size;
  close(fd);
  return status;
}

/* 0 or errno. What was replaced is removed; a rest of it is under a name that no one reads, and the
 * next save removes it. */
static int rename_over(const char *from, const char *to) {
  if (!g3_ckpt_is(to, true)) return rename(from, to) == 0 ? 0 : errno;
  if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_EXCHANGE) == 0) {
    (void)g3_ckpt_remove_dir(from);
    return 0;
  }
  if (errno != EINVAL && errno != ENOSYS) return errno;
  char old[G3_CKPT_PATH + 8];
  snprintf(old, sizeof old, "%s.old", to);
  int bad = g3_ckpt_remove_dir(old);
  if (bad) return bad;
  if (rename(to, old) != 0) return errno;
  if (rename(from, to) != 0) {
    bad = errno;
    rename(old, to);
    return bad;
  }
  (void)g3_ckpt_remove_dir(old);
  return 0;
}

g3_status g3_ckpt_put_dir(const char *from, const char *to, const char *parent) {
  const int bad = rename_over(from, to);
  if (bad) return G3_FAIL(G3_EIO, "cannot move %s to %s: %s", from, to, strerror(bad));
  return g3_ckpt_sync(parent, NULL);
}

g3_status g3_ckpt_put_text(const char *parent, const char *name, const char *text) {
  char path[G3_CKPT_PATH], temp[G3_CKPT_PATH];
  G3_TRY(g3_ckpt_path(path, "%s/%s", parent, name));
  G3_TRY(g3_ckpt_path(temp, "%s/%s.tmp", parent, name));
  FILE *f = fopen(temp, "we");
  if (!f) return G3_FAIL(G3_EIO, "cannot write %s: %s", temp, strerror(errno));
  int bad = fputs(text, f) < 0 || fflush(f) != 0 || fsync(fileno(f)) != 0 ? errno : 0;
  if (fclose(f) != 0 && !bad) bad = errno;
  if (!bad && rename(temp, path) != 0) bad = errno;
  if (bad) {
    unlink(temp);
    return G3_FAIL(G3_EIO, "cannot write %s: %s", path, strerror(bad));
  }
  return g3_ckpt_sync(parent, NULL);
}

int64_t g3_ckpt_step_of(const char *name, const char *suffix) {
  static const char prefix[] = "step-";
  if (strncmp(name, prefix, sizeof prefix - 1) != 0) return -1;
  const char *digits = name + sizeof prefix - 1;
  const size_t n = strspn(digits, "0123456789");
  /* Eight digits, or more without a leading zero: each step has one name. */
  if (n < 8 || n > 18 || (n > 8 && digits[0] == '0')) return -1;
  if (strcmp(digits + n, suffix) != 0) return -1;
  return (int64_t)strtoll(digits, NULL, 10);
}

static int by_value(const void *a, const void *b) {
  const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static g3_status read_steps(DIR *d, const char *dir, const char *suffix, int64_t **steps,
                            int64_t *n) {
  int64_t room = 0;
  for (struct dirent *e; (errno = 0, e = readdir(d)) != NULL;) {
    const int64_t step = g3_ckpt_step_of(e->d_name, suffix);
    if (step < 0) continue;
    if (*n == room) {
      int64_t *more = NULL;
      room = room ? 2 * room : 16;
      G3_TRY(G3_NEW_ARRAY(room, &more));
      if (*n) memcpy(more, *steps, (size_t)*n * sizeof *more);
      free(*steps);
      *steps = more;
    }
    (*steps)[(*n)++] = step;
  }
  if (errno) return G3_FAIL(G3_EIO, "cannot list %s: %s", dir, strerror(errno));
  return G3_OK;
}

g3_status g3_ckpt_steps(const char *dir, const char *suffix, int64_t **steps, int64_t *n) {
  int64_t *found = NULL, count = 0;
  DIR *d = opendir(dir);
  if (!d && errno != ENOENT) return G3_FAIL(G3_EIO, "cannot list %s: %s", dir, strerror(errno));
  if (d) {
    const g3_status st = read_steps(d, dir, suffix, &found, &count);
    closedir(d);
    if (st != G3_OK) {
      free(found);
      return g3_trace_up(st, __FILE__, __LINE__);
    }
  }
  if (count) qsort(found, (size_t)count, sizeof *found, by_value);
  *steps = found;
  *n = count;
  return G3_OK;
}
