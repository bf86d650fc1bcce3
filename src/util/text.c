#include "util/text.h"
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *g3_text_bytes(int64_t bytes, g3_number_text out) {
  static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) {
    snprintf(out, G3_NUMBER_TEXT, "%lld B", (long long)bytes);
    return out;
  }
  double x = (double)bytes / 1024;
  size_t u = 0;
  /* 1023.5 would print as "1024 KiB": the next unit begins where rounding does */
  while (x >= 1023.5 && u + 1 < sizeof units / sizeof *units) {
    x /= 1024;
    u++;
  }
  const int decimals = x < 9.995 ? 2 : x < 99.95 ? 1 : 0;
  snprintf(out, G3_NUMBER_TEXT, "%.*f %s", decimals, x, units[u]);
  return out;
}

const char *g3_text_count(int64_t n, g3_number_text out) {
  static const char units[] = "kMBT";
  double x = (double)n;
  if (fabs(x) < 1000) {
    snprintf(out, G3_NUMBER_TEXT, "%lld", (long long)n);
    return out;
  }
  x /= 1000;
  size_t u = 0;
  while (fabs(x) >= 999.95 && u + 1 < sizeof units - 1) {
    x /= 1000;
    u++;
  }
  snprintf(out, G3_NUMBER_TEXT, "%.1f %c", x, units[u]);
  return out;
}

const char *g3_text_commas(int64_t n, g3_number_text out) {
  char digits[G3_NUMBER_TEXT];
  const int len = snprintf(digits, sizeof digits, "%lld", (long long)n);
  const int sign = n < 0;
  size_t at = 0;
  for (int i = 0; i < len; i++) {
    if (i > sign && (len - i) % 3 == 0) out[at++] = ',';
    out[at++] = digits[i];
  }
  out[at] = '\0';
  return out;
}

const char *g3_text_duration(double seconds, g3_number_text out) {
  static const struct {
    double below; /* seconds, where the next row begins */
    double unit; /* seconds */
    const char *format; /* of whole units and the rest in the smaller unit */
    double rest; /* seconds of the smaller unit */
  } rows[] = {
      {3600, 60, "%.0fm %02.0fs", 1},
      {86400, 3600, "%.0fh %02.0fm", 60},
      {HUGE_VAL, 86400, "%.0fd %02.0fh", 3600},
  };
  if (!isfinite(seconds) || seconds < 0 || seconds > 1e15)
    snprintf(out, G3_NUMBER_TEXT, "unknown");
  else if (seconds < 0.9995e-3)
    snprintf(out, G3_NUMBER_TEXT, "%.0f us", seconds * 1e6);
  else if (seconds < 0.99995)
    snprintf(out, G3_NUMBER_TEXT, "%.1f ms", seconds * 1e3);
  else if (seconds < 59.95)
    snprintf(out, G3_NUMBER_TEXT, "%.1f s", seconds);
  else {
    size_t r = 0;
    double t = round(seconds);
    while (t >= rows[r].below)
      r++;
    t = floor(t / rows[r].rest) * rows[r].rest;
    const double whole = floor(t / rows[r].unit);
    snprintf(out, G3_NUMBER_TEXT, rows[r].format, whole, (t - whole * rows[r].unit) / rows[r].rest);
  }
  return out;
}

const char *g3_text_double(double x, g3_number_text out) {
  if (!isfinite(x)) {
    snprintf(out, G3_NUMBER_TEXT, "%s", isnan(x) ? "nan" : x > 0 ? "inf" : "-inf");
    return out;
  }
  for (int digits = 1; digits <= 17; digits++) {
    snprintf(out, G3_NUMBER_TEXT, "%.*g", digits, x);
    if (strtod(out, NULL) == x) break;
  }
  /* 400 rather than 4e+02: exact, since all integers of this size are */
  if (fabs(x) < 1e15 && strstr(out, "e+")) snprintf(out, G3_NUMBER_TEXT, "%.0f", x);
  return out;
}

int g3_text_distance(const char *a, const char *b) {
  enum { LONGEST = 63 };
  const size_t na = strnlen(a, LONGEST), nb = strnlen(b, LONGEST);
  int row[LONGEST + 1];
  for (size_t j = 0; j <= nb; j++)
    row[j] = (int)j;
  for (size_t i = 1; i <= na; i++) {
    int diagonal = row[0];
    row[0] = (int)i;
    for (size_t j = 1; j <= nb; j++) {
      const bool same = tolower((unsigned char)a[i - 1]) == tolower((unsigned char)b[j - 1]);
      int best = diagonal + !same;
      if (row[j] + 1 < best) best = row[j] + 1;
      if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
      diagonal = row[j];
      row[j] = best;
    }
  }
  return row[nb];
}

int g3_utf8_decode(const char *s, uint32_t *code) {
  static const struct {
    unsigned char mask, lead; /* of the first byte */
    uint32_t first; /* smallest code of this length: below it the form is overlong */
  } forms[] = {{0x80, 0x00, 0}, {0xE0, 0xC0, 0x80}, {0xF0, 0xE0, 0x800}, {0xF8, 0xF0, 0x10000}};
  const unsigned char *u = (const unsigned char *)s;
  for (int extra = 0; extra < 4; extra++) {
    if ((u[0] & forms[extra].mask) != forms[extra].lead) continue;
    uint32_t c = u[0] & (unsigned char)~forms[extra].mask;
    for (int i = 1; i <= extra; i++) {
      if ((u[i] & 0xC0) != 0x80) return 0;
      c = c << 6 | (u[i] & 0x3Fu);
    }
    if (c < forms[extra].first || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF)) return 0;
    *code = c;
    return extra + 1;
  }
  return 0;
}
