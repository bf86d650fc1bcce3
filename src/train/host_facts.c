#include "train/host_facts.h"
#include "comm/facts.h"
#include "util/text.h"
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#if defined __SANITIZE_ADDRESS__
#define SANITIZED ", with sanitizers: slow"
#else
#define SANITIZED ""
#endif
#if defined __clang__
#define COMPILER "clang "
#else
#define COMPILER "gcc "
#endif
#if defined __OPTIMIZE__
#define OPTIMIZED ", optimized"
#else
#define OPTIMIZED ", not optimized: slow"
#endif

void g3_program_facts(g3_facts *f) {
#if defined __OPTIMIZE__ && !defined __SANITIZE_ADDRESS__
  const g3_fact_level level = G3_FACT_OK;
#else
  const g3_fact_level level = G3_FACT_WARN;
#endif
  g3_fact(f, level, "gpt3d", "%s, compiled by " COMPILER __VERSION__ OPTIMIZED SANITIZED,
          GPT3D_VERSION);
}

/* Looks for a program as a shell does. */
static bool on_path(const char *name, char *out, size_t size) {
  const char *path = getenv("PATH");
  while (path && *path) {
    const int n = (int)strcspn(path, ":");
    if (n > 0 && snprintf(out, size, "%.*s/%s", n, path, name) < (int)size &&
        access(out, X_OK) == 0)
      return true;
    path += n + (path[n] == ':');
  }
  return false;
}

/* The first line that a command prints; "" when there is none. */
static void ask(const char *command, char *out, int size) {
  FILE *pipe = popen(command, "re");
  out[0] = '\0';
  if (!pipe) return;
  if (!fgets(out, size, pipe)) out[0] = '\0';
  out[strcspn(out, "\n")] = '\0';
  pclose(pipe);
}

/* Whether the launcher's "mpirun (Open MPI) 4.1.4" is of the library "Open MPI v4.1.4". */
static bool same_mpi(const char *launcher, const char *library) {
  const char *version = strstr(library, " v");
  char name[64];
  if (!version) return false;
  snprintf(name, sizeof name, "%.*s", (int)(version - library), library);
  return strstr(launcher, name) && strstr(launcher, version + 2);
}

static void launcher_facts(g3_facts *f, const char *path) {
  char version[128], library[128];
  ask("mpirun --version 2>/dev/null </dev/null", version, sizeof version);
  g3_comm_library(library, sizeof library);
  if (same_mpi(version, library))
    g3_fact(f, G3_FACT_OK, "mpirun", "%s, of the same version as the library", path);
  else
    g3_fact(f, G3_FACT_WARN, "mpirun",
            "%s says \"%s\", and the library is %s: ranks may not find each other; use the mpirun "
            "of the library",
            path, version, library);
}

void g3_command_facts(g3_facts *f, bool launched) {
  char path[1024];
  const bool found = on_path("mpirun", path, sizeof path);
  if (launched)
    g3_fact(f, G3_FACT_OK, "mpirun", "a launcher started this job");
  else if (found)
    launcher_facts(f, path);
  else
    g3_fact(f, G3_FACT_MISSING, "mpirun", "not on PATH: apt install openmpi-bin");
  const bool allowed = getenv("OMPI_ALLOW_RUN_AS_ROOT") && getenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM");
  if (!launched && geteuid() == 0 && !allowed)
    g3_fact(
        f, G3_FACT_WARN, "root",
        "mpirun refuses root: export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1");
}

/* The first line of a file; "" when it cannot be read. */
static void first_line(const char *path, char *out, int size) {
  FILE *file = fopen(path, "re");
  out[0] = '\0';
  if (!file) return;
  if (!fgets(out, size, file)) out[0] = '\0';
  out[strcspn(out, "\n")] = '\0';
  fclose(file);
}

/* Cores' worth of time that the control group grants ("200000 100000"); 0 = no limit. */
static double granted_cores(void) {
  char line[64], *end;
  first_line("/sys/fs/cgroup/cpu.max", line, sizeof line);
  const double quota = strtod(line, &end);
  const double period = strtod(end, NULL);
  return end != line && quota > 0 && period > 0 ? quota / period : 0;
}

static void cores_facts(g3_facts *f, int cores, int fewest) {
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  const double granted = granted_cores();
  g3_fact(f, G3_FACT_OK, "cores", "%d of %ld may be used", cores, online);
  if (granted > 0 && granted < cores)
    g3_fact(f, G3_FACT_WARN, "quota",
            "the control group grants the time of %.3g cores only: use --threads and ranks for no "
            "more",
            granted);
  if (fewest < cores)
    g3_fact(f, G3_FACT_OK, "binding",
            "ranks are bound to %d core%s; --threads of more needs mpirun --bind-to none", fewest,
            fewest == 1 ? "" : "s");
  else
    g3_fact(f, G3_FACT_OK, "binding", "none: a rank may use all of them");
}

/* A size of /proc/meminfo in bytes; -1 when it is not there. */
static int64_t meminfo(const char *key) {
  char line[256];
  int64_t kib = -1;
  FILE *file = fopen("/proc/meminfo", "re");
  if (!file) return -1;
  while (kib < 0 && fgets(line, sizeof line, file))
    if (strncmp(line, key, strlen(key)) == 0) kib = strtoll(line + strlen(key), NULL, 10);
  fclose(file);
  return kib < 0 ? -1 : kib * 1024;
}

