#!/usr/bin/env bash
# labels: cli
# Threads and cores: a rank that mpirun bound to one core by default unbinds itself, one that its user bound stays
# there, and ranks that wait busily on too few cores are told so once.
. "$G3_SOURCE/tests/equal/common.sh"
unset OMPI_MCA_hwloc_base_binding_policy OMPI_MCA_rmaps_base_oversubscribe

cores=$(nproc)
short=(--data text --val-split 0 --steps 1 --warmup 0 --save-interval 0 --eval-interval 0 --overwrite --out run)
said() { # PATTERN COMMAND...
  local pattern=$1
  shift
  "$@" < /dev/null > log 2>&1 || true
  [ "$(grep -c "$pattern" log)" = 1 ] || {
    echo "FAILED: wanted once: $pattern"
    echo "from: $*"
    cat log
    exit 1
  }
  grep "$pattern" log
}
if [ "$cores" -gt 1 ]; then
  said "the launcher had bound this rank to 1 of $cores cores; unbound it for $cores threads" \
    mpirun -np 1 "$GPT3D" "${short[@]}"
fi
said "cpu, 1 thread a rank" taskset -c "$(taskset -pc $$ | sed 's/.*: *//; s/[-,].*//')" "$GPT3D" "${short[@]}"
said "cpu, 1 thread a rank" mpirun --oversubscribe -np $((2 * cores)) "$GPT3D" "${short[@]}"
! grep -q "wait busily" log
said "$((2 * cores)) ranks wait busily on $cores cores" mpirun --host localhost:$((2 * cores)) \
  -np $((2 * cores)) "$GPT3D" "${short[@]}"
