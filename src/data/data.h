/* Tokens on disk and which of them a sample holds. Everything here is a pure function of the file,
 * the configuration and the sample's number: there is no state to save and no index to build. */
#ifndef G3_DATA_DATA_H
#define G3_DATA_DATA_H
#include "util/status.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct g3_tokens g3_tokens; /* a token file, mapped read-only */

/* Local. Opens tokens: "mock" (a generated stream that a model can learn from: no file), PREFIX.bin
 * or PREFIX.idx (Megatron's pair, header bytes in docs/formats.md), or any other file read as
 * bytes. Headers and offsets are checked against the file's size. Fails with what was found:
 * missing (for the default data/kjv.txt it names the command that makes it), empty, bad magic,
 * truncated, an offset past the end, "no tokens". */
G3_MUST_USE g3_status g3_tokens_open(const char *path, int64_t vocab, g3_tokens **out);
void g3_tokens_close(g3_tokens *t); /* NULL is fine */
int64_t g3_tokens_count(const g3_tokens *t);

/* Pure. The file that holds the tokens; "mock" without one. */
const char *g3_tokens_file(const g3_tokens *t);

/* Where a token lies, for people; all -1 without a file. */
typedef struct {
  int64_t byte; /* of the file */
  int64_t document; /* counted from 0; of a text: the line */
  int64_t inside; /* tokens from where the document begins */
} g3_token_place;

/* Local. Looks a token of [0, count) up in the text, or in the header file, which is read anew: for
 * messages. G3_EIO or G3_EFORMAT when that has changed. */
G3_MUST_USE g3_status g3_tokens_place(const g3_tokens *t, int64_t token, g3_token_place *out);

/* Local. Copies tokens [start, start + n) into out. A token id outside [0, vocab) is G3_EFORMAT and
 * named with its position. No allocation. */
G3_MUST_USE g3_status g3_tokens_read(const g3_tokens *t, int64_t start, int64_t n, int32_t *out);

/* Which part of the tokens is for what. Windows of seq + 1 tokens with stride seq. */
typedef struct {
  int64_t seq;
  int64_t train_tokens, val_tokens; /* the validation part is the last val_tokens */
  int64_t train_samples, val_samples; /* whole windows in each */
  uint64_t seed;
} g3_split;

/* Local. Cuts `tokens` for val_split in [0, 1]. G3_EINVAL with the numbers when there is not one
 * training sample, or when val_split > 0 leaves no validation sample. */
G3_MUST_USE g3_status g3_split_make(int64_t tokens, double val_split, int64_t seq, uint64_t seed,
                                    g3_split *out);

/* Pure. The place in epoch e of n samples, i in [0, n): a keyed permutation (Feistel network with
 * cycle-walking: Black and Rogaway, "Ciphers with arbitrary finite domains", 2002, section 5). */
int64_t g3_permute(int64_t i, int64_t n, uint64_t seed, int64_t epoch);

/* Pure. The first token of training sample number `sample`, as below. */
int64_t g3_sample_train_token(const g3_split *s, int64_t sample);

/* Local. The seq + 1 tokens of training sample number `sample` since the start of training (>= 0;
 * epoch = sample / train_samples), or of validation sample `sample` in [0, val_samples), in file
 * order. */
G3_MUST_USE g3_status g3_sample_train(const g3_tokens *t, const g3_split *s, int64_t sample,
                                      int32_t *out);
G3_MUST_USE g3_status g3_sample_val(const g3_tokens *t, const g3_split *s, int64_t sample,
                                    int32_t *out);

/* Pure. Windows of seq + 1 tokens, seq apart, that hold all of a file: every token but the first is
 * the last of exactly one step of a window. 0 when the file has less than two tokens. */
int64_t g3_file_windows(int64_t tokens, int64_t seq);

/* Local. Window `window` in [0, g3_file_windows) of the whole file, whatever the split but its seq;
 * what the last one lacks is -1. */
G3_MUST_USE g3_status g3_sample_file(const g3_tokens *t, const g3_split *s, int64_t window,
                                     int32_t *out);

/* Local. Writes PREFIX.bin and PREFIX.idx from a text file by bytes, one document a line (the
 * newline belongs to it; empty lines are kept as they are); whole or absent. */
G3_MUST_USE g3_status g3_tokenize_bytes(const char *text, const char *prefix);

#endif
