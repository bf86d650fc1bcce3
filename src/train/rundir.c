#include "train/rundir.h"
#include "util/json.h"
#include "util/log.h"
#include <errno.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = G3_CONFIG_TEXT + 64, LINE_BYTES = 1024 };

static g3_status join(char out[PATH_BYTES], const char *folder, const char *name) {
  const int n = snprintf(out, PATH_BYTES, "%s/%s", folder, name);
  return n > 0 && n < PATH_BYTES ? G3_OK : G3_FAIL(G3_EINVAL, "the path %s is too long", folder);
}

/* mkdir -p. */
static g3_status make_folders(const char *path) {
  char part[PATH_BYTES];
  const int n = snprintf(part, sizeof part, "%s", path);
  if (n <= 0 || n >= (int)sizeof part)
    return G3_FAIL(G3_EINVAL, "the path '%s' is empty or too long", path);
  for (char *p = part + 1;; p++) {
    const char c = *p;
    if (c != '/' && c != '\0') continue;
    *p = '\0';
    if (mkdir(part, 0777) != 0 && errno != EEXIST)
      return G3_FAIL(G3_EIO, "cannot make the folder %s: %s; give another with --out", part,
                     strerror(errno));
    if (c == '\0') return G3_OK;
    *p = c;
  }
}

g3_status g3_rundir_make(const char *out) {
  char path[PATH_BYTES];
  G3_TRY(join(path, out, "checkpoints"));
  G3_TRY(make_folders(path));
  G3_TRY(join(path, out, ".writable"));
  FILE *probe = fopen(path, "w");
  if (!probe)
    return G3_FAIL(G3_EIO, "cannot write in %s: %s; give another folder with --out", out,
                   strerror(errno));
  fclose(probe);
  unlink(path);
  return G3_OK;
}

g3_status g3_rundir_lock(const char *out, g3_rundir *dir) {
  char path[PATH_BYTES];
  G3_TRY(join(path, out, ".lock"));
  FILE *file = fopen(path, "a");
  if (!file) return G3_FAIL(G3_EIO, "cannot write %s: %s", path, strerror(errno));
  if (flock(fileno(file), LOCK_EX | LOCK_NB) == 0) {
    dir->lock = file;
    return G3_OK;
  }
  const int reason = errno;
  fclose(file);
  if (reason == EWOULDBLOCK)
    return G3_FAIL(G3_EINVAL,
                   "another run is writing in %s (it holds %s); wait for it, or give another "
                   "folder with --out",
                   out, path);
  G3_WARN("cannot lock %s (%s): make sure that no other run writes in %s", path, strerror(reason),
          out);
  return G3_OK;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *where) {
  (void)st;
  (void)kind;
  return where->level == 0 ? 0 : remove(path);
}

g3_status g3_rundir_clear(const char *out) {
  static const char *const files[] = {"metrics.jsonl", "log.txt", "config.yaml"};
  char path[PATH_BYTES];
  G3_TRY(join(path, out, "checkpoints"));
  if (nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0 && errno != ENOENT)
    return G3_FAIL(G3_EIO, "cannot clear %s: %s", path, strerror(errno));
  for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
    G3_TRY(join(path, out, files[i]));
    if (unlink(path) != 0 && errno != ENOENT)
      return G3_FAIL(G3_EIO, "cannot remove %s: %s", path, strerror(errno));
  }
  return G3_OK;
}

/* A whole line of ours that belongs to a step <= last. */
static bool line_stays(const char *line, int64_t last) {
  static const char begin[] = "{\"step\":";
  const size_t length = strlen(line);
  if (length < 2 || line[length - 1] != '\n' || line[length - 2] != '}') return false;
  if (strncmp(line, begin, sizeof begin - 1) != 0) return false;
  return strtoll(line + sizeof begin - 1, NULL, 10) <= last;
}

/* So that each step stands there once after a resume: a new file takes the old one's place whole.
 */
