/* gpt3d schedule */
#include "pipeline/schedule.h"
#include "train/args.h"
#include "util/array.h"
#include <stdlib.h>

/* The list itself, as g3_sched_read takes it back, with what is known of it in comments. */
static g3_status print(const char *kind, const g3_schedule *s) {
  int *peak;
  G3_TRY(G3_NEW_ARRAY(s->ranks, &peak));
  g3_status st = g3_sched_check(s, peak);
  if (st == G3_OK) {
    printf("# %s: %d ranks, %d stages, %d micro-batches\n", kind, s->ranks, s->stages, s->micros);
    st = g3_sched_write(stdout, s);
  }
  for (int r = 0; r < s->ranks && st == G3_OK; r++)
    printf("# rank %d keeps the activations of at most %d micro-batch%s\n", r, peak[r],
           peak[r] == 1 ? "" : "es");
  free(peak);
  return st;
}

static g3_status schedule(int argc, char **argv) {
  const char *kind = "1f1b";
  int64_t ranks = 0, micros = 8;
  const g3_arg flags[] = {{.flag = "--schedule",
                           .meta = "KIND",
                           .about = "1f1b, gpipe or forward [1f1b]",
                           .text = &kind},
                          {.flag = "--pp",
                           .meta = "N",
                           .about = "pipeline ranks",
                           .count = &ranks,
                           .min = 1,
                           .max = 4096,
                           .required = true},
                          {.flag = "--micros",
                           .meta = "N",
                           .about = "micro-batches of a step [8]",
                           .count = &micros,
                           .min = 1,
                           .max = 65536},
                          {.flag = NULL}};
  const g3_args args = {.command = "gpt3d schedule",
                        .words = "",
                        .about =
                            "Prints what each pipeline rank does in a step, a line a rank, and "
                            "how many micro-batches'\nactivations it keeps at most.",
                        .flags = flags};
  bool help;
  g3_schedule *s;
  G3_TRY(g3_args_parse(&args, argc, argv, &help));
  if (help) return G3_OK;
  const g3_sched_shape shape = {.ranks = (int)ranks, .chunks = 1, .micros = (int)micros};
  G3_TRY(g3_sched_make(kind, &shape, &s));
  const g3_status st = print(kind, s);
  g3_sched_free(s);
  return st;
}

g3_exit g3_command_schedule(int argc, char **argv) {
  return g3_args_verdict(schedule(argc, argv), G3_EXIT_DONE);
}
