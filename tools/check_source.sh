#!/bin/sh
# Holds the tree's own files to the rules of style that a compiler does not know: length of lines,
# functions and files, comments on declarations, include guards, calls and paths that have no place
# here.
# usage: tools/check_source.sh [ROOT]
set -eu
export LC_ALL=C
tools=$(cd "$(dirname "$0")" && pwd)
cd "${1:-$tools/..}"

# Allocations that are their file's task: small arrays, and a device's memory.
allocators=' src/util/array.c src/device/cpu/memory.c '

find . \( -name .git -o -name .cache -o -path './build*' -o -path ./data -o -path ./runs \) -prune \
  -o -type f \( -path './tools/*' -o -path './.ci/*' -o -name '*.[ch]' -o -name '*.cu' \
  -o -name '*.cuh' -o -name '*.sh' -o -name '*.py' -o -name '*.cmake' -o -name '*.txt' \
  -o -name '*.md' -o -name '*.yaml' \) -print |
  sed 's|^\./||' | sort | xargs awk -v allocators="$allocators" -f "$tools/check_source.awk" || exit 1
