/* Thousands of small mutations of a good model: each is refused with a reason, or read with every
 * tensor inside its file. Under AddressSanitizer nothing is read beyond its memory. */
#include "ckpt/fields.h"
#include "unit/ckpt/st_files.h"
#include "util/philox.h"

enum { MUTATIONS = 6000, ROOM = 4096, TENSORS = 4 };

typedef struct {
  char bytes[ROOM];
  size_t size;
} content;

typedef struct {
  uint64_t at;
} dice;

static uint32_t roll(dice *d, uint32_t sides) {
  const uint64_t at = d->at++;
  return g3_philox(77, 0, (uint32_t)at, (uint32_t)(at >> 32), 0, 0).w[0] % sides;
}

static void write_model(const char *path, int shift) {
  g3_st_tensor tensors[TENSORS] = {{.name = "transformer.wte.weight", .ndim = 2, .dim = {3, 2}},
                                   {.name = "transformer.h.0.ln_1.bias", .ndim = 1, .dim = {2}},
                                   {.name = "h.1.mlp.c_fc.weight", .ndim = 2, .dim = {2, 8}},
                                   {.name = "x", .ndim = 1, .dim = {1}}};
  float numbers[32];
  g3_st_writer w;
  for (int i = 0; i < 32; i++)
    numbers[i] = (float)(i + shift);
  for (int i = 0; shift && i < TENSORS; i++)
    memcpy(tensors[i].name + strlen(tensors[i].name), ".b", 3);
  assert_int_equal(g3_st_writer_begin(path, tensors, TENSORS, &w), G3_OK);
  assert_int_equal(g3_st_writer_put(&w, numbers, 25), G3_OK);
  assert_int_equal(g3_st_writer_end(&w), G3_OK);
}

/* Characters that mean something, so that mutants stay near JSON. */
static char letter(dice *d) {
  static const char meaningful[] = "0123456789{}[]\",:.-eE+ \\u\n/truefalsn\0\x1b\x80\xff_BFIUT";
  return meaningful[roll(d, sizeof meaningful - 1)];
}

static void change_byte(content *c, dice *d) {
  c->bytes[roll(d, (uint32_t)c->size)] = letter(d);
}

static void flip_bit(content *c, dice *d) {
  char *at = &c->bytes[roll(d, (uint32_t)c->size)];
  *at = (char)(*at ^ 1 << roll(d, 8));
}

static void cut_end(content *c, dice *d) {
  c->size -= roll(d, (uint32_t)c->size);
}

static void lengthen(content *c, dice *d) {
  const size_t more = 1 + roll(d, 16);
  memset(c->bytes + c->size, letter(d), more);
  c->size += more;
}

/* Bytes that are left out, or stand there twice. */
static void move(content *c, dice *d) {
  const size_t from = roll(d, (uint32_t)c->size), to = roll(d, (uint32_t)c->size);
  const size_t n = roll(d, 40), last = from > to ? from : to;
  if (last + n >= c->size) return;
  memmove(c->bytes + to, c->bytes + from, n);
}

static void delete (content *c, dice *d) {
  const size_t from = roll(d, (uint32_t)c->size), n = 1 + roll(d, 4);
  if (from + n >= c->size) return;
  memmove(c->bytes + from, c->bytes + from + n, c->size - from - n);
  c->size -= n;
}

static void insert(content *c, dice *d) {
  const size_t at = roll(d, (uint32_t)c->size);
  memmove(c->bytes + at + 1, c->bytes + at, c->size - at);
  c->bytes[at] = letter(d);
  c->size++;
}

static void change_length(content *c, dice *d) {
  c->bytes[roll(d, 8)] = (char)roll(d, 256);
}

static void mutate(content *c, dice *d) {
  static void (*const ways[])(content *, dice *) = {change_byte, flip_bit, cut_end, lengthen,
                                                    move,        delete,   insert,  change_length};
  const int n = 1 + (int)roll(d, 3);
  for (int i = 0; i < n && c->size > 8; i++)
    ways[roll(d, sizeof ways / sizeof ways[0])](c, d);
}

/* Over the file as it is: one that is emptied first would be written to the disk each time. */
static void overwrite(const char *path, const content *c) {
  FILE *f = fopen(path, "r+b");
  assert_non_null(f);
  assert_int_equal(fwrite(c->bytes, 1, c->size, f), c->size);
  assert_int_equal(fflush(f), 0);
  assert_int_equal(ftruncate(fileno(f), (off_t)c->size), 0);
  assert_int_equal(fclose(f), 0);
}

/* What a model that is taken must be: tensors in their files, in order, each with the bytes that
 * stand there. */
