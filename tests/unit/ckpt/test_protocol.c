/* A save is whole or not at all, whatever happens in between; what `latest` names; what is kept. */
#include "fixture.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* The names in the scratch directory, sorted, each followed by a space. */
static const char *names_in(const fixture *f) {
  static char out[1024];
  assert_int_equal(shell(out, sizeof out, "ls -A '%s' | tr '\\n' ' '", f->dir), 0);
  return out;
}

static const char *latest_of(const fixture *f) {
  static char out[1024];
  assert_ok(g3_ckpt_latest(f->dir, out, sizeof out));
  return out[0] ? strrchr(out, '/') + 1 : "";
}

/* From here on the scratch directory is this one below it. */
static void go_down(fixture *f, const char *below) {
  const size_t n = strlen(f->dir);
  snprintf(f->dir + n, sizeof f->dir - n, "%s", below);
}

/* The checkpoint of this step is whole and holds the small items. */
static void expect_whole(fixture *f, const char *name) {
  char path[512];
  path_in(f, path, name);
  g3_ckpt_index *ix = NULL;
  int64_t bytes = 0;
  assert_ok(g3_ckpt_index_read(path, &ix));
  assert_ok(g3_ckpt_verify(ix, f->stage, &bytes));
  assert_int_equal(bytes, 60 * 4 + 7 * 2);
  g3_ckpt_index_free(ix);
}

static void make_leftover(const fixture *f, const char *name) {
  char path[512], file[600];
  path_in(f, path, name);
  assert_int_equal(mkdir(path, 0777), 0);
  snprintf(file, sizeof file, "%s/shard-00000.h5", path);
  write_text(file, "half of a shard");
}

static void nothing_to_go_on_from(void **state) {
  fixture *f = *state;
  char out[64] = "x", path[512];
  assert_string_equal(latest_of(f), "");
  path_in(f, path, "not/there");
  assert_ok(g3_ckpt_latest(path, out, sizeof out));
  assert_string_equal(out, "");
}

static void saves_and_points(void **state) {
  fixture *f = *state;
  assert_ok(save_small(f, 5, 0));
  assert_string_equal(names_in(f), "latest step-00000005 ");
  assert_string_equal(latest_of(f), "step-00000005");
  assert_ok(save_small(f, 10, 0));
  assert_string_equal(names_in(f), "latest step-00000005 step-00000010 ");
  assert_string_equal(latest_of(f), "step-00000010");
  char text[64], path[512];
  path_in(f, path, "latest");
  assert_int_equal(shell(text, sizeof text, "cat '%s'", path), 0);
  assert_string_equal(text, "step-00000010\n");
}

static void makes_directories(void **state) {
  fixture *f = *state;
  const size_t n = strlen(f->dir);
  go_down(f, "/run/checkpoints");
  assert_ok(save_small(f, 100000000, 0));
  expect_whole(f, "step-100000000");
  char out[512], run[512];
  f->dir[n] = '\0';
  path_in(f, run, "run");
  /* A run directory, its checkpoints, and the checkpoint itself all lead there. */
  assert_ok(g3_ckpt_latest(run, out, sizeof out));
  assert_non_null(strstr(out, "/run/checkpoints/step-100000000"));
  char again[512];
  assert_ok(g3_ckpt_latest(out, again, sizeof again));
  assert_string_equal(again, out);
  expect_failure(g3_ckpt_latest(out, again, 10), G3_EINVAL, "does not fit", "10");
}

static void keeps_the_newest(void **state) {
  fixture *f = *state;
  for (int64_t step = 1; step <= 5; step++)
    assert_ok(save_small(f, step, 2));
  assert_string_equal(names_in(f), "latest step-00000004 step-00000005 ");
  assert_ok(save_small(f, 6, 0));
  assert_string_equal(names_in(f), "latest step-00000004 step-00000005 step-00000006 ");
}

