#!/usr/bin/env bash
# labels: lint
# Every C file is as clang-format 14 leaves it. Other versions break lines elsewhere, so that
# without version 14 the test is skipped.
set -euo pipefail
: "${G3_SOURCE:?where the source tree is}"
format=
for name in clang-format-14 clang-format; do
  if command -v $name >/dev/null && $name --version | grep -q 'version 14\.'; then format=$name; fi
done
if [ -z "$format" ]; then
  echo "clang-format 14 is not here: apt install clang-format-14"
  exit 77
fi

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
cp "$G3_SOURCE/.clang-format" "$tree"
printf 'int  a ;\n' >"$tree/a.c"
if $format --dry-run -Werror "$tree/a.c" 2>/dev/null; then
  echo "$format passes a file that is not formatted"
  exit 1
fi

cd "$G3_SOURCE"
find src tests -name '*.[ch]' -o -name '*.cu' | sort | xargs $format --dry-run -Werror
