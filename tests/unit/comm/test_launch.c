#include "comm/comm.h"
#include "comm/launch.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
/* after those, which it needs */
#include <cmocka.h>

static const char *const names[] = {
    "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMIX_RANK",    "PMI_RANK",    "PMI_SIZE",
    "MV2_COMM_WORLD_RANK",  "MV2_COMM_WORLD_SIZE",  "SLURM_PROCID", "SLURM_NTASKS"};

/* These tests are about the environment: none of it may come from where they run. */
static int clear(void **unused) {
  (void)unused;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    assert_int_equal(unsetenv(names[i]), 0);
  return 0;
}

static void set(const char *name, const char *value) {
  assert_int_equal(setenv(name, value, 1), 0);
}

static void alone(void **unused) {
  (void)unused;
  assert_false(g3_comm_launched());
  assert_int_equal(g3_launch_size(), 0);
}

static void by_mpirun(void **unused) {
  (void)unused;
  set("OMPI_COMM_WORLD_RANK", "0");
  set("OMPI_COMM_WORLD_SIZE", "16");
  assert_true(g3_comm_launched());
  assert_int_equal(g3_launch_size(), 16);
}

static void by_pmi(void **unused) {
  (void)unused;
  set("PMI_RANK", "3");
  set("PMI_SIZE", "8");
  set("SLURM_PROCID", "3");
  set("SLURM_NTASKS", "8");
  assert_true(g3_comm_launched());
  assert_false(g3_launch_lost());
  assert_int_equal(g3_launch_size(), 8);
}

/* PMIx names no size in the environment: MPI will know. */
static void by_pmix(void **unused) {
  (void)unused;
  set("PMIX_RANK", "3");
  set("SLURM_PROCID", "3");
  set("SLURM_NTASKS", "8");
  assert_true(g3_comm_launched());
  assert_int_equal(g3_launch_size(), 0);
}

/* mpirun -np 1 inside a Slurm job of several tasks is what it says. */
static void one_rank_inside_a_larger_job(void **unused) {
  (void)unused;
  set("SLURM_PROCID", "0");
  set("SLURM_NTASKS", "4");
  set("OMPI_COMM_WORLD_RANK", "0");
  set("OMPI_COMM_WORLD_SIZE", "1");
  assert_false(g3_launch_lost());
  assert_int_equal(g3_launch_size(), 1);
}

static void slurm_without_pmi_is_refused(void **unused) {
  (void)unused;
  set("SLURM_PROCID", "2");
  set("SLURM_NTASKS", "4");
  assert_true(g3_comm_launched());
  assert_true(g3_launch_lost());
  g3_comm *world = NULL;
  assert_int_equal(g3_comm_mpi_world(&world), G3_EINVAL);
  assert_null(world);
  assert_non_null(strstr(g3_last_error(), "Slurm started 4 processes"));
  assert_non_null(strstr(g3_last_error(), "srun --mpi=pmix"));
}

static void nonsense_counts_are_no_counts(void **unused) {
  (void)unused;
  const char *const bad[] = {"", "x", "4x", "-4", "0", " "};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    set("SLURM_PROCID", "0");
    set("SLURM_NTASKS", bad[i]);
    set("PMI_SIZE", bad[i]);
    assert_false(g3_launch_lost());
    assert_false(g3_comm_launched());
    assert_int_equal(g3_launch_size(), 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(alone, clear),
      cmocka_unit_test_setup(by_mpirun, clear),
      cmocka_unit_test_setup(by_pmi, clear),
      cmocka_unit_test_setup(by_pmix, clear),
      cmocka_unit_test_setup(one_rank_inside_a_larger_job, clear),
      cmocka_unit_test_setup(slurm_without_pmi_is_refused, clear),
      cmocka_unit_test_setup(nonsense_counts_are_no_counts, clear),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
