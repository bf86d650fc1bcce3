/* ranks: 16 */
/* Initial weights, order of the data and dropout masks are the same bits in every layout of up to
 * 16 ranks. Masks are seen through a model whose matrices inside blocks are zero: then every tensor
 * of the forward is made without a sum that a layout could cut. */
#include "mpi/ranks.h"
#include "train/state.h"
#include "train/step.h"
#include "util/log.h"

enum { LAYERS = 5, WIDTH = 16, HEADS = 4, SEQ = 8, BATCH = 32, STEPS = 2 };

/* Sums of mixed element bits, which no order changes. */
typedef struct {
  int64_t weights, embed, att, mid, out;
} prints;

typedef struct {
  const g3_job *job;
  prints sum;
} watcher;

/* A number's place and bits, mixed (the finalizer of SplitMix64: Steele et al., 2014). */
static uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

static uint64_t element(uint64_t what, int64_t place, float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return mix(mix(mix(what + 1) + (uint64_t)place) + bits);
}

static void add(int64_t *sum, uint64_t x) {
  *sum = (int64_t)((uint64_t)*sum + x);
}

/* NULL for what is not looked at. */
static int64_t *sum_of(prints *p, g3_seen_kind kind) {
  int64_t *const sums[G3_SEEN_KINDS] = {[G3_SEEN_EMBED] = &p->embed,
                                        [G3_SEEN_ATT] = &p->att,
                                        [G3_SEEN_MID] = &p->mid,
                                        [G3_SEEN_OUT] = &p->out};
  return sums[kind];
}

/* Adds what of the whole tensor this rank counts: its columns, its rows, or all on tp rank 0. */
static g3_status look(void *ctx, g3_stream *s, const g3_seen *seen) {
  watcher *w = ctx;
  const g3_rank *rank = w->job->rank;
  int64_t *sum = sum_of(&w->sum, seen->kind);
  if (!sum) return G3_OK;
  G3_TRY(s->dev->ops->sync(s));
  const int tp = w->job->mesh->me.at[G3_TP];
  const int64_t rows = seen->t.dim[0], columns = seen->t.dim[1];
  const bool cut = columns < WIDTH || rows < w->job->config->train.micro_batch * SEQ;
  if (!cut && tp != 0) return G3_OK;
  const int64_t micro = w->job->mesh->me.at[G3_DP] * rank->micros + seen->micro;
  const int64_t first = w->job->consumed * SEQ + micro * w->job->config->train.micro_batch * SEQ;
  const float *x = seen->t.data;
  for (int64_t r = 0; r < rows; r++)
    for (int64_t c = 0; c < columns; c++) {
      const int64_t column = columns < WIDTH ? tp * columns + c : c;
      add(sum, element((uint64_t)seen->layer, (first + seen->row + r) * WIDTH + column,
                       x[r * columns + c]));
    }
  return G3_OK;
}

static uint64_t name_of(const char *name) {
  uint64_t h = 0;
  for (; *name; name++)
    h = mix(h + (uint8_t)*name);
  return h;
}

/* The weights that this rank would save; none twice. */
static int64_t print_weights(const g3_job *job) {
  int64_t sum = 0;
  for (int i = 0; i < job->rank->nsave; i++) {
    const g3_ckpt_item *item = &job->rank->save[i];
    if (strncmp(item->name, "model/", 6) != 0) continue;
    const g3_slice *s = &item->slice;
    const float *x = item->local.data;
    const int64_t n = g3_slice_count(s);
    for (int64_t k = 0; k < n; k++) {
      int64_t place = 0, left = k;
      int64_t unit = 1;
      for (int d = s->ndim - 1; d >= 0; d--) {
        place += (s->start[d] + left % s->count[d]) * unit;
        left /= s->count[d];
        unit *= s->global[d];
      }
      add(&sum, element(name_of(item->name), place, x[k]));
    }
  }
  return sum;
}

/* Matrices inside blocks become zero; biases and norms are random. */
static void empty_matrices(g3_job *job) {
  const g3_flat *flat = job->rank->flat;
  EXPECT_OK(g3_gpt_init(job->rank->gpt, job->compute, true));
  for (int i = 0; i < flat->nparams; i++) {
    const g3_param *p = &flat->param[i];
    if (!p->decay || strncmp(p->name, "blocks.", 7) != 0) continue;
    memset((float *)job->rank->params.data + p->offset, 0, (size_t)p->count * sizeof(float));
  }
}