/* A run taken up again from an older step writes lower numbers: the one just written stays. */
static void never_drops_the_latest(void **state) {
  fixture *f = *state;
  assert_ok(save_small(f, 8, 0));
  assert_ok(save_small(f, 9, 0));
  assert_ok(save_small(f, 2, 1));
  assert_string_equal(names_in(f), "latest step-00000002 ");
  assert_string_equal(latest_of(f), "step-00000002");
}

/* What is not a whole checkpoint is neither counted nor dropped. */
static void drops_only_checkpoints(void **state) {
  fixture *f = *state;
  make_leftover(f, "step-00000001");
  make_leftover(f, "my-notes");
  make_leftover(f, "step-2");
  assert_ok(save_small(f, 3, 1));
  assert_ok(save_small(f, 4, 1));
  assert_string_equal(names_in(f), "latest my-notes step-00000001 step-00000004 step-2 ");
}

static void leftovers_are_removed(void **state) {
  fixture *f = *state;
  make_leftover(f, "step-00000003.tmp");
  make_leftover(f, "step-00000007.tmp");
  make_leftover(f, "step-00000007.old");
  assert_string_equal(latest_of(f), "");
  assert_ok(save_small(f, 3, 0));
  assert_string_equal(names_in(f), "latest step-00000003 ");
}

static void replaces_a_step(void **state) {
  fixture *f = *state;
  assert_ok(save_small(f, 3, 0));
  char path[512];
  path_in(f, path, "step-00000003/index.h5");
  flip_byte(path, 700);
  assert_ok(save_small(f, 3, 0));
  expect_whole(f, "step-00000003");
  assert_string_equal(names_in(f), "latest step-00000003 ");
}

static void falls_back_to_whole_ones(void **state) {
  fixture *f = *state;
  char path[512], out[512];
  for (int64_t step = 1; step <= 3; step++)
    assert_ok(save_small(f, step, 0));
  path_in(f, path, "latest");
  write_text(path, "step-00000002\n");
  assert_string_equal(latest_of(f), "step-00000002");
  write_text(path, "elsewhere/step-00000001\n");
  assert_string_equal(latest_of(f), "step-00000003");
  assert_int_equal(unlink(path), 0);
  assert_string_equal(latest_of(f), "step-00000003");
  write_text(path, "step-00000002\n");
  path_in(f, path, "step-00000002/shard-00000.h5");
  assert_int_equal(unlink(path), 0);
  assert_string_equal(latest_of(f), "step-00000003"); /* with a warning */
  path_in(f, path, "step-00000003/index.h5");
  flip_byte(path, 40);
  assert_string_equal(latest_of(f), "step-00000001");
  path_in(f, path, "step-00000001/index.h5");
  assert_int_equal(unlink(path), 0);
  expect_failure(g3_ckpt_latest(f->dir, out, sizeof out), G3_EFORMAT, "step-00000003/index.h5",
                 "damaged");
}

/* As root, permission bits bind nobody; a plain file in the way does. */
static void unwritable_directory(void **state) {
  fixture *f = *state;
  char path[512];
  path_in(f, path, "file");
  write_text(path, "x");
  const size_t n = strlen(f->dir);
  go_down(f, "/file");
  expect_failure(save_small(f, 1, 0), G3_EIO, path, "Not a directory");
  go_down(f, "/below");
  expect_failure(save_small(f, 1, 0), G3_EIO, path, "Not a directory");
  f->dir[n] = '\0';
  assert_string_equal(names_in(f), "file ");
}

static void path_too_long(void **state) {
  fixture *f = *state;
  const g3_ckpt_meta meta = {.step = 1};
  g3_ckpt_item items[SMALL_ITEMS];
  small_items(items);
  char dir[2048];
  memset(dir, 'x', sizeof dir - 1);
  dir[sizeof dir - 1] = '\0';
  expect_failure(g3_ckpt_save(f->self, f->stream, dir, &meta, items, 2, 0, f->stage), G3_EINVAL,
                 "the path xxx", "1023");
  free_items(items, 2);
}

static void latest_in_the_way(void **state) {
  fixture *f = *state;
  char path[512];
  path_in(f, path, "latest");
  assert_int_equal(mkdir(path, 0777), 0);
  expect_failure(save_small(f, 1, 0), G3_EIO, "/latest", "directory");
  expect_whole(f, "step-00000001"); /* complete, though not pointed to */
  assert_string_equal(names_in(f), "latest step-00000001 ");
}

