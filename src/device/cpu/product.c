#include "device/cpu/product.h"
#include "util/array.h"
#include <omp.h>
#include <oneapi/dnnl/dnnl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 256 /* a power of two */, PAGE = 4096 };

struct g3_products {
  int threads;
  dnnl_engine_t engine;
  dnnl_stream_t stream;
  char *scratch_memory; /* holds scratch, which begins on a page */
  char *scratch; /* [threads][scratch_bytes]: what products for one thread work in. The library's
                    own would belong to the thread that made the product */
  size_t scratch_bytes;
  g3_product *slots; /* open addressing; key.m == 0 marks a free one */
  int64_t capacity, used;
};

#define TRY_DNNL(call)                                                                             \
  do {                                                                                             \
    const dnnl_status_t s_ = (call);                                                               \
    if (s_ != dnnl_success) return G3_FAIL(G3_EBACKEND, "oneDNN: %s returned %d", #call, (int)s_); \
  } while (0)

static dnnl_data_type_t type_of(int32_t dtype) {
  return dtype == G3_BF16 ? dnnl_bf16 : dnnl_f32;
}

/* Version 3 made memory descriptors opaque and dropped the operation's own descriptor. */
#if DNNL_VERSION_MAJOR >= 3
typedef dnnl_memory_desc_t desc;
typedef const_dnnl_memory_desc_t borrowed_desc; /* of a memory object */
static const_dnnl_memory_desc_t desc_of(const desc *d) {
  return *d;
}
static void desc_free(desc *d) {
  (void)dnnl_memory_desc_destroy(*d);
}
static dnnl_status_t desc_make(desc *d, const dnnl_dims_t dims, int32_t dtype,
                               const dnnl_dims_t strides) {
  return dnnl_memory_desc_create_with_strides(d, 2, dims, type_of(dtype), strides);
}
static dnnl_status_t append_sum(dnnl_post_ops_t ops) {
  return dnnl_post_ops_append_sum(ops, 1.0f, 0, dnnl_data_type_undef);
}
static dnnl_status_t matmul_desc(dnnl_primitive_desc_t *out, dnnl_engine_t engine, const desc *a,
                                 const desc *b, const desc *bias, const desc *c,
                                 const_dnnl_primitive_attr_t attr, const g3_product_key *key) {
  (void)key;
  return dnnl_matmul_primitive_desc_create(out, engine, *a, *b, bias ? *bias : NULL, *c, attr);
}
#else
typedef dnnl_memory_desc_t desc;
typedef const dnnl_memory_desc_t *borrowed_desc; /* of a memory object */
static const dnnl_memory_desc_t *desc_of(const desc *d) {
  return d;
}
static void desc_free(desc *d) {
  (void)d;
}
static dnnl_status_t desc_make(desc *d, const dnnl_dims_t dims, int32_t dtype,
                               const dnnl_dims_t strides) {
  return dnnl_memory_desc_init_by_strides(d, 2, dims, type_of(dtype), strides);
}
static dnnl_status_t append_sum(dnnl_post_ops_t ops) {
  return dnnl_post_ops_append_sum(ops, 1.0f);
}
static bool named(const_dnnl_primitive_desc_t pd, const char *want) {
  const char *name = "";
  return dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name) == dnnl_success &&
         strcmp(name, want) == 0;
}

/* Version 2's first choice with AVX-512 bf16 is slower than its second, by up to a third, where it
 * must transpose much of A (weight gradients) or where k is a vocabulary. */
static bool wants_second(const g3_product_key *k) {
  return k->input == G3_BF16 && !k->trans_b &&
         (k->trans_a ? k->m * k->n >= 1 << 18 : k->k >= 1 << 14);
}

static dnnl_status_t second_desc(dnnl_primitive_desc_t *out, const dnnl_matmul_desc_t *op,
                                 const_dnnl_primitive_attr_t attr, dnnl_engine_t engine) {
  dnnl_primitive_desc_iterator_t it;
  dnnl_status_t s = dnnl_primitive_desc_iterator_create(&it, op, attr, engine, NULL);
  if (s != dnnl_success) return s;
  dnnl_primitive_desc_t pd = dnnl_primitive_desc_iterator_fetch(it);
  if (pd && named(pd, "brg:avx512_core_bf16") &&
      dnnl_primitive_desc_iterator_next(it) == dnnl_success) {
    (void)dnnl_primitive_desc_destroy(pd);
    pd = dnnl_primitive_desc_iterator_fetch(it);
  }
  (void)dnnl_primitive_desc_iterator_destroy(it);
  if (pd && named(pd, "gemm:jit")) {
    *out = pd;
    return dnnl_success;
  }
  if (pd) (void)dnnl_primitive_desc_destroy(pd);
  return dnnl_unimplemented;
}

