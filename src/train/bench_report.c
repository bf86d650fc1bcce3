/* The numbers of all ranks in one table, for people and as JSON. */
#include "train/bench.h"
#include "util/array.h"
#include "util/json.h"
#include "util/text.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_LINES = 2 * G3_TIMED_ROWS, JSON_BYTES = 1 << 16 };

/* One operation over all ranks. */
typedef struct {
  const char *name;
  const g3_timed_row *first; /* rank 0's, or NULL where it has none */
  const g3_timed_row *most; /* of the rank that takes longest */
  int rank; /* that rank */
} line;

typedef struct {
  line line[MOST_LINES]; /* longest first */
  int n;
} table;

static line *find(table *t, const char *name) {
  for (int i = 0; i < t->n; i++)
    if (strcmp(t->line[i].name, name) == 0) return &t->line[i];
  return NULL;
}

static int by_time(const void *a, const void *b) {
  const double x = ((const line *)a)->most->seconds, y = ((const line *)b)->most->seconds;
  return x > y ? -1 : x < y;
}

static void merge(const g3_bench *b, table *t) {
  t->n = 0;
  for (int r = 0; r < b->job->world->size; r++) {
    for (int i = 0; i < b->rank[r].nrows; i++) {
      const g3_timed_row *row = &b->rank[r].row[i];
      if (row->calls == 0 && row->seconds <= 0) continue;
      line *l = find(t, row->name);
      if (!l) {
        G3_CHECK(t->n < MOST_LINES, "more than %d operations", (int)MOST_LINES);
        l = &t->line[t->n++];
        *l = (line){.name = row->name, .first = r == 0 ? row : NULL, .most = row, .rank = r};
      }
      if (row->seconds > l->most->seconds) {
        l->most = row;
        l->rank = r;
      }
    }
  }
  qsort(t->line, (size_t)t->n, sizeof t->line[0], by_time);
}

/* What is in no row: the host's own work. */
static double rest(const g3_bench_rank *r) {
  double s = r->seconds;
  for (int i = 0; i < r->nrows; i++)
    s -= r->row[i].seconds;
  return s;
}

static int longest_rest(const g3_bench *b) {
  int most = 0;
  for (int r = 1; r < b->job->world->size; r++)
    if (rest(&b->rank[r]) > rest(&b->rank[most])) most = r;
  return most;
}

static double ratio(double a, double b) {
  return b > 0 ? a / b : 0;
}

/* Numbers of the whole job. */
typedef struct {
  double tokens_s, mean_tokens_s; /* in the fastest step, and on average */
  double model_flops; /* model arithmetic a second, of each rank (g3_gpt_flops_per_token) */
  double products, alone; /* rate of the products, of each rank, in the step and by themselves */
  int64_t resident, growth, planned; /* of the rank with the highest */
} totals;

/* Seconds of a rank's step in which data moves between ranks, or is waited for. */
static double transfers(const g3_bench_rank *r) {
  double s = 0;
  for (int i = 0; i < r->nrows; i++)
    if (r->row[i].unit == G3_TIMED_MOVED) s += r->row[i].seconds;
  return s;
}

static totals sum_up(const g3_bench *b) {
  const g3_config *c = b->job->config;
  const g3_bench_rank *first = b->rank;
  const int ranks = b->job->world->size;
  const double tokens = (double)(c->train.global_batch * c->model.seq);
  totals t = {.tokens_s = tokens / first->seconds, .mean_tokens_s = tokens / first->mean};
  double flops = 0, in_step = 0, alone = 0;
  t.model_flops = t.tokens_s * g3_gpt_flops_per_token(&c->model) / ranks;
  for (int r = 0; r < ranks; r++) {
    const g3_bench_rank *x = &b->rank[r];
    const int64_t growth = x->resident_peak - x->resident_before;
    flops += x->products_flops;
    in_step += x->products;
    alone += x->products_alone;
    if (x->resident_peak > t.resident) t.resident = x->resident_peak;
    if (growth > t.growth) t.growth = growth;
    if (x->planned > t.planned) t.planned = x->planned;
  }
  t.products = ratio(flops, in_step);
  t.alone = ratio(flops, alone);
  return t;
}

static void print_line(const g3_bench *b, FILE *out, const line *l) {
  const double first = l->first ? l->first->seconds : 0;
  char rate[32] = "";
  if (l->most->work > 0)
    snprintf(rate, sizeof rate, "%.4g %s", 1e-9 * ratio(l->most->work, l->most->seconds),
             l->most->unit == G3_TIMED_FLOPS ? "GFLOP/s" : "GB/s");
  fprintf(out, "%-24s %8lld %10.3f %7.1f %%", l->name, (long long)l->most->calls, 1e3 * first,
          100 * ratio(first, b->rank->seconds));
  if (b->job->world->size > 1) fprintf(out, " %10.3f %5d", 1e3 * l->most->seconds, l->rank);
  fprintf(out, "  %s\n", rate);
}

