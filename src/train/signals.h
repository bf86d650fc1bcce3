/* SIGUSR1, SIGTERM and SIGINT mean "save and stop"; the second one quits at once. */
#ifndef G3_TRAIN_SIGNALS_H
#define G3_TRAIN_SIGNALS_H

/* Local; on the main thread, which is the one that signals to the process reach. Installs the
 * handlers, on a stack of their own. */
void g3_signals_catch(void);

/* Local. The signal that came, or 0. Ranks agree on it by the sums of a step. */
int g3_signal_pending(void);

#endif
