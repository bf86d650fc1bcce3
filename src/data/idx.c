#include "data/idx.h"
#include "data/bytes.h"
#include "util/array.h"
#include <stdlib.h>
#include <string.h>

const uint8_t g3_idx_magic[G3_IDX_MAGIC_BYTES] = {'M', 'M', 'I', 'D', 'I', 'D', 'X', 0, 0};
const g3_token_type g3_token_byte = {1, 1, false, "uint8"};

/* Codes 6 and 7 are floating point, which is no token. */
static const g3_token_type types[] = {
    {1, 1, false, "uint8"}, {2, 1, true, "int8"},  {3, 2, true, "int16"},
    {4, 4, true, "int32"},  {5, 8, true, "int64"}, {8, 2, false, "uint16"},
};

/* The header's fields and where its three arrays begin. */
typedef struct {
  const char *path;
  const g3_token_type *type;
  int64_t sequences, documents;
  const uint8_t *lengths, *offsets, *docs;
  int64_t bin_bytes;
} header;

static const g3_token_type *type_of(uint64_t code) {
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (types[i].code == code) return &types[i];
  return NULL;
}

static g3_status read_header(const char *path, const g3_map *idx, header *out) {
  const uint8_t *p = idx->data;
  if (idx->size < G3_IDX_HEADER_BYTES)
    return G3_FAIL(G3_EFORMAT, "%s: truncated: %lld bytes, the header alone has %d", path,
                   (long long)idx->size, G3_IDX_HEADER_BYTES);
  if (memcmp(p, g3_idx_magic, sizeof g3_idx_magic) != 0)
    return G3_FAIL(G3_EFORMAT,
                   "%s: bad magic: it does not begin with MMIDIDX; is it the .idx of an indexed "
                   "data set?",
                   path);
  const uint64_t version = g3_bytes_get(p + 9, 8);
  if (version != G3_IDX_VERSION)
    return G3_FAIL(G3_EFORMAT, "%s: version %llu; only version %d is known", path,
                   (unsigned long long)version, G3_IDX_VERSION);
  header h = {.path = path, .type = type_of(p[17])};
  if (!h.type)
    return G3_FAIL(G3_EFORMAT,
                   "%s: token type code %d; tokens are uint8 (1), int8 (2), int16 (3), int32 (4), "
                   "int64 (5) or uint16 (8)",
                   path, p[17]);
  h.sequences = g3_bytes_get_signed(p + 18, 8);
  h.documents = g3_bytes_get_signed(p + 26, 8);
  const int64_t room = (idx->size - G3_IDX_HEADER_BYTES);
  int64_t wanted = -1;
  if (h.sequences >= 0 && h.sequences <= room / 12 && h.documents >= 0 && h.documents <= room / 8)
    wanted = 12 * h.sequences + 8 * h.documents;
  /* Multimodal sets append one byte a sequence. */
  if (wanted < 0 || (wanted != room && wanted + h.sequences != room))
    return G3_FAIL(G3_EFORMAT,
                   "%s: %s: %llu sequences and %llu document indices need %d + 12 x sequences + "
                   "8 x indices bytes, the file has %lld",
                   path, wanted < 0 || wanted > room ? "truncated" : "too long",
                   (unsigned long long)h.sequences, (unsigned long long)h.documents,
                   G3_IDX_HEADER_BYTES, (long long)idx->size);
  h.lengths = p + G3_IDX_HEADER_BYTES;
  h.offsets = h.lengths + 4 * h.sequences;
  h.docs = h.offsets + 8 * h.sequences;
  *out = h;
  return G3_OK;
}

/* Document d holds the sequences [docs[d], docs[d + 1]). */
static g3_status check_documents(const header *h) {
  int64_t last = 0;
  for (int64_t d = 0; d < h->documents; d++) {
    const int64_t at = g3_bytes_get_signed(h->docs + 8 * d, 8);
    if (at < last || at > h->sequences || (d == 0 && at != 0))
      return G3_FAIL(G3_EFORMAT,
                     "%s: document index %lld is %lld; they begin at 0, never fall and end at the "
                     "number of sequences, %lld",
                     h->path, (long long)d, (long long)at, (long long)h->sequences);
    last = at;
  }
  if (last != h->sequences)
    return G3_FAIL(G3_EFORMAT, "%s: the last document ends at sequence %lld of %lld", h->path,
                   (long long)last, (long long)h->sequences);
  return G3_OK;
}