static dnnl_status_t matmul_desc(dnnl_primitive_desc_t *out, dnnl_engine_t engine, const desc *a,
                                 const desc *b, const desc *bias, const desc *c,
                                 const_dnnl_primitive_attr_t attr, const g3_product_key *key) {
  dnnl_matmul_desc_t op;
  const dnnl_status_t s = dnnl_matmul_desc_init(&op, a, b, bias, c);
  if (s != dnnl_success) return s;
  if (wants_second(key) && second_desc(out, &op, attr, engine) == dnnl_success) return dnnl_success;
  return dnnl_primitive_desc_create(out, &op, attr, engine, NULL);
}
#endif

static int threads_of(const g3_products *t, const g3_product_key *key) {
  return key->alone ? 1 : t->threads;
}

/* oneDNN's parallel loops take their number of threads from OpenMP's setting for this thread. */
static void use_threads(int threads) {
  if (omp_get_max_threads() != threads) omp_set_num_threads(threads);
}

g3_status g3_products_create(int threads, g3_products **out) {
  g3_products *t;
  G3_TRY(G3_NEW_ARRAY(1, &t));
  t->threads = threads;
  t->capacity = FIRST_CAPACITY;
  dnnl_status_t s = dnnl_engine_create(&t->engine, dnnl_cpu, 0);
  if (s == dnnl_success) s = dnnl_stream_create(&t->stream, t->engine, dnnl_stream_default_flags);
  g3_status st = s == dnnl_success
                     ? G3_NEW_ARRAY(t->capacity, &t->slots)
                     : G3_FAIL(G3_EBACKEND, "oneDNN does not start: it returned %d", (int)s);
  if (st != G3_OK) {
    g3_products_destroy(t);
    return st;
  }
  *out = t;
  return G3_OK;
}

static void product_free(g3_product *p) {
  void *memories[] = {p->a, p->b, p->c, p->bias, p->scratch};
  for (int i = 0; i < 5; i++)
    if (memories[i]) (void)dnnl_memory_destroy(memories[i]);
  if (p->primitive) (void)dnnl_primitive_destroy(p->primitive);
}

void g3_products_destroy(g3_products *t) {
  if (!t) return;
  for (int64_t i = 0; t->slots && i < t->capacity; i++)
    product_free(&t->slots[i]);
  free(t->slots);
  free(t->scratch_memory);
  if (t->stream) (void)dnnl_stream_destroy(t->stream);
  if (t->engine) (void)dnnl_engine_destroy(t->engine);
  free(t);
}

static uint64_t hash(const g3_product_key *key) {
  uint64_t words[sizeof *key / 8], h = 0x9E3779B97F4A7C15u;
  _Static_assert(sizeof *key == 10 * 8, "the key has padding");
  memcpy(words, key, sizeof words);
  for (size_t i = 0; i < sizeof words / 8; i++) {
    h = (h ^ words[i]) * 0xD6E8FEB86659FD93u;
    h ^= h >> 32;
  }
  return h;
}

/* The slot that holds `key`, or the free one where it belongs. */
static g3_product *find(g3_product *slots, int64_t capacity, const g3_product_key *key) {
  uint64_t i = hash(key) & (uint64_t)(capacity - 1);
  while (slots[i].key.m != 0 && memcmp(&slots[i].key, key, sizeof *key) != 0)
    i = (i + 1) & (uint64_t)(capacity - 1);
  return &slots[i];
}

static g3_status grow(g3_products *t) {
  g3_product *wider;
  G3_TRY(G3_NEW_ARRAY(2 * t->capacity, &wider));
  for (int64_t i = 0; i < t->capacity; i++)
    if (t->slots[i].key.m != 0) *find(wider, 2 * t->capacity, &t->slots[i].key) = t->slots[i];
  free(t->slots);
  t->slots = wider;
  t->capacity *= 2;
  return G3_OK;
}

/* Every stored matrix is row-major; a transposed operand is one whose strides change places. */
static dnnl_status_t operand(desc *d, int64_t rows, int64_t cols, bool trans, int64_t ld,
                             int32_t dtype) {
  const dnnl_dims_t dims = {rows, cols};
  const dnnl_dims_t strides = {trans ? 1 : ld, trans ? ld : 1};
  return desc_make(d, dims, dtype, strides);
}

