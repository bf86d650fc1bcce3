/* gpt3d eval: the mean loss of a checkpoint over a whole file, in any layout. */
#include "train/session.h"
#include "train/state.h"
#include "train/step.h"
#include "util/json.h"
#include "util/log.h"
#include "util/text.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Perplexity is e to the mean loss (Jelinek et al., 1977). */
static g3_status tell_json(double loss, int64_t tokens) {
  char text[256];
  g3_json j = g3_json_begin(text, sizeof text);
  g3_json_object(&j);
  g3_json_key(&j, "loss");
  g3_json_double(&j, loss);
  g3_json_key(&j, "perplexity");
  g3_json_double(&j, exp(loss));
  g3_json_key(&j, "tokens");
  g3_json_int(&j, tokens);
  g3_json_object_end(&j);
  G3_TRY(g3_json_end(&j));
  if (printf("%s\n", text) < 0 || fflush(stdout) != 0)
    return G3_FAIL(G3_EIO, "cannot write the result to the standard output");
  return G3_OK;
}

static g3_status tell(const g3_job *job, double loss) {
  const int64_t tokens = g3_tokens_count(job->tokens) - 1;
  g3_number_text count;
  if (job->config->command.json) return tell_json(loss, tokens);
  G3_INFO("loss %.6f nats per token, perplexity %.6g, over %s tokens of %s", loss, exp(loss),
          g3_text_commas(tokens, count), job->config->data.path);
  return G3_OK;
}

static g3_status evaluate(g3_job *job, const g3_start *start) {
  double loss;
  G3_TRY(g3_start_load(job, start));
  G3_INFO("evaluating %s, step %lld", start->index->path, (long long)start->index->meta.step);
  G3_TRY(g3_evaluate_file(job, &loss));
  if (!isfinite(loss))
    return G3_FAIL(G3_ENUMERIC,
                   "the loss of %s over %s is %g: look at the weights, or use "
                   "--dtype f32",
                   start->index->path, job->config->data.path, loss);
  return g3_comm_agree(job->world, job->world->rank == 0 ? tell(job, loss) : G3_OK);
}

static g3_status eval(g3_session *s, g3_start *start) {
  g3_job job;
  if (s->settings->value.command.dry_run)
    return G3_FAIL(G3_EINVAL, "--dry-run evaluates nothing: use it with gpt3d train");
  if (s->settings->value.command.json) g3_log_setup(s->world->rank, G3_LOG_WARN);
  G3_TRY(g3_start_find_weights(s->settings, s->world, start));
  G3_TRY(g3_comm_agree(s->world, g3_config_world(s->settings, s->world->size)));
  G3_TRY(g3_comm_agree(s->world, g3_config_check(s->settings)));
  G3_TRY(g3_job_open_file(s->settings, s->world, &job));
  const g3_status st = evaluate(&job, start);
  g3_job_close(&job);
  return st;
}

static bool asks_for_help(int argc, char **argv) {
  for (int i = 0; i < argc; i++)
    if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) return true;
  return false;
}

static const char usage[] =
    "usage: gpt3d eval --resume DIR --data FILE [--json] [OPTIONS], alone or under mpirun -np "
    "RANKS\n\n"
    "Mean loss of a checkpoint over all tokens of a file but the first, in nats per token, and "
    "its\n"
    "perplexity, which is e to the loss. The file is cut into windows of seq + 1 tokens that lie "
    "seq\napart; the last one may be short. The model comes from the checkpoint. Any layout gives "
    "the\nsame: --tp, --pp, --dp. --global-batch windows are evaluated at a time, of which each "
    "data\nrank takes its share by --micro-batch.\n\n";

g3_exit g3_command_eval(int argc, char **argv) {
  g3_session s;
  g3_start start = {.kind = G3_START_FRESH};
  g3_exit code;
  /* Under a launcher, who speaks is known only once ranks are. */
  if (asks_for_help(argc, argv) && !g3_comm_launched()) {
    printf("%s", usage);
    fflush(stdout);
  }
  if (g3_session_begin(argc, argv, false, &s, &code))
    code = g3_session_verdict(&s, eval(&s, &start), G3_EXIT_DONE);
  g3_start_free(&start);
  g3_session_end(&s);
  return code;
}
