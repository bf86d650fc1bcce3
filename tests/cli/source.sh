#!/usr/bin/env bash
# labels: lint
# The rules of style: the lint sees each violation in a small tree, passes what is right, and passes
# our tree.
set -euo pipefail
: "${G3_SOURCE:?where the source tree is}"
shopt -s lastpipe # so that what a pipe ends in can set failed
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree/src/util" "$tree/tests" "$tree/tools"
failed=0

# passes FILE, refuses FILE MESSAGE: the file's text is on standard input.
lint() {
  mkdir -p "$(dirname "$tree/$1")"
  cat >"$tree/$1"
  code=0
  said=$(sh "$G3_SOURCE/tools/check_source.sh" "$tree") || code=$?
  rm "$tree/$1"
}
passes() {
  lint "$1"
  [ "$code" = 0 ] && [ -z "$said" ] && return
  echo "a good $1 gave $code: $said"
  failed=1
}
refuses() {
  lint "$1"
  [ "$code" = 1 ] && [ "$said" = "$1:$2" ] && return
  echo "wanted 1: $1:$2"
  echo "   got $code: $said"
  failed=1
}
header() {
  printf '#ifndef G3_UTIL_A_H\n#define G3_UTIL_A_H\n\n%s\n\n#endif\n' "$1"
}
repeat() {
  for _ in $(seq "$1"); do printf '%s\n' "$2"; done
}
wide=$(printf '%0101d' 0)

printf 'int a;\n\tint b;\n' | refuses src/a.c '2: a tab'
printf 'int a; \n' | refuses src/a.c '1: a space at the end of the line'
printf 'int a;\r\n' | refuses src/a.c '1: a space at the end of the line'
printf '/* %s: more */\n' 'TO''DO' | refuses src/a.c '1: a note of unfinished work'
printf '# %s\n' 'FIX''ME' | refuses tools/a '1: a note of unfinished work'
printf 'mkdtemp("a%s");\n' 'XX''XXXX' | passes src/a.c
printf 'see /%s/main/a\n' work | refuses docs/a.md '1: a path of one machine'
printf '/* ../%s/b */\n' shared | refuses tests/a.c '1: a path of one machine'
printf '/* %s */\n' "$wide" | refuses src/a.c '1: the line has 107 columns; wanted 100 at most'
printf '# %s\n' "$wide" | passes tools/a
printf '# %s%s\n' "$wide" "$wide" | refuses tools/a '1: the line has 204 columns; wanted 120 at most'
printf '%s%s\n' "$wide" "$wide" | passes a.md
printf '/* %s */\n' "$(repeat 94 ä | tr -d '\n')" | passes src/a.c
repeat 601 'int a;' | refuses src/a.c '601: the file has 601 lines; wanted 600 at most'
repeat 600 'int a;' | passes src/a.c
repeat 700 'text' | passes a.txt

{ printf 'static int f(int a,\n             int b) {\n'; repeat 78 '  a++;'; printf '}\n'; } |
  refuses src/a.c '1: the function has 81 lines; wanted 80 at most'
{ printf 'int g;\n\nint f(void) {\n'; repeat 78 '  { g = 1; }'; printf '}\n'; } | passes src/a.c
{ printf 'const int t[] = {\n'; repeat 99 '  1,'; printf '};\n'; } | passes src/a.c
{ printf '#define M(a) \\\n  f(a) { \\\n'; repeat 99 "  a \\"; printf '  }\nint a;\n'; } | passes src/a.c

for call in sprintf vsprintf strcpy strcat gets; do
  printf 'int a;\nint b = %s(c);\n' $call |
    refuses tests/a.c "2: $call cannot see the end of its buffer"
done
printf 'int a = at%s(b);\n' oi | refuses src/a.c '1: atoi takes anything for a number'
for call in malloc calloc realloc aligned_alloc posix_memalign; do
  printf 'int *a = %s(4);\n' $call |
    refuses src/util/a.c "1: $call, an allocation of its own; use g3_alloc_array or an arena"
  printf 'int *a = %s(4);\n' $call | passes tests/a.c
done
printf 'void *a = calloc(4, 4);\n' | passes src/util/array.c
printf '/* malloc( */ char *a = "strcpy(", b = '"'\"'"'; // gets(\nsnprintf(a);\n' | passes src/a.c

printf '#ifndef UTIL_A_H\n#define UTIL_A_H\n#endif\n' |
  refuses src/util/a.h '1: wanted the include guard G3_UTIL_A_H'
bare='a declaration without a comment that says what it is'
header 'int f(void);' | refuses src/util/a.h "4: $bare"
header 'extern int a;' | refuses src/util/a.h "4: $bare"
header $'/* Both. */\nint f(void);\nint g(int a,\n      int b);\n\nint h(void);' |
  refuses src/util/a.h "9: $bare"
header $'int f(void);\n/* Only this. */\nint g(void);' | refuses src/util/a.h "4: $bare"
header $'/* A page. */\n#include <stdio.h>\nint f(void);' | refuses src/util/a.h "6: $bare"
header $'static inline int f(int a) {\n  return a;\n}' | refuses src/util/a.h "4: $bare"
header $'typedef struct {\n  int a;\n} b;' | refuses src/util/a.h "4: $bare"
header $'typedef struct {\n  int a; /* metres */\n\n  int c;\n} b;\nint f(b); /* adds */' |
  passes src/util/a.h
header $'typedef struct a a;\nstruct b;\nenum { SIZE = 3 };\n_Static_assert(1, "one");' |
  passes src/util/a.h
header $'/* Two\n * lines. */\nint f(void);\nint g(void);' | passes src/util/a.h
header 'int f(void);' | sed 's/G3_UTIL_A_H/ANY/' | passes tests/a.h

sh "$G3_SOURCE/tools/check_source.sh" || failed=1
exit $failed