static void print_table(const g3_bench *b, FILE *out, const table *t) {
  const bool many = b->job->world->size > 1;
  const int slow = longest_rest(b);
  fprintf(out, "\n%-24s %8s %10s %9s%s  %s\n", "operation", "calls", "ms", "share",
          many ? "    slowest  rank" : "", many ? "rate there" : "rate");
  for (int i = 0; i < t->n; i++)
    print_line(b, out, &t->line[i]);
  fprintf(out, "%-24s %8s %10.3f %7.1f %%", "the rest, on the host", "", 1e3 * rest(b->rank),
          100 * ratio(rest(b->rank), b->rank->seconds));
  if (many) fprintf(out, " %10.3f %5d", 1e3 * rest(&b->rank[slow]), slow);
  fprintf(out, "\n%-24s %8s %10.3f %7.1f %%\n", "step", "", 1e3 * b->rank->seconds, 100.0);
  if (many)
    fprintf(out, "ms and share are those of rank 0; ranks that share a core wait for each other in "
                 "any row\n");
}

/* The dimension that is cut into blocks, in the order of g3_gemm_cut. */
static const char *const cut_names[] = {"", "m", "n", "k"};

static void print_products(const g3_bench *b, FILE *out) {
  fprintf(out, "\n%8s %8s %8s  %-33s %6s %10s %9s %9s %6s\n", "m", "n", "k", "product", "calls",
          "ms", "GFLOP/s", "alone", "ratio");
  for (int i = 0; i < b->nproducts; i++) {
    const g3_timed_product *p = &b->product[i].in_step;
    const double flops = 2.0 * (double)p->m * (double)p->n * (double)p->k;
    const double each = ratio(p->seconds, (double)p->calls);
    char text[64];
    snprintf(text, sizeof text, "%s%s %s x %s -> %s", p->accumulate ? "+= " : "",
             g3_dtype_name(p->input), p->trans_a ? "A^T" : "A", p->trans_b ? "B^T" : "B",
             g3_dtype_name(p->output));
    if (p->bias) snprintf(text + strlen(text), sizeof text - strlen(text), " + bias");
    if (p->cut != G3_CUT_NONE)
      snprintf(text + strlen(text), sizeof text - strlen(text), ", %s / %lld", cut_names[p->cut],
               (long long)p->block);
    fprintf(out, "%8lld %8lld %8lld  %-33s %6lld %10.3f %9.1f %9.1f %6.2f\n", (long long)p->m,
            (long long)p->n, (long long)p->k, text, (long long)p->calls, 1e3 * p->seconds,
            1e-9 * ratio(flops, each), 1e-9 * ratio(flops, b->product[i].alone),
            ratio(b->product[i].alone, each));
  }
}

static void print_totals(const g3_bench *b, FILE *out, const totals *t) {
  g3_number_text tokens, mean, resident, growth, planned;
  fprintf(out,
          "\nstep      %.3f ms, the fastest of %lld; %.3f on average. %s tokens/s, %s on average; "
          "loss %.4f\n",
          1e3 * b->rank->seconds, (long long)b->rank->steps, 1e3 * b->rank->mean,
          g3_text_commas((int64_t)(t->tokens_s + 0.5), tokens),
          g3_text_commas((int64_t)(t->mean_tokens_s + 0.5), mean), b->rank->loss);
  if (b->job->world->size > 1)
    fprintf(out,
            "transfers %.3f ms of rank 0's step, %.1f %%: communication and waiting for others\n",
            1e3 * transfers(b->rank), 100 * ratio(transfers(b->rank), b->rank->seconds));
  fprintf(out,
          "products  %.1f GFLOP/s a rank in the step, %.1f by themselves: ratio %.2f\n"
          "model     %.1f GFLOP/s a rank over the whole step: %.2f of the products' own rate\n",
          1e-9 * t->products, 1e-9 * t->alone, ratio(t->products, t->alone), 1e-9 * t->model_flops,
          ratio(t->model_flops, t->alone));
  fprintf(out, "memory    %s resident at the peak, grown by %s; planned %s: %.3f of it\n",
          g3_text_bytes(t->resident, resident), g3_text_bytes(t->growth, growth),
          g3_text_bytes(t->planned, planned), ratio((double)t->growth, (double)t->planned));
}

static void print_cost(const g3_bench *b, FILE *out, const totals *t) {
  g3_number_text exact, fast;
  if (b->fast_seconds <= 0) return;
  fprintf(out,
          "exact     %.3f ms a step, %.3f ms without: %.2f times the time; planned %s, %s without: "
          "%.2f times the memory\n",
          1e3 * b->rank->seconds, 1e3 * b->fast_seconds, ratio(b->rank->seconds, b->fast_seconds),
          g3_text_bytes(t->planned, exact), g3_text_bytes(b->fast_planned, fast),
          ratio((double)t->planned, (double)b->fast_planned));
}

g3_status g3_bench_print(const g3_bench *b, FILE *out) {
  table t;
  const totals sums = sum_up(b);
  merge(b, &t);
  print_table(b, out, &t);
  print_products(b, out);
  print_totals(b, out, &sums);
  print_cost(b, out, &sums);
  return ferror(out) ? G3_FAIL(G3_EIO, "cannot print the measurements") : G3_OK;
}