static void check_taken(const g3_safetensors *set) {
  static float x[ROOM / 2];
  content file;
  int64_t bytes = 0;
  for (int i = 0; i < g3_safetensors_count(set); i++) {
    const g3_st_tensor *t = g3_safetensors_at(set, i);
    assert_int_equal(g3_safetensors_find(set, t->name), i);
    assert_true(t->count > 0 && t->bytes >= t->count && t->bytes < ROOM && t->begin >= 8);
    bytes += t->bytes;
    if (t->dtype > G3_ST_BF16) continue;
    if (g3_safetensors_read(set, t, x) != G3_OK) fail_msg("%s", g3_last_error());
    file.size = read_bytes(g3_safetensors_path(set, t), file.bytes, ROOM);
    assert_true(t->begin + t->bytes <= (int64_t)file.size);
    if (t->dtype == G3_ST_F32) assert_memory_equal(x, file.bytes + t->begin, (size_t)t->bytes);
  }
  assert_true(bytes < ROOM);
}

static void fuzz(const char *path, uint64_t stream, int *taken, int *refused_some) {
  content good, c;
  dice d = {stream << 32};
  good.size = read_bytes(path, good.bytes, ROOM / 2);
  for (int i = 0; i < MUTATIONS; i++) {
    g3_safetensors *set = NULL;
    c = good;
    mutate(&c, &d);
    overwrite(path, &c);
    const g3_status st = g3_safetensors_open(".", &set);
    if (st == G3_OK) {
      check_taken(set);
      ++*taken;
    } else {
      assert_true(st == G3_EFORMAT || st == G3_EIO);
      assert_true(strlen(g3_last_error()) > 10);
      ++*refused_some;
    }
    g3_safetensors_close(set);
  }
  overwrite(path, &good);
}

static void one_file(void **state) {
  (void)state;
  int taken = 0, refused_some = 0;
  write_model("model.safetensors", 0);
  fuzz("model.safetensors", 1, &taken, &refused_some);
  print_message("of one file's mutants %d are models, %d are refused\n", taken, refused_some);
  /* Changed numbers and names are still models; a changed structure is not. */
  assert_true(taken > MUTATIONS / 50 && refused_some > MUTATIONS / 2);
}

static void index_and_shards(void **state) {
  (void)state;
  static const char index[] =
      "{\"metadata\":{\"total_size\":200},\"weight_map\":{\"transformer.wte.weight\":\"m-1."
      "safetensors\",\"transformer.h.0.ln_1.bias\":\"m-1.safetensors\",\"h.1.mlp.c_fc.weight\":\"m-"
      "1.safetensors\",\"x\":\"m-1.safetensors\",\"transformer.wte.weight.b\":\"m-2.safetensors\","
      "\"transformer.h.0.ln_1.bias.b\":\"m-2.safetensors\",\"h.1.mlp.c_fc.weight.b\":\"m-2."
      "safetensors\",\"x.b\":\"m-2.safetensors\"}}";
  int taken = 0, refused_some = 0;
  unlink("model.safetensors");
  write_model("m-1.safetensors", 0);
  write_model("m-2.safetensors", 100);
  write_bytes("model.safetensors.index.json", index, sizeof index - 1);
  g3_safetensors_close(opened());
  fuzz("model.safetensors.index.json", 2, &taken, &refused_some);
  print_message("of an index's mutants %d are models, %d are refused\n", taken, refused_some);
  assert_true(taken > 0 && refused_some > MUTATIONS / 2);
  taken = refused_some = 0;
  fuzz("m-2.safetensors", 3, &taken, &refused_some);
  assert_true(taken > 0 && refused_some > MUTATIONS / 2);
}

/* config.json: keys stay printable and different, values of a known kind. */
static void settings_file(void **state) {
  (void)state;
  static const char text[] =
      "{\"model_type\": \"gpt2\", \"n_layer\": 12, \"n_inner\": null, \"layer_norm_epsilon\": "
      "1e-05,\n \"tie_word_embeddings\": true, \"architectures\": [\"GPT2LMHeadModel\", {}]}";
  const char *path = "config.json";
  content good = {.size = sizeof text - 1}, c;
  dice d = {4ull << 32};
  int taken = 0;
  memcpy(good.bytes, text, good.size);
  write_bytes(path, text, good.size);
  for (int i = 0; i < MUTATIONS; i++) {
    g3_field *fields = NULL;
    int n = 0;
    c = good;
    mutate(&c, &d);
    overwrite(path, &c);
    const g3_status st = g3_fields_read(path, &fields, &n);
    assert_true(st == G3_OK || st == G3_EFORMAT);
    taken += st == G3_OK;
    for (int k = 0; k < n; k++) {
      assert_true(fields[k].kind <= G3_FIELD_LIST);
      assert_true(strlen(fields[k].key) < sizeof fields[k].key);
      assert_true(strlen(fields[k].text) < sizeof fields[k].text);
      for (int l = 0; l < k; l++)
        assert_string_not_equal(fields[k].key, fields[l].key);
    }
    free(fields);
  }
  print_message("of a settings file's mutants %d are settings\n", taken);
  assert_true(taken > MUTATIONS / 50 && taken < MUTATIONS / 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(one_file), cmocka_unit_test(index_and_shards),
                                     cmocka_unit_test(settings_file)};
  return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
