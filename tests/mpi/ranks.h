/* Tests under mpirun. A rank whose expectation fails ends the whole job at once, so that no other
 * waits for it in a collective; all report by one exit code. */
#ifndef G3_TESTS_MPI_RANKS_H
#define G3_TESTS_MPI_RANKS_H
#include "comm/comm.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  const char *name;
  void (*run)(g3_comm *world, g3_device *dev);
} ranks_test;

#define EXPECT(cond) G3_CHECK(cond, "not true: %s", #cond)
#define EXPECT_EQUAL(found, wanted)                                                                \
  do {                                                                                             \
    const long long found_ = (long long)(found), wanted_ = (long long)(wanted);                    \
    G3_CHECK(found_ == wanted_, "%s is %lld, wanted %lld", #found, found_, wanted_);               \
  } while (0)
#define EXPECT_OK(call)                                                                            \
  do {                                                                                             \
    const g3_status st_ = (call);                                                                  \
    G3_CHECK(st_ == G3_OK, "%s: %s", #call, g3_last_error());                                      \
  } while (0)

static g3_comm *ranks_world;

static void ranks_abort(int code) {
  ranks_world->ops->abort(ranks_world, code);
}

/* Runs the tests one after another on all ranks; returns what main returns. */
static int ranks_main(int size, const ranks_test *test, int n) {
  g3_device *dev;
  char place[32];
  EXPECT_OK(g3_comm_mpi_world(&ranks_world));
  snprintf(place, sizeof place, "rank %d", ranks_world->rank);
  g3_set_fatal_place(place);
  g3_set_fatal_hook(ranks_abort);
  EXPECT_EQUAL(ranks_world->size, size);
  EXPECT_OK(g3_device_open("cpu", 1, &dev));
  for (int i = 0; i < n; i++) {
    EXPECT_OK(ranks_world->ops->barrier(ranks_world));
    test[i].run(ranks_world, dev);
    EXPECT_OK(ranks_world->ops->barrier(ranks_world));
    if (ranks_world->rank == 0) printf("ok %s\n", test[i].name);
  }
  g3_device_close(dev);
  g3_comm_destroy(ranks_world);
  return 0;
}

#endif
