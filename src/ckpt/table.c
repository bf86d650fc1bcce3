#include "ckpt/table.h"
#include "util/array.h"
#include <stddef.h>
#include <stdlib.h>

typedef enum { TEXT, I32, I64, U64 } kind;

typedef struct {
  const char *name;
  size_t offset;
  kind kind;
  int n; /* bytes of a text, numbers of an array; 1: a scalar */
} field;

static const field tensor_fields[] = {
    {"name", offsetof(g3_ckpt_tensor_row, name), TEXT, 96},
    {"dtype", offsetof(g3_ckpt_tensor_row, dtype), TEXT, 8},
    {"ndim", offsetof(g3_ckpt_tensor_row, ndim), I32, 1},
    {"dims", offsetof(g3_ckpt_tensor_row, dims), I64, G3_MAX_DIMS},
};
static const field piece_fields[] = {
    {"tensor", offsetof(g3_ckpt_piece_row, tensor), I32, 1},
    {"shard", offsetof(g3_ckpt_piece_row, shard), I32, 1},
    {"dataset", offsetof(g3_ckpt_piece_row, dataset), TEXT, 192},
    {"start", offsetof(g3_ckpt_piece_row, start), I64, G3_MAX_DIMS},
    {"count", offsetof(g3_ckpt_piece_row, count), I64, G3_MAX_DIMS},
    {"xxh3", offsetof(g3_ckpt_piece_row, xxh3), U64, 1},
};
static const field shard_fields[] = {
    {"bytes", offsetof(g3_ckpt_shard_row, bytes), I64, 1},
};

#define FIELDS(f) f, sizeof f / sizeof f[0]
static const struct {
  const char *name;
  size_t row_bytes;
  const field *fields;
  size_t nfields;
} tables[G3_CKPT_TABLES] = {
    [G3_CKPT_TENSORS] = {"index/tensors", sizeof(g3_ckpt_tensor_row), FIELDS(tensor_fields)},
    [G3_CKPT_PIECES] = {"index/pieces", sizeof(g3_ckpt_piece_row), FIELDS(piece_fields)},
    [G3_CKPT_SHARDS] = {"index/shards", sizeof(g3_ckpt_shard_row), FIELDS(shard_fields)},
};

static hid_t field_type(const field *f) {
  if (f->kind == TEXT) {
    hid_t text = H5Tcopy(H5T_C_S1);
    if (text >= 0 && H5Tset_size(text, (size_t)f->n) < 0) g3_h5_close(&text);
    return text;
  }
  const hid_t number = f->kind == I32   ? H5T_STD_I32LE
                       : f->kind == I64 ? H5T_STD_I64LE
                                        : H5T_STD_U64LE;
  const hsize_t n = (hsize_t)f->n;
  return f->n == 1 ? H5Tcopy(number) : H5Tarray_create2(number, 1, &n);
}

/* The struct as it lies in memory; packed, as it lies in the file. */
static hid_t row_type(g3_ckpt_table t, bool packed) {
  hid_t row = H5Tcreate(H5T_COMPOUND, tables[t].row_bytes);
  for (size_t i = 0; row >= 0 && i < tables[t].nfields; i++) {
    const field *f = &tables[t].fields[i];
    hid_t type = field_type(f);
    if (type < 0 || H5Tinsert(row, f->name, f->offset, type) < 0) g3_h5_close(&row);
    g3_h5_close(&type);
  }
  if (row >= 0 && packed && H5Tpack(row) < 0) g3_h5_close(&row);
  return row;
}

g3_status g3_ckpt_table_write(hid_t file, const char *path, g3_ckpt_table t, const void *rows,
                              int64_t n) {
  const hsize_t dim = (hsize_t)n;
  hid_t in_file = row_type(t, true), in_memory = row_type(t, false);
  hid_t space = H5Screate_simple(1, &dim, NULL);
  hid_t lcpl = H5Pcreate(H5P_LINK_CREATE), dcpl = H5Pcreate(H5P_DATASET_CREATE);
  hid_t set = G3_H5_NONE;
  const bool ok =
      in_file >= 0 && in_memory >= 0 && space >= 0 && lcpl >= 0 && dcpl >= 0 &&
      H5Pset_create_intermediate_group(lcpl, 1) >= 0 && H5Pset_obj_track_times(dcpl, false) >= 0 &&
      (set = H5Dcreate2(file, tables[t].name, in_file, space, lcpl, dcpl, H5P_DEFAULT)) >= 0 &&
      H5Dwrite(set, in_memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, rows) >= 0;
  const g3_status st =
      ok ? G3_OK : G3_H5_FAIL(G3_EIO, "%s: cannot write the table %s", path, tables[t].name);
  g3_h5_close(&set);
  g3_h5_close(&dcpl);
  g3_h5_close(&lcpl);
  g3_h5_close(&space);
  g3_h5_close(&in_memory);
  g3_h5_close(&in_file);
  return st;
}

static g3_status check_fields(hid_t set, const char *path, g3_ckpt_table t) {
  hid_t type = H5Dget_type(set);
  g3_status st = G3_OK;
  if (type < 0 || H5Tget_class(type) != H5T_COMPOUND)
    st = G3_FAIL(G3_EFORMAT, "%s: %s is not a table", path, tables[t].name);
  for (size_t i = 0; st == G3_OK && i < tables[t].nfields; i++)
    if (H5Tget_member_index(type, tables[t].fields[i].name) < 0)
      st = G3_FAIL(G3_EFORMAT, "%s: the table %s has no field %s", path, tables[t].name,
                   tables[t].fields[i].name);
  g3_h5_close(&type);
  return st;
}

static g3_status row_count(hid_t set, const char *path, g3_ckpt_table t, int64_t *n) {
  hid_t space = H5Dget_space(set);
  hsize_t dim = 0;
  const bool ok = space >= 0 && H5Sget_simple_extent_ndims(space) == 1 &&
                  H5Sget_simple_extent_dims(space, &dim, NULL) == 1 && dim <= INT32_MAX;
  g3_h5_close(&space);
  if (!ok) return G3_FAIL(G3_EFORMAT, "%s: %s is not a list of rows", path, tables[t].name);
  *n = (int64_t)dim;
  return G3_OK;
}

g3_status g3_ckpt_table_read(hid_t file, const char *path, g3_ckpt_table t, void **rows,
                             int64_t *n) {
  hid_t set = H5Dopen2(file, tables[t].name, H5P_DEFAULT), type = G3_H5_NONE;
  if (set < 0) return G3_H5_FAIL(G3_EFORMAT, "%s has no table %s", path, tables[t].name);
  void *room = NULL;
  int64_t count = 0;
  g3_status st;
  G3_TRY_TO(done, st, check_fields(set, path, t));
  G3_TRY_TO(done, st, row_count(set, path, t, &count));
  G3_TRY_TO(done, st, g3_alloc_array(count, tables[t].row_bytes, &room));
  type = row_type(t, false);
  if (type < 0 || H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, room) < 0)
    st = G3_H5_FAIL(G3_EFORMAT, "%s: cannot read the table %s", path, tables[t].name);
done:
  g3_h5_close(&type);
  g3_h5_close(&set);
  if (st == G3_OK) {
    *rows = room;
    *n = count;
  } else {
    free(room);
  }
  return st;
}
