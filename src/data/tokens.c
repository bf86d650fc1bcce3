#include "data/bytes.h"
#include "data/data.h"
#include "data/idx.h"
#include "data/mock.h"
#include "util/array.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct g3_tokens {
  char *name; /* of the file with the tokens, for messages; "mock" */
  int64_t vocab;
  bool is_text; /* bytes are tokens; otherwise a pair, or "mock" */
  g3_map map; /* nothing for "mock" */
  g3_idx idx; /* where the tokens lie in it; no runs for "mock" */
};

static const char default_text[] = "data/kjv.txt";

static bool ends_with(const char *text, const char *end) {
  const size_t n = strlen(text), m = strlen(end);
  return n >= m && memcmp(text + n - m, end, m) == 0;
}

/* The first n bytes of `path`, then `end`; freed with free(). */
static g3_status name_of(const char *path, size_t n, const char *end, char **out) {
  const size_t room = n + strlen(end) + 1;
  G3_TRY(G3_NEW_ARRAY((int64_t)room, out));
  snprintf(*out, room, "%.*s%s", (int)n, path, end);
  return G3_OK;
}

static g3_status open_text(g3_tokens *t, const char *path) {
  G3_TRY(name_of(path, strlen(path), "", &t->name));
  if (strcmp(path, default_text) == 0 && access(path, F_OK) != 0)
    return G3_FAIL(G3_EIO,
                   "%s: no such file; make it with tools/corpus, or name another text with --data "
                   "FILE, or use --data mock",
                   path);
  G3_TRY(g3_map_open(path, &t->map));
  if (t->map.size == 0) return G3_FAIL(G3_EFORMAT, "%s: no tokens: the file is empty", path);
  t->is_text = true;
  t->idx = (g3_idx){.type = g3_token_byte, .tokens = t->map.size, .runs = 1};
  return G3_NEW_ARRAY(1, &t->idx.run); /* zeroed: token 0 is byte 0 */
}

static g3_status open_pair(g3_tokens *t, const char *path) {
  g3_status st;
  g3_map idx = {NULL, 0};
  char *idx_name = NULL;
  const size_t prefix = strlen(path) - 4;
  G3_TRY_TO(done, st, name_of(path, prefix, ".bin", &t->name));
  G3_TRY_TO(done, st, name_of(path, prefix, ".idx", &idx_name));
  G3_TRY_TO(done, st, g3_map_open(idx_name, &idx));
  G3_TRY_TO(done, st, g3_map_open(t->name, &t->map));
  G3_TRY_TO(done, st, g3_idx_parse(idx_name, &idx, t->map.size, &t->idx));
done:
  g3_map_close(&idx);
  free(idx_name);
  return st;
}

static g3_status open_mock(g3_tokens *t) {
  t->idx.tokens = G3_MOCK_TOKENS;
  return G3_NEW_ARRAY(1, &t->name);
}

g3_status g3_tokens_open(const char *path, int64_t vocab, g3_tokens **out) {
  G3_CHECK(vocab > 0 && vocab <= INT32_MAX, "a vocabulary of %lld ids is impossible",
           (long long)vocab);
  g3_tokens *t;
  G3_TRY(G3_NEW_ARRAY(1, &t));
  t->vocab = vocab;
  g3_status st;
  if (strcmp(path, "mock") == 0)
    st = open_mock(t);
  else if (ends_with(path, ".bin") || ends_with(path, ".idx"))
    st = open_pair(t, path);
  else
    st = open_text(t, path);
  if (st != G3_OK) {
    g3_tokens_close(t);
    return g3_trace_up(st, __FILE__, __LINE__);
  }
  *out = t;
  return G3_OK;
}

void g3_tokens_close(g3_tokens *t) {
  if (!t) return;
  g3_map_close(&t->map);
  free(t->idx.run);
  free(t->name);
  free(t);
}

int64_t g3_tokens_count(const g3_tokens *t) {
  return t->idx.tokens;
}

