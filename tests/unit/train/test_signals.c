/* The first signal is remembered, the second ends the process. */
#include "train/signals.h"
#include "unit/util/cm.h"
#include "unit/util/death.h"
#include <sys/auxv.h>

static void two(int first, int second) {
  g3_signals_catch();
  if (g3_signal_pending() != 0) _exit(1);
  raise(first);
  if (g3_signal_pending() != first) _exit(2);
  raise(second);
  _exit(3); /* the second one should have ended it */
}

static void usr1_twice(void) {
  two(SIGUSR1, SIGUSR1);
}
static void usr1_then_term(void) {
  two(SIGUSR1, SIGTERM);
}
static void int_then_int(void) {
  two(SIGINT, SIGINT);
}

static void first_and_second(void **state) {
  (void)state;
  char said[256];
  assert_int_equal(death_of(usr1_twice, said, sizeof said), 1000 + 128 + SIGUSR1);
  assert_int_equal(death_of(usr1_then_term, said, sizeof said), 1000 + 128 + SIGTERM);
  assert_int_equal(death_of(int_then_int, said, sizeof said), 1000 + 128 + SIGINT);
}

/* A read that a signal interrupts goes on by itself. */
static void interrupted_read(void) {
  int ends[2];
  char byte = 0;
  if (pipe(ends) != 0) _exit(1);
  g3_signals_catch();
  const pid_t parent = getpid(), child = fork();
  if (child == 0) {
    kill(parent, SIGTERM);
    usleep(50000);
    if (write(ends[1], "x", 1) != 1) _exit(2);
    _exit(0);
  }
  if (read(ends[0], &byte, 1) != 1 || byte != 'x') _exit(3);
  while (!g3_signal_pending())
    usleep(1000);
  _exit(g3_signal_pending() == SIGTERM ? 4 : 5);
}

/* Handlers run on a stack of their own, with room for all registers of this processor. */
static void own_stack(void) {
  g3_signals_catch();
  stack_t stack;
  if (sigaltstack(NULL, &stack) != 0 || (stack.ss_flags & SS_DISABLE)) _exit(1);
  if (stack.ss_size < getauxval(AT_MINSIGSTKSZ) + 4096) _exit(2);
  static const int signals[] = {SIGUSR1, SIGTERM, SIGINT};
  for (int i = 0; i < 3; i++) {
    struct sigaction action;
    if (sigaction(signals[i], NULL, &action) != 0 || !(action.sa_flags & SA_ONSTACK)) _exit(3);
  }
  raise(SIGUSR1);
  _exit(g3_signal_pending() == SIGUSR1 ? 4 : 5);
}

static void a_stack_of_their_own(void **state) {
  (void)state;
  char said[256];
  assert_int_equal(death_of(own_stack, said, sizeof said), 1000 + 4);
}

static void system_calls_go_on(void **state) {
  (void)state;
  char said[256];
  assert_int_equal(death_of(interrupted_read, said, sizeof said), 1000 + 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(first_and_second),
                                     cmocka_unit_test(a_stack_of_their_own),
                                     cmocka_unit_test(system_calls_go_on)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