static void pieces_must_tile(void **state) {
  fixture *f = *state;
  const g3_ckpt_meta meta = {.step = 1};
  const g3_ckpt_item whole = item_of("model/w", G3_F32, 8, 4);
  g3_ckpt_item parts[2] = {part_of(&whole, G3_F32, 0, 4, 0, 4),
                           part_of(&whole, G3_F32, 3, 5, 0, 4)};
  expect_failure(g3_ckpt_save(f->self, f->stream, f->dir, &meta, parts, 2, 0, f->stage), G3_EFORMAT,
                 "model/w@0,0", "same elements");
  parts[1].slice.start[0] = 4;
  parts[1].slice.count[0] = 4;
  parts[1].local = g3_tensor_1d(parts[1].local.data, G3_F32, 16);
  assert_ok(g3_ckpt_save(f->self, f->stream, f->dir, &meta, parts, 2, 0, f->stage));
  const g3_ckpt_meta next = {.step = 2};
  expect_failure(g3_ckpt_save(f->self, f->stream, f->dir, &next, parts, 1, 0, f->stage), G3_EFORMAT,
                 "model/w", "16 of its 32");
  parts[1].local = g3_tensor_1d(parts[1].local.data, G3_BF16, 16);
  expect_failure(g3_ckpt_save(f->self, f->stream, f->dir, &next, parts, 2, 0, f->stage), G3_EINVAL,
                 "dtype", "model/w");
  expect_failure(g3_ckpt_save(f->self, f->stream, f->dir, &next, parts, 0, 0, f->stage), G3_EINVAL,
                 "nothing to save", "");
  snprintf(parts[0].name, sizeof parts[0].name, "model//w");
  expect_failure(g3_ckpt_save(f->self, f->stream, f->dir, &next, parts, 1, 0, f->stage), G3_EINVAL,
                 "model//w", "cannot name");
  assert_string_equal(names_in(f), "latest step-00000001 ");
  free_items(parts, 2);
  free(whole.local.data);
}

static int open_files(void) {
  char out[64];
  assert_int_equal(shell(out, sizeof out, "ls /proc/%d/fd | wc -l", (int)getpid()), 0);
  return (int)strtol(out, NULL, 10);
}