/* Room for the largest scratch of any product, for each thread. */
static dnnl_status_t make_scratch(g3_products *t, const_dnnl_primitive_desc_t pd,
                                  dnnl_memory_t *out) {
  const borrowed_desc d = dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
  const size_t bytes = d ? (dnnl_memory_desc_get_size(d) + PAGE - 1) / PAGE * PAGE : 0;
  if (bytes == 0) return dnnl_success;
  if (bytes > t->scratch_bytes) {
    char *wider;
    if (G3_NEW_ARRAY((int64_t)bytes * t->threads + PAGE, &wider) != G3_OK)
      return dnnl_out_of_memory;
    free(t->scratch_memory);
    t->scratch_memory = wider;
    t->scratch = wider + (PAGE - (uintptr_t)wider % PAGE);
    t->scratch_bytes = bytes;
  }
  return dnnl_memory_create(out, d, t->engine, DNNL_MEMORY_NONE);
}

/* Compiles the primitive. `out->primitive` stays NULL where the library refuses the types on this
 * processor, or only has its slow reference code for bf16. */
static g3_status make_primitive(g3_products *t, const g3_product_key *k, const desc *a,
                                const desc *b, const desc *bias, const desc *c, g3_product *out) {
  dnnl_primitive_attr_t attr = NULL;
  dnnl_post_ops_t ops = NULL;
  dnnl_primitive_desc_t pd = NULL;
  dnnl_primitive_t primitive = NULL;
  dnnl_memory_t scratch = NULL;
  const char *name = "";
  dnnl_status_t s = dnnl_primitive_attr_create(&attr);
  if (s == dnnl_success && k->alone)
    s = dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
  if (s == dnnl_success && k->accumulate) {
    s = dnnl_post_ops_create(&ops);
    if (s == dnnl_success) s = append_sum(ops);
    if (s == dnnl_success) s = dnnl_primitive_attr_set_post_ops(attr, ops);
  }
  if (s == dnnl_success) s = matmul_desc(&pd, t->engine, a, b, k->bias ? bias : NULL, c, attr, k);
  if (s == dnnl_success) s = dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name);
  const bool slow = k->input == G3_BF16 && strncmp(name, "ref", 3) == 0;
  if (s == dnnl_success && !slow) s = dnnl_primitive_create(&primitive, pd);
  if (s == dnnl_success && !slow && k->alone) s = make_scratch(t, pd, &scratch);
  if (pd) (void)dnnl_primitive_desc_destroy(pd);
  if (ops) (void)dnnl_post_ops_destroy(ops);
  if (attr) (void)dnnl_primitive_attr_destroy(attr);
  if (s == dnnl_unimplemented && k->input == G3_BF16) return G3_OK;
  if (s != dnnl_success)
    return G3_FAIL(G3_EBACKEND, "oneDNN refused the product of %lld x %lld x %lld (%s): %d",
                   (long long)k->m, (long long)k->n, (long long)k->k,
                   g3_dtype_name((g3_dtype)k->input), (int)s);
  out->primitive = primitive;
  out->scratch = scratch;
  return G3_OK;
}

static g3_status make_memory(g3_products *t, const desc *d, void **out) {
  dnnl_memory_t memory;
  TRY_DNNL(dnnl_memory_create(&memory, desc_of(d), t->engine, DNNL_MEMORY_NONE));
  *out = memory;
  return G3_OK;
}

static g3_status make_product(g3_products *t, const g3_product_key *k, g3_product *p) {
  desc d[4]; /* A, B, C, bias */
  int made = 0;
  g3_status st = G3_OK;
  dnnl_status_t s = operand(&d[0], k->m, k->k, k->trans_a, k->lda, k->input);
  if (s == dnnl_success && ++made) s = operand(&d[1], k->k, k->n, k->trans_b, k->ldb, k->input);
  if (s == dnnl_success && ++made) s = operand(&d[2], k->m, k->n, false, k->ldc, k->output);
  if (s == dnnl_success && ++made) s = operand(&d[3], 1, k->n, false, k->n, k->input);
  if (s == dnnl_success && ++made)
    st = make_primitive(t, k, &d[0], &d[1], &d[3], &d[2], p);
  else
    st = G3_FAIL(G3_EBACKEND, "oneDNN refused a matrix's shape: it returned %d", (int)s);
  void **memories[] = {&p->a, &p->b, &p->c, &p->bias};
  for (int i = 0; i < 4 && st == G3_OK && p->primitive; i++)
    if (i < 3 || k->bias) st = make_memory(t, &d[i], memories[i]);
  for (int i = 0; i < made; i++)
    desc_free(&d[i]);
  return st;
}

