#include "ckpt/fields.h"
#include "ckpt/json_file.h"
#include "util/array.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void copy_printable(char *out, size_t size, const char *text) {
  snprintf(out, size, "%s", text);
  for (char *c = out; *c; c++)
    if (*c < ' ' || *c > '~') *c = '?';
}

static g3_status take_field(const char *path, const cJSON *m, g3_field *out) {
  copy_printable(out->key, sizeof out->key, m->string);
  if (strcmp(out->key, m->string) != 0)
    return G3_FAIL(G3_EFORMAT,
                   "%s: the key \"%.63s\" is longer than 63 bytes, or not printable ASCII", path,
                   out->key);
  if (cJSON_IsNull(m)) return G3_OK; /* zeroed: G3_FIELD_NULL */
  if (cJSON_IsBool(m)) {
    out->kind = G3_FIELD_BOOL;
    out->number = cJSON_IsTrue(m) ? 1.0 : 0.0;
  } else if (cJSON_IsNumber(m)) {
    out->kind = G3_FIELD_NUMBER;
    out->number = m->valuedouble;
  } else if (cJSON_IsString(m)) {
    out->kind = G3_FIELD_TEXT;
    copy_printable(out->text, sizeof out->text, m->valuestring);
  } else {
    out->kind = G3_FIELD_LIST;
    out->number = cJSON_GetArraySize(m);
  }
  return G3_OK;
}

g3_status g3_fields_read(const char *path, g3_field **out, int *n) {
  cJSON *object;
  G3_TRY(g3_json_read(path, &object));
  g3_field *fields = NULL;
  int count = 0;
  g3_status st = G3_NEW_ARRAY(cJSON_GetArraySize(object), &fields);
  for (const cJSON *m = object->child; m && st == G3_OK; m = m->next)
    st = take_field(path, m, &fields[count++]);
  cJSON_Delete(object);
  if (st != G3_OK) {
    free(fields);
    return st;
  }
  *out = fields;
  *n = count;
  return G3_OK;
}