static g3_status cut_metrics(const char *path, int64_t last) {
  char temporary[PATH_BYTES + 8], line[LINE_BYTES];
  FILE *from = fopen(path, "r");
  if (!from)
    return errno == ENOENT ? G3_OK : G3_FAIL(G3_EIO, "cannot read %s: %s", path, strerror(errno));
  snprintf(temporary, sizeof temporary, "%s.tmp", path);
  FILE *to = fopen(temporary, "w");
  if (!to) {
    fclose(from);
    return G3_FAIL(G3_EIO, "cannot write %s: %s", temporary, strerror(errno));
  }
  bool ok = true;
  while (ok && fgets(line, sizeof line, from))
    if (line_stays(line, last)) ok = fputs(line, to) >= 0;
  ok = !ferror(from) && ok;
  fclose(from);
  ok = fclose(to) == 0 && ok;
  if (ok && rename(temporary, path) == 0) return G3_OK;
  return G3_FAIL(G3_EIO, "cannot cut %s back to step %lld: %s", path, (long long)last,
                 strerror(errno));
}

static g3_status write_config(const g3_settings *s, const char *path) {
  FILE *file = fopen(path, "w");
  if (!file) return G3_FAIL(G3_EIO, "cannot write %s: %s", path, strerror(errno));
  const g3_status st = g3_settings_dump(s, file, false);
  if (fclose(file) != 0 && st == G3_OK)
    return G3_FAIL(G3_EIO, "cannot write %s: %s", path, strerror(errno));
  return st;
}

static g3_status open_to_append(const char *path, FILE **out) {
  *out = fopen(path, "a");
  return *out ? G3_OK : G3_FAIL(G3_EIO, "cannot write %s: %s", path, strerror(errno));
}

g3_status g3_rundir_open(const g3_settings *s, int64_t step, g3_rundir *dir) {
  const char *folder = s->value.run.out;
  char path[PATH_BYTES];
  g3_rundir d = {.lock = dir->lock};
  G3_TRY(join(path, folder, "config.yaml"));
  G3_TRY(write_config(s, path));
  G3_TRY(join(path, folder, "metrics.jsonl"));
  G3_TRY(cut_metrics(path, step));
  G3_TRY(open_to_append(path, &d.metrics));
  G3_TRY(join(path, folder, "log.txt"));
  const g3_status st = open_to_append(path, &d.log);
  if (st != G3_OK) {
    fclose(d.metrics);
    return st;
  }
  g3_log_file(d.log);
  *dir = d;
  return G3_OK;
}

void g3_rundir_close(g3_rundir *d) {
  g3_log_file(NULL);
  if (d->metrics) fclose(d->metrics);
  if (d->log) fclose(d->log);
  if (d->lock) fclose(d->lock);
  *d = (g3_rundir){.lock = NULL};
}

static void number(g3_json *j, const char *key, double x) {
  g3_json_key(j, key);
  g3_json_double(j, x);
}

g3_status g3_rundir_metrics(g3_rundir *d, const g3_metrics *m) {
  if (!d->metrics) return G3_OK;
  char line[LINE_BYTES];
  g3_json j = g3_json_begin(line, sizeof line);
  g3_json_object(&j);
  g3_json_key(&j, "step");
  g3_json_int(&j, m->step);
  number(&j, "loss", m->loss);
  number(&j, "lr", m->lr);
  number(&j, "grad_norm", m->grad_norm);
  g3_json_key(&j, "tokens");
  g3_json_int(&j, m->tokens);
  number(&j, "step_s", m->step_s);
  number(&j, "tok_s", m->tok_s);
  number(&j, "tflops", m->tflops);
  if (m->has_mfu) number(&j, "mfu", m->mfu);
  if (m->has_val) number(&j, "val_loss", m->val_loss);
  if (m->skipped) {
    g3_json_key(&j, "skipped");
    g3_json_bool(&j, true);
  }
  g3_json_object_end(&j);
  G3_TRY(g3_json_end(&j));
  if (fprintf(d->metrics, "%s\n", line) < 0 || fflush(d->metrics) != 0)
    return G3_FAIL(G3_EIO, "cannot write metrics.jsonl: %s", strerror(errno));
  return G3_OK;
}
