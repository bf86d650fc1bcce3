/* What `gpt3d doctor` finds out: each folder tells of its own libraries and machinery, one line a
 * fact. */
#ifndef G3_UTIL_FACTS_H
#define G3_UTIL_FACTS_H
#include <stdio.h>

typedef enum {
  G3_FACT_OK,
  G3_FACT_WARN, /* works, but not as well as it could */
  G3_FACT_MISSING /* something cannot work; the line ends with what brings it */
} g3_fact_level;

/* Where facts go. */
typedef struct {
  FILE *out; /* borrowed; NULL: nothing is printed, only counted */
  int count[G3_FACT_MISSING + 1]; /* by level */
} g3_facts;

/* Local. Prints one fact, "ok       HDF5          1.10.8", and counts it. */
void g3_fact(g3_facts *f, g3_fact_level level, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

#endif
