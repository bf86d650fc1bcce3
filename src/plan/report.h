/* What is known before a run starts, in words. */
#ifndef G3_PLAN_REPORT_H
#define G3_PLAN_REPORT_H
#include "config/config.h"
#include "device/arena.h"
#include "parallel/mesh.h"

/* Local; rank 0's voice. The lines that a run begins with: model, layout, batch identity with all
 * factors, stage map, memory by class of the largest rank. config must have passed its checks for
 * the grid. */
G3_MUST_USE g3_status g3_report_run(const g3_config *config, const g3_grid *grid,
                                    const char *device, int threads);

/* Local; no MPI, no device, nothing allocated. --dry-run: the same, with parameters and memory by
 * class for each stage's rank. The world is tp * pp * dp, where dp is that of the settings or
 * `world` / (tp * pp), at least 1. */
G3_MUST_USE g3_status g3_report_plan(g3_settings *settings, int64_t world);

/* Local; heard with --debug. One line: `what`, then the bytes of each class and their sum. */
void g3_report_bytes(const char *what, const size_t bytes[G3_MEM_CLASSES]);

#endif
