/* One voice: rank 0 speaks for the job, any rank may warn of what only it can see. */
#ifndef G3_UTIL_LOG_H
#define G3_UTIL_LOG_H
#include <stdbool.h>
#include <stdio.h>

typedef enum { G3_LOG_DEBUG, G3_LOG_INFO, G3_LOG_WARN, G3_LOG_ERROR } g3_log_level;

/* Sets who speaks. `rank` decides whether G3_INFO is heard; `level` is the lowest that is printed.
 * Local. */
void g3_log_setup(int rank, g3_log_level level);

/* A copy of what is printed goes to `file` as well (the run's log.txt); NULL ends that. Borrowed.
 */
void g3_log_file(FILE *file);

/* Prints one line. INFO and below: rank 0 only, stdout. WARN and ERROR: stderr, with the rank when
 * it is not 0. Local. */
void g3_log(g3_log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Replaces the progress line on a terminal; does nothing elsewhere. Rank 0 only. */
void g3_log_progress(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#define G3_DEBUG(...) g3_log(G3_LOG_DEBUG, __VA_ARGS__)
#define G3_INFO(...) g3_log(G3_LOG_INFO, __VA_ARGS__)
#define G3_WARN(...) g3_log(G3_LOG_WARN, __VA_ARGS__)
#define G3_ERROR(...) g3_log(G3_LOG_ERROR, __VA_ARGS__)

#endif