static void put_int(g3_json *j, const char *key, int64_t x) {
  g3_json_key(j, key);
  g3_json_int(j, x);
}

static void put_double(g3_json *j, const char *key, double x) {
  g3_json_key(j, key);
  g3_json_double(j, x);
}

static void put_text(g3_json *j, const char *key, const char *text) {
  g3_json_key(j, key);
  g3_json_string(j, text);
}

static void put_bool(g3_json *j, const char *key, bool x) {
  g3_json_key(j, key);
  g3_json_bool(j, x);
}

static void put_line(g3_json *j, const line *l) {
  g3_json_object(j);
  put_text(j, "name", l->name);
  put_int(j, "calls", l->most->calls);
  put_double(j, "ms", 1e3 * (l->first ? l->first->seconds : 0));
  put_double(j, "slowest_ms", 1e3 * l->most->seconds);
  put_int(j, "slowest_rank", l->rank);
  if (l->most->work > 0)
    put_double(j, l->most->unit == G3_TIMED_FLOPS ? "gflop_s" : "gb_s",
               1e-9 * ratio(l->most->work, l->most->seconds));
  g3_json_object_end(j);
}

static void put_product(g3_json *j, const g3_bench_product *x) {
  const g3_timed_product *p = &x->in_step;
  const double flops = 2.0 * (double)p->m * (double)p->n * (double)p->k;
  g3_json_object(j);
  put_int(j, "m", p->m);
  put_int(j, "n", p->n);
  put_int(j, "k", p->k);
  put_text(j, "input", g3_dtype_name(p->input));
  put_text(j, "output", g3_dtype_name(p->output));
  put_bool(j, "trans_a", p->trans_a);
  put_bool(j, "trans_b", p->trans_b);
  put_bool(j, "accumulate", p->accumulate);
  put_bool(j, "bias", p->bias);
  put_text(j, "cut", cut_names[p->cut]);
  put_int(j, "block", p->block);
  put_int(j, "calls", p->calls);
  put_double(j, "ms", 1e3 * p->seconds);
  put_double(j, "gflop_s", 1e-9 * ratio(flops * (double)p->calls, p->seconds));
  put_double(j, "alone_gflop_s", 1e-9 * ratio(flops, x->alone));
  g3_json_object_end(j);
}

static void put_totals(g3_json *j, const g3_bench *b, const totals *t) {
  const g3_config *c = b->job->config;
  const g3_grid *g = &b->job->mesh->grid;
  put_text(j, "model", c->run.name);
  put_int(j, "tp", g->size[G3_TP]);
  put_int(j, "pp", g->size[G3_PP]);
  put_int(j, "dp", g->size[G3_DP]);
  put_text(j, "dtype", g3_dtype_name(b->job->rank->params.dtype));
  put_int(j, "threads", b->job->threads.threads);
  put_int(j, "tokens", c->train.global_batch * c->model.seq);
  put_int(j, "steps", b->rank->steps);
  put_double(j, "step_ms", 1e3 * b->rank->seconds);
  put_double(j, "mean_step_ms", 1e3 * b->rank->mean);
  put_double(j, "transfers_ms", 1e3 * transfers(b->rank));
  put_double(j, "tok_s", t->tokens_s);
  put_double(j, "loss", b->rank->loss);
  put_double(j, "model_gflop_s", 1e-9 * t->model_flops);
  put_double(j, "products_gflop_s", 1e-9 * t->products);
  put_double(j, "products_alone_gflop_s", 1e-9 * t->alone);
  put_int(j, "resident_bytes", t->resident);
  put_int(j, "grown_bytes", t->growth);
  put_int(j, "planned_bytes", t->planned);
  if (b->fast_seconds > 0) {
    put_double(j, "fast_step_ms", 1e3 * b->fast_seconds);
    put_int(j, "fast_planned_bytes", b->fast_planned);
  }
  put_double(j, "rest_ms", 1e3 * rest(b->rank));
}

g3_status g3_bench_json(const g3_bench *b, FILE *out) {
  table t;
  const totals sums = sum_up(b);
  char *text;
  merge(b, &t);
  G3_TRY(G3_NEW_ARRAY(JSON_BYTES, &text));
  g3_json j = g3_json_begin(text, JSON_BYTES);
  g3_json_object(&j);
  put_totals(&j, b, &sums);
  g3_json_key(&j, "operations");
  g3_json_array(&j);
  for (int i = 0; i < t.n; i++)
    put_line(&j, &t.line[i]);
  g3_json_array_end(&j);
  g3_json_key(&j, "products");
  g3_json_array(&j);
  for (int i = 0; i < b->nproducts; i++)
    put_product(&j, &b->product[i]);
  g3_json_array_end(&j);
  g3_json_object_end(&j);
  g3_status st = g3_json_end(&j);
  if (st == G3_OK && fprintf(out, "%s\n", text) < 0)
    st = G3_FAIL(G3_EIO, "cannot print the measurements");
  free(text);
  return st;
}
