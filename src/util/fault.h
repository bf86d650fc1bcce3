/* Faults seeded on purpose, to see that `gpt3d verify` finds them: only in a build with
 * GPT3D_FAULTS, where the environment's GPT3D_FAULT names one. In any other build g3_fault is the
 * constant false. */
#ifndef G3_UTIL_FAULT_H
#define G3_UTIL_FAULT_H
#include <stdbool.h>

#ifdef GPT3D_FAULTS

/* True when this fault is the one that is seeded, and faults are not suspended. Local. */
bool g3_fault(const char *name);

/* Turns the fault off for a while: the reference that verify compares with is free of it. Local. */
void g3_fault_suspend(bool suspended);

#else
#define g3_fault(name) false
#define g3_fault_suspend(suspended) ((void)(suspended))
#endif

#endif
