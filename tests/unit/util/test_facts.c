/* Facts of the doctor: how they are printed and counted. */
#include "unit/util/cm.h"
#include "util/facts.h"
#include <stdlib.h>

static void prints_and_counts(void **state) {
  (void)state;
  char *text = NULL;
  size_t size = 0;
  g3_facts f = {.out = open_memstream(&text, &size)};
  assert_non_null(f.out);
  g3_fact(&f, G3_FACT_OK, "HDF5", "%d.%d", 1, 10);
  g3_fact(&f, G3_FACT_WARN, "shared memory", "little");
  g3_fact(&f, G3_FACT_MISSING, "mpirun", "not on PATH: %s", "apt install openmpi-bin");
  g3_fact(&f, G3_FACT_OK, "data", "here");
  assert_int_equal(fclose(f.out), 0);
  assert_string_equal(text, "ok       HDF5          1.10\n"
                            "warn     shared memory little\n"
                            "missing  mpirun        not on PATH: apt install openmpi-bin\n"
                            "ok       data          here\n");
  free(text);
  assert_int_equal(f.count[G3_FACT_OK], 2);
  assert_int_equal(f.count[G3_FACT_WARN], 1);
  assert_int_equal(f.count[G3_FACT_MISSING], 1);
}

static void counts_without_printing(void **state) {
  (void)state;
  g3_facts f = {.out = NULL};
  g3_fact(&f, G3_FACT_MISSING, "x", "y");
  assert_int_equal(f.count[G3_FACT_MISSING], 1);
  assert_int_equal(f.count[G3_FACT_OK], 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(prints_and_counts),
      cmocka_unit_test(counts_without_printing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
