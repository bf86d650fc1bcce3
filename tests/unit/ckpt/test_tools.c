/* Other programs open what we write: h5py and h5dump see whole tensors and right numbers. */
#include "fixture.h"
#include <fcntl.h>
#include <sys/file.h>

/* Debian's h5py belongs to its own interpreter. */
#define PYTHON "/usr/bin/python3"

/* A tensor in three uneven pieces and two dtypes. */
static void save_cut(fixture *f) {
  const g3_ckpt_item whole = item_of("model/w", G3_F32, 6, 8),
                     low = item_of("optim/exp_avg/w", G3_BF16, 4, 4);
  g3_ckpt_item parts[5] = {part_of(&whole, G3_F32, 0, 6, 0, 3), part_of(&whole, G3_F32, 0, 2, 3, 5),
                           part_of(&whole, G3_F32, 2, 4, 3, 5), part_of(&low, G3_BF16, 0, 1, 0, 4),
                           part_of(&low, G3_BF16, 1, 3, 0, 4)};
  for (int i = 0; i < 5; i++)
    fill(&parts[i], 0);
  g3_ckpt_attr attr[] = {{"model.width", "128"}};
  const g3_ckpt_meta meta = {7, 224, 6, attr, 1};
  assert_ok(g3_ckpt_save(f->self, f->stream, f->dir, &meta, parts, 5, 0, f->stage));
  free_items(parts, 5);
  free(whole.local.data);
  free(low.local.data);
}

/* Runs a Python program over the checkpoint's directory, from another working directory. */
static void expect_python(fixture *f, const char *program) {
  char path[512], out[2048];
  path_in(f, path, "program.py");
  write_text(path, program);
  if (shell(out, sizeof out, "cd / && " PYTHON " '%s' '%s/step-00000007' 2>&1", path, f->dir) != 0)
    fail_msg("%s", out);
}

static void h5py_reads_whole_tensors(void **state) {
  fixture *f = *state;
  save_cut(f);
  expect_python(f, "import h5py, numpy, sys\n"
                   "f = h5py.File(sys.argv[1] + '/index.h5', 'r')\n"
                   "want = numpy.arange(48).reshape(6, 8) - 125.0\n"
                   "w, m = f['model/w'], f['optim/exp_avg/w']\n"
                   "assert w.dtype == numpy.float32 and w.shape == (6, 8)\n"
                   "assert (w[...] == want).all(), w[...]\n"
                   "assert (w[1:5, 2:7] == want[1:5, 2:7]).all()\n"
                   "assert (m[...] == numpy.arange(16).reshape(4, 4) - 125.0).all(), m[...]\n"
                   "assert f.attrs['format_version'] == 1 and f.attrs['step'] == 7\n"
                   "assert f.attrs['consumed_samples'] == 224 and f.attrs['applied_steps'] == 6\n"
                   "assert f['config'].attrs['model.width'] == '128'\n"
                   "assert sorted(f) == ['config', 'index', 'model', 'optim']\n");
}

/* The tables are enough to put tensors together without the virtual datasets. */
static void h5py_reads_the_tables(void **state) {
  fixture *f = *state;
  save_cut(f);
  expect_python(f,
                "import h5py, numpy, os, sys\n"
                "f = h5py.File(sys.argv[1] + '/index.h5', 'r')\n"
                "t, p, s = (f['index/' + n][...] for n in ('tensors', 'pieces', 'shards'))\n"
                "assert len(t) == 2 and len(p) == 5 and len(s) == 1\n"
                "shard = sys.argv[1] + '/shard-00000.h5'\n"
                "assert s['bytes'][0] == os.path.getsize(shard)\n"
                "g = h5py.File(shard, 'r')\n"
                "for i, row in enumerate(t):\n"
                "    n = row['ndim']\n"
                "    whole = numpy.full(row['dims'][:n], numpy.nan)\n"
                "    for q in p[p['tensor'] == i]:\n"
                "        at = tuple(slice(a, a + c) for a, c in zip(q['start'][:n], q['count']))\n"
                "        whole[at] = g[q['dataset']][...]\n"
                "    assert (whole == f[row['name']][...]).all()\n"
                "assert [bytes(d) for d in t['dtype']] == [b'f32', b'bf16']\n");
}

static void h5dump_prints_numbers(void **state) {
  fixture *f = *state;
  save_cut(f);
  char out[8192];
  assert_int_equal(shell(out, sizeof out,
                         "cd / && h5dump -d /optim/exp_avg/w '%s/step-00000007/index.h5'", f->dir),
                   0);
  assert_non_null(strstr(out, "16-bit little-endian floating-point"));
  assert_non_null(strstr(out, "(0,0): -125, -124, -123, -122,"));
  assert_non_null(strstr(out, "(3,0): -113, -112, -111, -110"));
  assert_int_equal(
      shell(out, sizeof out, "h5dump -d '/model/w@0,3' '%s/step-00000007/shard-00000.h5'", f->dir),
      0);
  assert_non_null(strstr(out, "(1,0): -114, -113, -112, -111, -110"));
}

/* The block before the HDF5 part is text that says what the file is. */
static void seal_is_text(void **state) {
  fixture *f = *state;
  save_cut(f);
  char out[512], path[512], wanted[64];
  path_in(f, path, "step-00000007/index.h5");
  assert_int_equal(shell(out, sizeof out, "head -n 2 '%s'", path), 0);
  snprintf(wanted, sizeof wanted, "gpt3d checkpoint index\nbytes %lld\n",
           (long long)size_of(path) - 512);
  assert_string_equal(out, wanted);
}

/* Files that another process has locked are read, although the environment asks for locks. */
static void no_file_locking(void **state) {
  fixture *f = *state;
  save_cut(f);
  char out[512], path[512], shard[512];
  path_in(f, path, "step-00000007");
  path_in(f, shard, "step-00000007/shard-00000.h5");
  const int fd = open(shard, O_RDWR);
  assert_true(fd >= 0);
  assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
  static const char dump[] = "HDF5_USE_FILE_LOCKING=%s h5dump -H '%s' >/dev/null 2>&1";
  assert_int_not_equal(shell(out, sizeof out, dump, "TRUE", shard), 0); /* the lock does hold */
  assert_int_equal(shell(out, sizeof out, dump, "FALSE", shard), 0);
  g3_ckpt_index *ix = NULL;
  int64_t bytes = 0;
  assert_ok(g3_ckpt_index_read(path, &ix));
  assert_ok(g3_ckpt_verify(ix, f->stage, &bytes));
  assert_int_equal(bytes, 48 * 4 + 16 * 2);
  g3_ckpt_index_free(ix);
  close(fd);
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  setenv("HDF5_USE_FILE_LOCKING", "TRUE", 1);
  const struct CMUnitTest tests[] = {
      CASE(h5py_reads_whole_tensors), CASE(h5py_reads_the_tables),
      CASE(h5dump_prints_numbers),    CASE(seal_is_text),
      CASE(no_file_locking),
  };
  return cmocka_run_group_tests_name("ckpt_tools", tests, NULL, NULL);
}
