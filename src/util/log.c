#include "util/log.h"
#include <fcntl.h>
#include <stdarg.h>
#include <unistd.h>

static struct {
  int rank;
  g3_log_level level;
  FILE *file;
  bool progress; /* a progress line is on the screen */
} state = {0, G3_LOG_INFO, NULL, false};

void g3_log_setup(int rank, g3_log_level level) {
  state.rank = rank;
  state.level = level;
}

void g3_log_file(FILE *file) {
  state.file = file;
}

static const char *const prefixes[] = {[G3_LOG_DEBUG] = "debug: ",
                                       [G3_LOG_INFO] = "",
                                       [G3_LOG_WARN] = "warning: ",
                                       [G3_LOG_ERROR] = "error: "};

void g3_log(g3_log_level level, const char *fmt, ...) {
  if (level < state.level || (level <= G3_LOG_INFO && state.rank != 0)) return;
  char line[4096], who[32] = "";
  va_list args;
  va_start(args, fmt);
  vsnprintf(line, sizeof line, fmt, args);
  va_end(args);
  if (level >= G3_LOG_WARN && state.rank != 0) snprintf(who, sizeof who, "rank %d: ", state.rank);
  FILE *to = level >= G3_LOG_WARN ? stderr : stdout;
  if (state.progress) {
    fputs("\r\033[K", stdout);
    fflush(stdout);
    state.progress = false;
  }
  const char *name = level >= G3_LOG_WARN ? "gpt3d: " : "";
  fprintf(to, "%s%s%s%s\n", name, who, prefixes[level], line);
  fflush(to);
  if (state.file) {
    fprintf(state.file, "%s%s%s\n", who, prefixes[level], line);
    fflush(state.file);
  }
}

/* mpirun gives its ranks a terminal of its own even when its output goes to a file, so the parent's
 * is asked too, where that can be seen. */
static bool on_terminal(void) {
  char path[64];
  if (!isatty(STDOUT_FILENO)) return false;
  snprintf(path, sizeof path, "/proc/%d/fd/1", (int)getppid());
  const int fd = open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
  if (fd < 0) return true;
  const bool terminal = isatty(fd);
  close(fd);
  return terminal;
}

void g3_log_progress(const char *fmt, ...) {
  if (state.rank != 0 || state.level > G3_LOG_INFO || !on_terminal()) return;
  va_list args;
  fputs("\r\033[K", stdout);
  va_start(args, fmt);
  vprintf(fmt, args);
  va_end(args);
  fflush(stdout);
  state.progress = true;
}
