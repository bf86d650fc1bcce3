#include "device/facts.h"
#include "device/cpu/isa.h"
#include "device/cpu/product.h"
#include "device/device.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE = 8192 };

/* What stands behind the first line of /proc/cpuinfo that begins with `key`; "" without one. */
static void cpuinfo(const char *key, char out[LINE]) {
  char line[LINE];
  out[0] = '\0';
  FILE *file = fopen("/proc/cpuinfo", "re");
  if (!file) return;
  while (!*out && fgets(line, sizeof line, file)) {
    const char *colon = strchr(line, ':');
    if (!colon || strncmp(line, key, strlen(key)) != 0) continue;
    snprintf(out, LINE, "%s", colon + 1 + strspn(colon + 1, " "));
    out[strcspn(out, "\n")] = '\0';
  }
  fclose(file);
}

static bool has_word(const char *list, const char *word) {
  const size_t n = strlen(word);
  for (const char *p = list; (p = strstr(p, word)) != NULL; p += n)
    if ((p == list || p[-1] == ' ') && (p[n] == ' ' || p[n] == '\0')) return true;
  return false;
}

static void processor(g3_facts *f) {
  static const struct {
    const char *flag, *name;
  } units[] = {{"avx2", "AVX2"},
               {"avx512f", "AVX-512"},
               {"avx512_bf16", "AVX-512 bf16"},
               {"amx_bf16", "AMX bf16"}};
  char model[LINE], flags[LINE], text[256] = "";
  cpuinfo("model name", model);
  cpuinfo("flags", flags);
  for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
    const size_t used = strlen(text);
    snprintf(text + used, sizeof text - used, ", %s %s", units[i].name,
             has_word(flags, units[i].flag) ? "yes" : "no");
  }
  g3_fact(f, G3_FACT_OK, "processor", "%.80s%s", *model ? model : "unknown", text);
}

static void kernels(g3_facts *f) {
  static const char *const names[G3_ISA_COUNT] = {
      [G3_ISA_V2] = "v2 (SSE4)", [G3_ISA_V3] = "v3 (AVX2)", [G3_ISA_V4] = "v4 (AVX-512)"};
  const char *asked = getenv("GPT3D_ISA");
  const g3_isa isa = g3_cpu_isa();
  g3_fact(f, G3_FACT_OK, "kernels", "x86-64-%s%s%s", names[isa],
          asked ? ", as GPT3D_ISA says: " : "", asked ? asked : "");
}

/* A product of bf16, made and thrown away, tells whether the processor's units are used. */
static void products(g3_facts *f) {
  const g3_product_key key = {.m = 64,
                              .n = 64,
                              .k = 64,
                              .lda = 64,
                              .ldb = 64,
                              .ldc = 64,
                              .input = G3_BF16,
                              .output = G3_BF16};
  const char *limit = getenv("DNNL_MAX_CPU_ISA");
  char version[32];
  g3_products *table;
  g3_product *p;
  g3_products_version(version, sizeof version);
  if (g3_products_create(1, &table) != G3_OK) {
    g3_fact(f, G3_FACT_MISSING, "oneDNN", "%s does not start: apt install --reinstall libdnnl2",
            version);
    return;
  }
  if (g3_products_get(table, &key, &p) == G3_OK && p->primitive)
    g3_fact(f, G3_FACT_OK, "oneDNN", "%s, multiplies bf16 natively", version);
  else
    g3_fact(f, G3_FACT_OK, "oneDNN", "%s, has no bf16 product %s%s: such products are made in f32",
            version, limit ? "under DNNL_MAX_CPU_ISA=" : "on this processor", limit ? limit : "");
  g3_products_destroy(table);
}

static void gpu(g3_facts *f) {
  const bool built = g3_device_ops_named("cuda") != NULL;
  const bool seen = access("/dev/nvidia0", F_OK) == 0;
  if (built)
    g3_fact(f, seen ? G3_FACT_OK : G3_FACT_WARN, "GPU", "the cuda backend is in this build%s",
            seen ? "" : ", but there is no /dev/nvidia0: use --device cpu");
  else
    g3_fact(f, seen ? G3_FACT_WARN : G3_FACT_OK, "GPU",
            "%sthis build is without CUDA; --device cpu does the work",
            seen ? "there is one, but " : "none seen; ");
}

void g3_device_facts(g3_facts *f) {
  processor(f);
  kernels(f);
  products(f);
  gpu(f);
}
