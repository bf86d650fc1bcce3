/* Tokens without a file, for benchmarks and first contact with a cluster. */
#ifndef G3_DATA_MOCK_H
#define G3_DATA_MOCK_H
#include <stdint.h>

enum { G3_MOCK_TOKENS = 1 << 24 };

/* Pure. Tokens [start, start + n) of a stream over `vocab` ids that a model can learn: three tokens
 * of four follow from the one before by a fixed map, the fourth is drawn anew, small ids more often
 * than large ones. No ranks, no state: a token is a function of its position and vocab. */
void g3_mock_read(int64_t vocab, int64_t start, int64_t n, int32_t *out);

#endif
