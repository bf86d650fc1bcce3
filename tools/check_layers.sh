#!/bin/sh
# Holds src/ to tools/layers.txt: which folder may include which, which folder alone may include
# which foreign header, and that cmake/folders.cmake links each folder with just these.
# usage: tools/check_layers.sh [ROOT]
set -eu
tools=$(cd "$(dirname "$0")" && pwd)
cd "${1:-$tools/..}"

find src -type f \( -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' \) | sort |
  xargs awk -f "$tools/check_layers.awk" tools/layers.txt cmake/folders.cmake || exit 1