static void memory_facts(g3_facts *f) {
  const int64_t total = meminfo("MemTotal:"), available = meminfo("MemAvailable:");
  g3_number_text a, b;
  char limit[64], *end;
  if (total >= 0 && available >= 0)
    g3_fact(f, G3_FACT_OK, "memory", "%s, of which %s free for use", g3_text_bytes(total, a),
            g3_text_bytes(available, b));
  first_line("/sys/fs/cgroup/memory.max", limit, sizeof limit);
  const int64_t most = strtoll(limit, &end, 10);
  if (end != limit && most > 0 && most < total)
    g3_fact(f, G3_FACT_WARN, "memory limit", "the control group grants %s", g3_text_bytes(most, a));
}

/* Ranks on one machine talk through files here. */
static void shared_memory_facts(g3_facts *f) {
  static const uint64_t enough = (uint64_t)64 << 20;
  struct statvfs v;
  g3_number_text text;
  if (statvfs("/dev/shm", &v) != 0) {
    g3_fact(f, G3_FACT_WARN, "shared memory", "no /dev/shm: mount a tmpfs there, for mpirun");
    return;
  }
  const uint64_t room = (uint64_t)v.f_bavail * v.f_frsize;
  const bool low = room < enough;
  g3_fact(f, low ? G3_FACT_WARN : G3_FACT_OK, "shared memory", "%s free in /dev/shm%s",
          g3_text_bytes((int64_t)room, text),
          low ? "; many ranks need more: mount -o remount,size=1G /dev/shm" : "");
}

static const char *limit_text(rlim_t x, bool is_bytes, g3_number_text out) {
  if (x == RLIM_INFINITY) return "unlimited";
  return is_bytes ? g3_text_bytes((int64_t)x, out) : g3_text_commas((int64_t)x, out);
}

/* A soft limit; below `low` it is worth a word. One row a limit. */
static void limit_facts(g3_facts *f) {
  const bool fabric = access("/sys/class/infiniband", F_OK) == 0;
  const struct {
    const char *name, *remedy;
    int which;
    bool is_bytes;
    rlim_t low;
  } limits[] = {
      {"stack", "ulimit -s 8192", RLIMIT_STACK, true, (rlim_t)1 << 20},
      {"locked memory", "InfiniBand wants ulimit -l unlimited", RLIMIT_MEMLOCK, true,
       fabric ? (rlim_t)1 << 30 : 0},
      {"open files", "ulimit -n 4096", RLIMIT_NOFILE, false, 1024},
      {"core file", "", RLIMIT_CORE, true, 0},
  };
  for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
    struct rlimit r;
    g3_number_text text;
    if (getrlimit((__rlimit_resource_t)limits[i].which, &r) != 0) continue;
    const bool low = r.rlim_cur < limits[i].low;
    g3_fact(f, low ? G3_FACT_WARN : G3_FACT_OK, limits[i].name, "%s%s%s",
            limit_text(r.rlim_cur, limits[i].is_bytes, text), low ? "; little: " : "",
            low ? limits[i].remedy : "");
  }
}

void g3_machine_facts(g3_facts *f, int cores, int fewest) {
  cores_facts(f, cores, fewest);
  memory_facts(f);
  shared_memory_facts(f);
  limit_facts(f);
}

/* Checkpoints do not need locks, other readers of HDF5 files may. */
static void lock_facts(g3_facts *f, int file) {
  if (flock(file, LOCK_EX | LOCK_NB) == 0)
    g3_fact(f, G3_FACT_OK, "file locks", "work in this folder");
  else
    g3_fact(f, G3_FACT_WARN, "file locks",
            "refused in this folder (%s); gpt3d needs none, other programs that read its "
            "checkpoints want HDF5_USE_FILE_LOCKING=FALSE",
            strerror(errno));
}

static void room_facts(g3_facts *f) {
  struct statvfs v;
  g3_number_text text;
  if (statvfs(".", &v) != 0) return;
  g3_fact(f, G3_FACT_OK, "disk", "%s free in this folder",
          g3_text_bytes((int64_t)((uint64_t)v.f_bavail * v.f_frsize), text));
}

void g3_folder_facts(g3_facts *f) {
  char path[] = ".gpt3d-doctor-XXXXXX";
  const int file = mkstemp(path);
  if (file < 0) {
    g3_fact(f, G3_FACT_WARN, "this folder", "cannot be written to (%s): give another with --out",
            strerror(errno));
  } else {
    room_facts(f);
    lock_facts(f, file);
    close(file);
    unlink(path);
  }
  if (access("data/kjv.txt", R_OK) == 0)
    g3_fact(f, G3_FACT_OK, "data", "data/kjv.txt, the default of --data, is here");
  else
    g3_fact(
        f, G3_FACT_WARN, "data",
        "no data/kjv.txt, the default of --data, in this folder: tools/corpus makes it (from apt "
        "install bible-kjv), or give --data FILE");
}
