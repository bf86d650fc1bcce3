/* The operations of one rank by itself; other implementations use them for communicators of size 1.
 */
#ifndef G3_COMM_SELF_H
#define G3_COMM_SELF_H
#include "comm/comm.h"

/* None of them reads impl but destroy, which owns only the g3_comm. */
extern const g3_comm_ops g3_comm_self_ops;

#endif
