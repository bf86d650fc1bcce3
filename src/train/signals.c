#include "train/signals.h"
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

static volatile sig_atomic_t pending;

static void on_signal(int signal) {
  if (pending) _exit(128 + signal);
  pending = signal;
}

void g3_signals_catch(void) {
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
  sigemptyset(&action.sa_mask);
  sigaction(SIGUSR1, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
  sigaction(SIGINT, &action, NULL);
}

int g3_signal_pending(void) {
  return (int)pending;
}