g3_status g3_products_get(g3_products *t, const g3_product_key *key, g3_product **out) {
  G3_CHECK(key->m > 0 && key->n > 0 && key->k > 0, "an empty product");
  g3_product *slot = find(t->slots, t->capacity, key);
  if (slot->key.m == 0) {
    use_threads(threads_of(t, key));
    g3_product fresh = {.key = *key};
    const g3_status st = make_product(t, key, &fresh);
    if (st != G3_OK) {
      product_free(&fresh);
      return st;
    }
    *slot = fresh;
    if (2 * ++t->used > t->capacity) {
      G3_TRY(grow(t));
      slot = find(t->slots, t->capacity, key);
    }
  }
  *out = slot;
  return G3_OK;
}

/* oneDNN's interface takes no const pointers, though it only reads inputs. */
static dnnl_status_t point(void *memory, const void *data) {
  return dnnl_memory_set_data_handle(memory, (void *)(uintptr_t)data);
}

g3_status g3_product_run(g3_products *t, g3_product *p, void *c, const void *a, const void *b,
                         const void *bias) {
  use_threads(threads_of(t, &p->key));
  TRY_DNNL(point(p->a, a));
  TRY_DNNL(point(p->b, b));
  TRY_DNNL(point(p->c, c));
  if (p->bias) TRY_DNNL(point(p->bias, bias));
  const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, p->a},
                                  {DNNL_ARG_WEIGHTS, p->b},
                                  {DNNL_ARG_DST, p->c},
                                  {DNNL_ARG_BIAS, p->bias}};
  TRY_DNNL(dnnl_primitive_execute(p->primitive, t->stream, p->bias ? 4 : 3, args));
  TRY_DNNL(dnnl_stream_wait(t->stream));
  return G3_OK;
}

/* A memory object with the shape of another, which several threads share. */
static dnnl_status_t view_of(dnnl_memory_t *out, void *of, dnnl_engine_t engine, const void *data) {
  borrowed_desc d;
  const dnnl_status_t s = dnnl_memory_get_memory_desc(of, &d);
  return s == dnnl_success ? dnnl_memory_create(out, d, engine, (void *)(uintptr_t)data) : s;
}

g3_status g3_product_run_alone(g3_products *t, int thread, const g3_product_key *key,
                               const g3_product *p, void *c, const void *a, const void *b,
                               const void *bias) {
  enum { MOST = 5 };
  if (!p) return g3_product_plain(t, key, c, a, b);
  use_threads(1);
  const struct {
    int name;
    void *shape;
    const void *data;
  } operands[MOST] = {
      {DNNL_ARG_SRC, p->a, a},
      {DNNL_ARG_WEIGHTS, p->b, b},
      {DNNL_ARG_DST, p->c, c},
      {DNNL_ARG_BIAS, p->bias, bias},
      {DNNL_ARG_SCRATCHPAD, p->scratch, t->scratch + (size_t)thread * t->scratch_bytes}};
  dnnl_exec_arg_t args[MOST];
  dnnl_status_t s = dnnl_success;
  int n = 0;
  for (int i = 0; i < MOST && s == dnnl_success; i++) {
    if (!operands[i].shape) continue;
    args[n].arg = operands[i].name;
    s = view_of(&args[n].memory, operands[i].shape, t->engine, operands[i].data);
    if (s == dnnl_success) n++;
  }
  if (s == dnnl_success) s = dnnl_primitive_execute(p->primitive, t->stream, n, args);
  if (s == dnnl_success) s = dnnl_stream_wait(t->stream);
  for (int i = 0; i < n; i++)
    (void)dnnl_memory_destroy(args[i].memory);
  return s == dnnl_success
             ? G3_OK
             : G3_FAIL(G3_EBACKEND, "oneDNN: a block of a product returned %d", (int)s);
}

void g3_products_version(char *out, size_t size) {
  const dnnl_version_t *v = dnnl_version();
  snprintf(out, size, "%d.%d.%d, %s", v->major, v->minor, v->patch,
           v->cpu_runtime == DNNL_RUNTIME_OMP   ? "OpenMP"
           : v->cpu_runtime == DNNL_RUNTIME_TBB ? "TBB"
                                                : "without threads of ours");
}

/* Measured over the shapes of GPT-2 and of tiny models, with AVX2 and AVX-512: the older routine
 * takes the lead by up to a third where B is not transposed (the backward's two products), and
 * loses a little where it is. */
bool g3_product_is_plain(const g3_product_key *key) {
  return key->input == G3_F32 && !key->bias && !key->trans_b;
}

g3_status g3_product_plain(g3_products *t, const g3_product_key *key, float *c, const float *a,
                           const float *b) {
  use_threads(threads_of(t, key));
  TRY_DNNL(dnnl_sgemm(key->trans_a ? 'T' : 'N', key->trans_b ? 'T' : 'N', key->m, key->n, key->k,
                      1.0f, a, key->lda, b, key->ldb, key->accumulate ? 1.0f : 0.0f, c, key->ldc));
  return G3_OK;
}
