/* Numbers for people, and text that other programs must be able to read back. Each function writes
 * into the caller's buffer and returns it, so that it can stand among printf's arguments. */
#ifndef G3_UTIL_TEXT_H
#define G3_UTIL_TEXT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { G3_NUMBER_TEXT = 32 };
typedef char g3_number_text[G3_NUMBER_TEXT]; /* holds any of the results below */

/* Bytes in powers of 1024 with three digits: "512 B", "1.50 GiB"; 0 <= bytes. Pure. */
const char *g3_text_bytes(int64_t bytes, g3_number_text out);

/* A count in powers of 1000: "950", "12.3 k", "124.4 M", "175.0 B". Pure. */
const char *g3_text_count(int64_t n, g3_number_text out);

/* A count with all its digits, in groups of three: "12,288". Pure. */
const char *g3_text_commas(int64_t n, g3_number_text out);

/* Seconds with the two largest units: "850 us", "45.0 ms", "12.3 s", "3m 05s", "1h 02m", "4d 03h";
 * "unknown" for a negative or non-finite time. Pure. */
const char *g3_text_duration(double seconds, g3_number_text out);

/* The shortest decimal that reads back as exactly `x`: "0.002", "1e-08"; "nan", "inf" and "-inf"
 * for what is not finite. Pure. */
const char *g3_text_double(double x, g3_number_text out);

/* Insertions, deletions and replacements between two words (Levenshtein, 1966), capital and small
 * letters taken as one. Only the first 63 bytes of each are compared. Pure. */
int g3_text_distance(const char *a, const char *b);

/* Decodes one UTF-8 character at `s` (not at its NUL): its length in bytes with *code set, or 0
 * when the bytes there are not valid UTF-8 (overlong forms and surrogates are not). Pure. */
int g3_utf8_decode(const char *s, uint32_t *code);

#endif