/* The run that holds a token: the last one that does not begin after it. */
static int64_t run_of(const g3_idx *x, int64_t token) {
  int64_t low = 0, high = x->runs;
  while (high - low > 1) {
    const int64_t mid = low + (high - low) / 2;
    *(x->run[mid].token <= token ? &low : &high) = mid;
  }
  return low;
}

const char *g3_tokens_file(const g3_tokens *t) {
  return t->idx.run ? t->name : "mock";
}

/* Lines are the documents of a text. */
static void place_in_text(const g3_tokens *t, g3_token_place *p) {
  int64_t begin = 0;
  p->document = 0;
  for (int64_t i = 0; i < p->byte; i++) {
    if (t->map.data[i] != '\n') continue;
    p->document++;
    begin = i + 1;
  }
  p->inside = p->byte - begin;
}

static g3_status place_in_pair(const g3_tokens *t, int64_t token, g3_token_place *p) {
  g3_map idx;
  char *name;
  G3_TRY(name_of(t->name, strlen(t->name) - 4, ".idx", &name));
  g3_status st = g3_map_open(name, &idx);
  if (st == G3_OK) {
    st = g3_idx_document(name, &idx, token, &p->document, &p->inside);
    g3_map_close(&idx);
  }
  free(name);
  return st;
}

g3_status g3_tokens_place(const g3_tokens *t, int64_t token, g3_token_place *out) {
  G3_CHECK(token >= 0 && token < t->idx.tokens, "token %lld of %lld does not exist",
           (long long)token, (long long)t->idx.tokens);
  g3_token_place p = {-1, -1, -1};
  if (t->idx.run) {
    const g3_token_run *run = &t->idx.run[run_of(&t->idx, token)];
    p.byte = run->byte + (token - run->token) * t->idx.type.bytes;
    if (t->is_text)
      place_in_text(t, &p);
    else
      G3_TRY(place_in_pair(t, token, &p));
  }
  *out = p;
  return G3_OK;
}

/* Tokens [start, start + n), all of run r. */
static g3_status read_run(const g3_tokens *t, int64_t r, int64_t start, int64_t n, int32_t *out) {
  const g3_token_type *type = &t->idx.type;
  const int64_t skipped = start - t->idx.run[r].token;
  const uint8_t *p = t->map.data + t->idx.run[r].byte + skipped * type->bytes;
  for (int64_t i = 0; i < n; i++, p += type->bytes) {
    const uint64_t raw = g3_bytes_get(p, type->bytes);
    const int64_t id = type->is_signed ? g3_bytes_get_signed(p, type->bytes) : (int64_t)raw;
    if (id < 0 || id >= t->vocab)
      return G3_FAIL(G3_EFORMAT,
                     "%s: token %lld is id %lld, outside a vocabulary of %lld; set --vocab to more "
                     "than the largest id, or use data made for this vocabulary",
                     t->name, (long long)(start + i), (long long)id, (long long)t->vocab);
    out[i] = (int32_t)id;
  }
  return G3_OK;
}

g3_status g3_tokens_read(const g3_tokens *t, int64_t start, int64_t n, int32_t *out) {
  G3_CHECK(start >= 0 && n >= 0 && n <= t->idx.tokens - start,
           "tokens [%lld, +%lld) of %lld do not exist", (long long)start, (long long)n,
           (long long)t->idx.tokens);
  if (!t->idx.run) {
    g3_mock_read(t->vocab, start, n, out);
    return G3_OK;
  }
  for (int64_t r = run_of(&t->idx, start); n > 0; r++) {
    const int64_t end = r + 1 < t->idx.runs ? t->idx.run[r + 1].token : t->idx.tokens;
    const int64_t part = n < end - start ? n : end - start;
    G3_TRY(read_run(t, r, start, part, out));
    start += part;
    out += part;
    n -= part;
  }
  return G3_OK;
}
