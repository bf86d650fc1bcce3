#include "ckpt/facts.h"
#include <cjson/cJSON.h>
#include <hdf5.h>
#include <stdio.h>
#include <xxhash.h>

static void hdf5(g3_facts *f) {
  unsigned major, minor, release;
  if (H5get_libversion(&major, &minor, &release) < 0)
    g3_fact(f, G3_FACT_MISSING, "HDF5", "does not start: apt install --reinstall libhdf5-103-1");
  else if (major != H5_VERS_MAJOR || minor != H5_VERS_MINOR || release != H5_VERS_RELEASE)
    /* HDF5 itself ends a program whose header and library differ. */
    g3_fact(f, G3_FACT_MISSING, "HDF5",
            "%u.%u.%u, but gpt3d was compiled with %d.%d.%d: build it again", major, minor, release,
            H5_VERS_MAJOR, H5_VERS_MINOR, H5_VERS_RELEASE);
  else
    g3_fact(f, G3_FACT_OK, "HDF5", "%u.%u.%u", major, minor, release);
}

void g3_ckpt_facts(g3_facts *f) {
  const unsigned v = XXH_versionNumber();
  hdf5(f);
  g3_fact(f, G3_FACT_OK, "xxHash", "%u.%u.%u", v / 10000, v / 100 % 100, v % 100);
  g3_fact(f, G3_FACT_OK, "cJSON", "%s", cJSON_Version());
}
