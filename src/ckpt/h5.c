#include "ckpt/h5.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "pieces are stored as they lie in memory");

void g3_h5_begin(void) {
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

typedef struct {
  char *why;
  size_t size;
} reason;

static herr_t take_innermost(unsigned n, const H5E_error2_t *e, void *user) {
  reason *r = user;
  if (n > 0 || !e->desc) return 0;
  const char *code = strstr(e->desc, "errno = ");
  const long number = code ? strtol(code + strlen("errno = "), NULL, 10) : 0;
  const bool system = number > 0 && number <= INT_MAX;
  snprintf(r->why, r->size, "%s", system ? strerror((int)number) : e->desc);
  return 0;
}

const char *g3_h5_why(char *why, size_t size) {
  reason r = {why, size};
  snprintf(why, size, "HDF5 gives no reason");
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_innermost, &r);
  return why;
}

hid_t g3_h5_dtype(g3_dtype t) {
  hid_t id = H5Tcopy(H5T_IEEE_F32LE);
  if (id < 0 || t == G3_F32) return id;
  if (t != G3_BF16 || H5Tset_fields(id, 15, 7, 8, 0, 7) < 0 || H5Tset_size(id, 2) < 0 ||
      H5Tset_ebias(id, 127) < 0) {
    H5Tclose(id);
    return G3_H5_NONE;
  }
  return id;
}

bool g3_h5_close(hid_t *id) {
  const hid_t was = *id;
  *id = G3_H5_NONE;
  if (was < 0) return true;
  switch (H5Iget_type(was)) {
  case H5I_GROUP:
    return H5Gclose(was) >= 0;
  case H5I_DATASET:
    return H5Dclose(was) >= 0;
  case H5I_ATTR:
    return H5Aclose(was) >= 0;
  case H5I_DATASPACE:
    return H5Sclose(was) >= 0;
  case H5I_DATATYPE:
    return H5Tclose(was) >= 0;
  case H5I_GENPROP_LST:
    return H5Pclose(was) >= 0;
  default:
    return false;
  }
}