/* A limit on the size of files stands for a disk that fills up at each possible place. */
static void disk_full_at_any_place(void **state) {
  fixture *f = *state;
  assert_ok(save_small(f, 1, 0));
  struct rlimit was, limit;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
  signal(SIGXFSZ, SIG_IGN);
  int failed = 0, passed = 0;
  const int files = open_files();
  for (rlim_t bytes = 0; bytes < 40000; bytes += bytes < 8000 ? 211 : 1901) {
    limit = was;
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    const g3_status st = save_small(f, 2, 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
    if (st == G3_OK) {
      passed++;
      expect_whole(f, "step-00000002");
      continue;
    }
    failed++;
    expect_failure(st, G3_EIO, "/step-00000002.tmp/", "File too large");
    assert_int_equal(passed, 0); /* more room never fails where less was enough */
    assert_string_equal(names_in(f), "latest step-00000001 ");
  }
  signal(SIGXFSZ, SIG_DFL);
  assert_true(failed > 10 && passed > 3);
  assert_in_range(open_files(), 0, files + 1); /* HDF5 closed what it could not finish */
  expect_whole(f, "step-00000001");
  assert_ok(save_small(f, 3, 0));
  expect_whole(f, "step-00000003");
}

/* A real full disk, where mounting one is allowed (containers often do not): the space comes back.
 */
static void disk_really_full(void **state) {
  fixture *f = *state;
  if (mount("none", f->dir, "tmpfs", 0, "size=256k") != 0) {
    print_message("mounting is not allowed here: limits on file sizes stand for it\n");
    assert_true(errno == EPERM || errno == EACCES);
    return;
  }
  assert_ok(save_small(f, 1, 0));
  g3_ckpt_item big = item_of("model/big", G3_F32, 0, 1 << 18);
  const g3_ckpt_meta meta = {.step = 2};
  expect_failure(g3_ckpt_save(f->self, f->stream, f->dir, &meta, &big, 1, 0, f->stage), G3_EIO,
                 "cannot write model/big@0 to", "No space left on device");
  assert_string_equal(names_in(f), "latest step-00000001 ");
  free_items(&big, 1);
  int failed = 0, passed = 0;
  for (int kb = 256; kb >= 120; kb -= 4) {
    char out[64];
    shell(out, sizeof out, "head -c %dK /dev/zero 2>&1 >'%s/filler'", kb, f->dir);
    const g3_status st = save_small(f, 2, 0);
    if (st == G3_OK) {
      expect_whole(f, "step-00000002");
      passed++;
      continue;
    }
    failed++;
    expect_failure(st, G3_EIO, f->dir, "No space left on device");
    assert_true(is_there(f, "step-00000001/index.h5") && !is_there(f, "step-00000002.tmp"));
  }
  assert_true(failed > 2 && passed > 2);
  assert_ok(save_small(f, 2, 0));
  expect_whole(f, "step-00000002");
  expect_whole(f, "step-00000001");
}

static int unmount_and_teardown(void **state) {
  (void)umount(((fixture *)*state)->dir); /* where mounting was not allowed there is nothing */
  return teardown(state);
}

/* What a child process does: saves until it is killed, or once where names cannot be exchanged. */
static void save_forever(fixture *f) {
  for (int64_t step = 1;; step++)
    if (save_small(f, step, 3) != G3_OK) _exit(1);
}

static void save_without_exchange(fixture *f) {
  const struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat2, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog filter = {sizeof code / sizeof code[0], (struct sock_filter *)code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
    _exit(2);
  if (renameat2(AT_FDCWD, ".", AT_FDCWD, ".", RENAME_EXCHANGE) == 0) _exit(3);
  _exit(save_small(f, 3, 0) == G3_OK ? 0 : 1);
}

static pid_t start(fixture *f, void (*run)(fixture *)) {
  fflush(NULL);
  const pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid == 0) run(f);
  return pid;
}

static void replaces_without_exchange(void **state) {
  fixture *f = *state;
  assert_ok(save_small(f, 3, 0));
  char path[512];
  path_in(f, path, "step-00000003/index.h5");
  flip_byte(path, 700);
  int status = -1;
  const pid_t pid = start(f, save_without_exchange);
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
  expect_whole(f, "step-00000003");
  assert_string_equal(names_in(f), "latest step-00000003 ");
}

/* Whenever a save is killed, the last one that was finished is there, and whole. */
static void killed_at_any_time(void **state) {
  fixture *f = *state;
  for (int i = 0; i < 20; i++) {
    const pid_t pid = start(f, save_forever);
    usleep(2000 + (useconds_t)i * 1700);
    assert_int_equal(kill(pid, SIGKILL), 0);
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    const char *name = latest_of(f);
    if (name[0]) expect_whole(f, name);
  }
  assert_ok(save_small(f, 1000000, 1));
  assert_string_equal(names_in(f), "latest step-01000000 ");
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      CASE(nothing_to_go_on_from),
      CASE(saves_and_points),
      CASE(makes_directories),
      CASE(keeps_the_newest),
      CASE(never_drops_the_latest),
      CASE(drops_only_checkpoints),
      CASE(leftovers_are_removed),
      CASE(replaces_a_step),
      CASE(falls_back_to_whole_ones),
      CASE(unwritable_directory),
      CASE(path_too_long),
      CASE(latest_in_the_way),
      CASE(pieces_must_tile),
      CASE(disk_full_at_any_place),
      CASE(replaces_without_exchange),
      CASE(killed_at_any_time),
      cmocka_unit_test_setup_teardown(disk_really_full, setup, unmount_and_teardown),
  };
  return cmocka_run_group_tests_name("ckpt_protocol", tests, NULL, NULL);
}
