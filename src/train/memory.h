/* What the kernel says of this process's memory, beside what was planned. */
#ifndef G3_TRAIN_MEMORY_H
#define G3_TRAIN_MEMORY_H
#include "train/job.h"

/* Local. Bytes resident now (VmRSS); 0 where the kernel does not say. No allocation. */
int64_t g3_memory_resident(void);

/* Local. The most bytes that were ever resident (VmHWM); 0 where the kernel does not say. */
int64_t g3_memory_peak(void);

/* Collective over world, after g3_job_open. With --debug rank 0 says of each rank what its arenas
 * hold, in bytes by class, and by how much the kernel saw the process grow meanwhile. */
G3_MUST_USE g3_status g3_memory_report(const g3_job *job);

/* Collective over world, at the end. Rank 0 says how far the rank that grew most, from before its
 * arenas were allocated to its peak, went beyond its plan. */
G3_MUST_USE g3_status g3_memory_report_peak(const g3_job *job);

#endif
