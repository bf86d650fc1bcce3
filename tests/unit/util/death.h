/* Runs a mistake of the program in a child process and catches what it says when it dies. */
#ifndef G3_TESTS_DEATH_H
#define G3_TESTS_DEATH_H
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Calls `mistake` in a child whose stderr goes to `out`. Returns the signal that ended the child,
 * or -1 when it lived, or 1000 + its exit code. */
static int death_of(void (*mistake)(void), char *out, size_t size) {
  int ends[2];
  if (pipe(ends) != 0) return -1;
  fflush(NULL);
  const pid_t child = fork();
  if (child < 0) return -1;
  if (child == 0) {
    /* cmocka's handler would report the death as the test's own failure */
    signal(SIGABRT, SIG_DFL);
    if (dup2(ends[1], STDERR_FILENO) < 0) _exit(99);
    mistake();
    _exit(0);
  }
  close(ends[1]);
  size_t used = 0;
  ssize_t n;
  while (used + 1 < size && (n = read(ends[0], out + used, size - 1 - used)) > 0)
    used += (size_t)n;
  out[used] = '\0';
  close(ends[0]);
  int how = 0;
  if (waitpid(child, &how, 0) != child) return -1;
  if (WIFSIGNALED(how)) return WTERMSIG(how);
  return WEXITSTATUS(how) ? 1000 + WEXITSTATUS(how) : -1;
}

#endif
