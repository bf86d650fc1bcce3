#!/usr/bin/env bash
# labels: lint
# The layers: the lint sees each violation in a small tree, and passes our tree.
set -euo pipefail
: "${G3_SOURCE:?where the source tree is}"
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failed=0

# A tree of two folders that obeys.
good_tree() {
  rm -rf "$tree"
  mkdir -p "$tree/src/low" "$tree/src/high/deep" "$tree/src/new" "$tree/tools" "$tree/cmake"
  printf '# folder : uses : foreign\nlow : :\nhigh : low : mpi.h cuda\n' >"$tree/tools/layers.txt"
  printf 'g3_folder(low)\ng3_folder(high LIBS m\n  USES low)\n' >"$tree/cmake/folders.cmake"
  printf '#include "low/a.h"\n#include <stdio.h>\n' >"$tree/src/low/a.c"
  printf '#include "high/b.h"\n #  include "low/a.h"\n#include <mpi.h>\n' >"$tree/src/high/b.c"
  printf '#include <cuda_runtime.h>\n' >"$tree/src/high/deep/c.cu"
  printf '#include "high/b.h"\n#include "low/a.h"\n' >"$tree/src/main.c"
}

# after FILE TEXT [FILE TEXT ...] WANTED: lines more in the good tree, and what the lint must say.
after() {
  local changes=$* code=0 said wanted=0
  good_tree
  while [ $# -gt 1 ]; do
    printf '%s\n' "$2" >>"$tree/$1"
    shift 2
  done
  [ -z "$1" ] || wanted=1
  said=$(sh "$G3_SOURCE/tools/check_layers.sh" "$tree") || code=$?
  [ "$said" = "$1" ] && [ "$code" = $wanted ] && return
  echo "after $changes"
  echo "  got: $said ($code)"
  failed=1
}

low=src/low/a.c table=tools/layers.txt links=cmake/folders.cmake
another='belongs to another folder (tools/layers.txt:'
after $low '' ''
after $low '#include "low/deep/x.h"' ''
after $low '/* #include "high/b.h" */' ''
after $low '#include "high/b.h"' "$low:3: low may not include high/b.h"
after $low '#include <mpi.h>' "$low:3: <mpi.h> $another mpi.h)"
after $low '#include <cudaProfiler.h>' "$low:3: <cudaProfiler.h> $another cuda)"
after $low '#include "a.h"' "$low:3: \"a.h\" does not begin with a folder of src/"
after $low '#include "../high/b.h"' "$low:3: \"../high/b.h\" does not begin with a folder of src/"
after src/main.c '#include <mpi.h>' "src/main.c:3: <mpi.h> $another mpi.h)"
after src/new/d.h '#include <stdio.h>' 'src/new/d.h:1: folder new is no row of tools/layers.txt'

after $table 'odd : later :' "$table:4: odd may not include later, which stands no higher in the table"
after $table 'odd : low' "$table:4: wanted three columns with : between"
after $table 'new : low high :' src/new/d.h '#include "high/b.h"' ''
after $table 'new : low :' src/new/d.h '#include "high/b.h"' \
  'src/new/d.h:1: new may not include high/b.h'

# A row may be linked nowhere yet; what is linked is as in the table.
after $links 'g3_folder(odd)' "$links:4: folder odd is no row of tools/layers.txt"
after $links 'g3_folder(low USES high)' \
  "$links:4: low uses high, which tools/layers.txt does not allow"
after $table 'new : low high :' $links 'g3_folder(new USES high LIBS low)' \
  "$links:4: new does not use low, which tools/layers.txt lists"

sh "$G3_SOURCE/tools/check_layers.sh" || failed=1
exit $failed
