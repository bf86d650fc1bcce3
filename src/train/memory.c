#include "train/memory.h"
#include "plan/report.h"
#include "util/log.h"
#include "util/text.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A field of /proc/self/status such as "VmRSS:", in bytes; read without a FILE, which would
 * allocate. */
static int64_t status_field(const char *name) {
  char text[8192];
  const int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  const ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  if (n <= 0) return 0;
  text[n] = '\0';
  const char *at = strstr(text, name);
  return at ? (int64_t)strtoll(at + strlen(name), NULL, 10) * 1024 : 0;
}

int64_t g3_memory_resident(void) {
  return status_field("VmRSS:");
}

int64_t g3_memory_peak(void) {
  return status_field("VmHWM:");
}

/* What a rank tells rank 0. */
typedef struct {
  size_t used[G3_MEM_CLASSES];
  g3_coord at;
  int64_t grown;
} account;

g3_status g3_memory_report(const g3_job *job) {
  if (!job->config->command.debug) return G3_OK;
  account mine = {.at = job->mesh->me, .grown = g3_memory_resident() - job->resident_before};
  memcpy(mine.used, job->used, sizeof mine.used);
  void *all;
  size_t *sizes;
  G3_TRY(job->world->ops->host_gather(job->world, &mine, sizeof mine, 0, &all, &sizes));
  for (int r = 0; all && r < job->world->size; r++) {
    account a;
    char who[96];
    memcpy(&a, (const char *)all + (size_t)r * sizeof a, sizeof a);
    snprintf(who, sizeof who, "allocated on rank %d of stage %d, resident grew by %lld", r,
             a.at.at[G3_PP], (long long)a.grown);
    g3_report_bytes(who, a.used);
  }
  free(all);
  free(sizes);
  return G3_OK;
}

g3_status g3_memory_report_peak(const g3_job *job) {
  int64_t planned = 0;
  for (int c = 0; c < G3_MEM_CLASSES; c++)
    planned += (int64_t)job->bytes[c];
  /* In one value, so that the largest growth brings its own plan along: thousandths. */
  const int64_t grown = g3_memory_peak() - job->resident_before;
  int64_t worst[1] = {grown > 0 ? grown * 1000 / planned : 0};
  G3_TRY(job->world->ops->host_all_reduce(job->world, worst, 1, G3_MAX));
  g3_number_text a, b;
  G3_INFO("memory   rank 0 grew by %s for a plan of %s; the largest share over all ranks is %.3f",
          g3_text_bytes(grown > 0 ? grown : 0, a), g3_text_bytes(planned, b),
          (double)worst[0] / 1000.0);
  return G3_OK;
}
