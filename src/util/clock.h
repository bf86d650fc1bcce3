/* Wall time. */
#ifndef G3_UTIL_CLOCK_H
#define G3_UTIL_CLOCK_H

/* Seconds since some fixed point; never goes backwards. Local. */
double g3_now(void);

#endif
