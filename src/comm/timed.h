/* Where communication's time goes: a communicator whose table is replaced, while it lasts, by one
 * that forwards to it and keeps time, as device/timed.h does for ops. Time includes waiting for
 * other ranks. */
#ifndef G3_COMM_TIMED_H
#define G3_COMM_TIMED_H
#include "comm/comm.h"
#include "device/timed.h"

/* Local. Counts what runs on streams of the device that `timed` belongs to, in a row for each kind
 * of operation, "all_reduce tp". Both are borrowed until g3_comm_timed_end, which gives c back its
 * table and must come before c is destroyed or split. A communicator of one rank stays as it is. */
G3_MUST_USE g3_status g3_comm_timed_begin(g3_comm *c, g3_timed *timed);
void g3_comm_timed_end(g3_comm *c); /* NULL and one that is not timed are fine */

#endif
