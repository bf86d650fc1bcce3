/* One member of a settings file of another program, as the one folder reads it and another
 * understands it. */
#ifndef G3_UTIL_FIELD_H
#define G3_UTIL_FIELD_H

typedef enum {
  G3_FIELD_NULL,
  G3_FIELD_BOOL,
  G3_FIELD_NUMBER,
  G3_FIELD_TEXT,
  G3_FIELD_LIST /* an array or an object: only how many members it has */
} g3_field_kind;

/* A key and its value. */
typedef struct {
  char key[64];
  g3_field_kind kind;
  double number; /* of a number; 0 or 1 of a bool; members of a list */
  char text[64]; /* of a text, cut to fit */
} g3_field;

#endif