static g3_status sequence_at(const header *h, int64_t i, int64_t *length, int64_t *byte) {
  *length = g3_bytes_get_signed(h->lengths + 4 * i, 4);
  *byte = g3_bytes_get_signed(h->offsets + 8 * i, 8);
  if (*length < 0)
    return G3_FAIL(G3_EFORMAT, "%s: sequence %lld has the length %lld", h->path, (long long)i,
                   (long long)*length);
  if (*byte < 0 || *byte > h->bin_bytes || *length > (h->bin_bytes - *byte) / h->type->bytes)
    return G3_FAIL(G3_EFORMAT,
                   "%s: sequence %lld (offset %lld, %lld tokens of %d bytes) goes past the end of "
                   "the .bin file, which has %lld bytes",
                   h->path, (long long)i, (long long)*byte, (long long)*length, h->type->bytes,
                   (long long)h->bin_bytes);
  return G3_OK;
}

/* Walks the sequences; the runs are counted, and written when there is room for them. */
static g3_status walk(const header *h, g3_token_run *run, int64_t *runs, int64_t *tokens) {
  int64_t found = 0, total = 0, next = -1;
  for (int64_t i = 0; i < h->sequences; i++) {
    int64_t length, byte;
    G3_TRY(sequence_at(h, i, &length, &byte));
    if (length == 0) continue;
    if (byte != next) {
      if (run) run[found] = (g3_token_run){total, byte};
      found++;
    }
    next = byte + length * h->type->bytes;
    if (!g3_add_ok(total, length, &total))
      return G3_FAIL(G3_EFORMAT, "%s: more than 2^63 tokens", h->path);
  }
  *runs = found;
  *tokens = total;
  return G3_OK;
}

g3_status g3_idx_parse(const char *path, const g3_map *idx, int64_t bin_bytes, g3_idx *out) {
  header h = {.path = path};
  G3_TRY(read_header(path, idx, &h));
  h.bin_bytes = bin_bytes;
  G3_TRY(check_documents(&h));
  g3_idx found = {.type = *h.type};
  G3_TRY(walk(&h, NULL, &found.runs, &found.tokens));
  if (found.tokens == 0)
    return G3_FAIL(G3_EFORMAT, "%s: no tokens: all %lld sequences are empty", path,
                   (long long)h.sequences);
  G3_TRY(G3_NEW_ARRAY(found.runs, &found.run));
  const g3_status st = walk(&h, found.run, &found.runs, &found.tokens);
  if (st != G3_OK) {
    free(found.run);
    return g3_trace_up(st, __FILE__, __LINE__);
  }
  *out = found;
  return G3_OK;
}

g3_status g3_idx_document(const char *path, const g3_map *idx, int64_t token, int64_t *document,
                          int64_t *inside) {
  header h = {.path = path};
  G3_TRY(read_header(path, idx, &h));
  h.bin_bytes = INT64_MAX; /* where the bytes lie does not matter here */
  G3_TRY(check_documents(&h));
  int64_t total = 0, sequence = 0;
  for (int64_t d = 0; d + 1 < h.documents; d++) {
    const int64_t begin = total, end = g3_bytes_get_signed(h.docs + 8 * (d + 1), 8);
    for (; sequence < end; sequence++) {
      int64_t length, byte;
      G3_TRY(sequence_at(&h, sequence, &length, &byte));
      if (!g3_add_ok(total, length, &total)) break;
    }
    if (token >= total) continue;
    *document = d;
    *inside = token - begin;
    return G3_OK;
  }
  return G3_FAIL(G3_EFORMAT, "%s: token %lld is in no document", path, (long long)token);
}