static prints print_layout(g3_comm *world, int seed, int tp, int pp, int dp, bool sequence,
                           int micro) {
  char text[7][16];
  const int values[7] = {tp, pp, dp, LAYERS, micro, SEQ, seed};
  for (int i = 0; i < 7; i++)
    snprintf(text[i], sizeof text[i], "%d", values[i]);
  char *args[] = {"--tp",
                  text[0],
                  "--pp",
                  text[1],
                  "--dp",
                  text[2],
                  "--layers",
                  text[3],
                  "--micro-batch",
                  text[4],
                  "--seq",
                  text[5],
                  "--width",
                  "16",
                  "--heads",
                  "4",
                  "--vocab",
                  "257",
                  "--dropout",
                  "0.3",
                  "--data",
                  "mock",
                  "--steps",
                  "9",
                  "--threads",
                  "1",
                  "--lr",
                  "0",
                  "--seed",
                  text[6],
                  "--warmup",
                  "0",
                  "--val-split",
                  "0",
                  sequence ? "--sequence-parallel" : "--sequence-parallel=false"};
  g3_settings *settings;
  g3_job job;
  g3_step_result result;
  EXPECT_OK(g3_settings_load((int)(sizeof args / sizeof *args), args, &settings));
  EXPECT_OK(g3_config_world(settings, world->size));
  EXPECT_OK(g3_config_check(settings));
  EXPECT_OK(g3_job_open(settings, world, &job));
  EXPECT_OK(g3_start_load(&job, &(g3_start){.kind = G3_START_FRESH}));
  watcher w = {.job = &job, .sum = {.weights = print_weights(&job)}};
  empty_matrices(&job);
  g3_gpt_watch(job.rank->gpt, look, &w);
  for (int step = 0; step < STEPS; step++)
    EXPECT_OK(g3_step(&job, &result));
  g3_gpt_watch(job.rank->gpt, NULL, NULL);
  g3_job_close(&job);
  g3_settings_free(settings);
  int64_t sums[] = {w.sum.weights, w.sum.embed, w.sum.att, w.sum.mid, w.sum.out};
  EXPECT_OK(world->ops->host_all_reduce(world, sums, 5, G3_SUM));
  return (prints){sums[0], sums[1], sums[2], sums[3], sums[4]};
}

/* Whether two layouts give the same; says what does not. */
static bool same(const prints *a, const prints *b) {
  const bool equal = memcmp(a, b, sizeof *a) == 0;
  if (!equal)
    fprintf(stderr, "weights %s, embeddings %s, attention %s, after it %s, after the block %s\n",
            a->weights == b->weights ? "equal" : "DIFFER",
            a->embed == b->embed ? "equal" : "DIFFER", a->att == b->att ? "equal" : "DIFFER",
            a->mid == b->mid ? "equal" : "DIFFER", a->out == b->out ? "equal" : "DIFFER");
  return equal;
}

static void every_layout(g3_comm *world, g3_device *dev) {
  (void)dev;
  g3_comm *self;
  g3_log_setup(world->rank, G3_LOG_WARN);
  EXPECT_OK(g3_comm_self(&self));
  const prints one = print_layout(self, 5, 1, 1, 1, false, 2);
  const prints seen_again = print_layout(self, 5, 1, 1, 1, false, 1);
  EXPECT(same(&one, &seen_again));
  const prints other = print_layout(self, 6, 1, 1, 1, false, 2); /* it can be told apart */
  EXPECT(one.weights != other.weights && one.embed != other.embed && one.att != other.att);
  EXPECT(one.mid != other.mid && one.out != other.out);
  EXPECT(one.weights && one.embed && one.att && one.mid && one.out);
  g3_comm_destroy(self);
  int layouts = 0;
  for (int tp = 1; tp <= 4; tp *= 2)
    for (int pp = 1; pp <= 4; pp *= 2)
      for (int dp = 1; tp * pp * dp <= 16; dp *= 2, layouts++) {
        const int ranks = tp * pp * dp;
        g3_comm *part;
        EXPECT_OK(
            world->ops->split(world, world->rank < ranks ? 0 : -1, world->rank, "part", &part));
        for (int sequence = 0; part && sequence <= (tp > 1); sequence++) {
          const prints many = print_layout(part, 5, tp, pp, dp, sequence, 1 + (tp + pp + dp) % 2);
          G3_CHECK(same(&one, &many), "tp %d, pp %d, dp %d%s is not as one rank", tp, pp, dp,
                   sequence ? ", sequence-parallel," : "");
        }
        g3_comm_destroy(part);
      }
  EXPECT_EQUAL(layouts, 27);
}

int main(void) {
  static const ranks_test tests[] = {{"every_layout", every_layout}};
  return ranks_main(16, tests, sizeof tests / sizeof *tests);
}
