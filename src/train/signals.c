#include "train/signals.h"
#include "util/status.h"
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

static volatile sig_atomic_t pending;

static void on_signal(int signal) {
  if (pending) _exit(128 + signal);
  pending = signal;
}

/* Handlers run on a stack of their own: oneDNN's f32 products (2.6: the "gemm:jit" kernels) point
 * the stack register into a buffer of the heap while they run, and the kernel's frame would go over
 * whatever lies below that buffer. A stack that is there already (a sanitizer's) serves as well.
 * The frame holds all registers: up to 11 KiB with AMX. */
static void give_own_stack(void) {
  static char memory[1 << 16];
  stack_t stack;
  G3_CHECK(sigaltstack(NULL, &stack) == 0, "the signal stack cannot be asked for");
  if (!(stack.ss_flags & SS_DISABLE)) return;
  stack = (stack_t){.ss_sp = memory, .ss_size = sizeof memory};
  G3_CHECK(sigaltstack(&stack, NULL) == 0, "no stack for signals");
}

void g3_signals_catch(void) {
  static const int signals[] = {SIGUSR1, SIGTERM, SIGINT};
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART | SA_ONSTACK};
  give_own_stack();
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
    G3_CHECK(sigaction(signals[i], &action, NULL) == 0, "signal %d cannot be caught", signals[i]);
}

int g3_signal_pending(void) {
  return (int)pending;
}
