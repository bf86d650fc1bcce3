#!/usr/bin/env bash
# labels: cases
# HDFGroup/hdf5 #3311: a file system without flock() makes every open fail. The kind: file locks.
. "$(dirname "$0")/common.sh"
model+=(--dp 2 --save-interval 2)
run with 2 --steps 4

# trial NAME ERRNO [VARIABLE=VALUE]: train, resume, verify and list, without locks.
trial() {
  local unlocked=(LD_PRELOAD="$G3_NO_FLOCK" NO_FLOCK="$2" "${@:3}") steps
  for steps in 2 4; do
    want 0 env "NO_FLOCK=$2" "${@:3}" \
      mpirun -x LD_PRELOAD="$G3_NO_FLOCK" -np 2 "$GPT3D" "${model[@]}" --out "$1" --steps $steps
    once "warning: cannot lock $1/.lock .*make sure that no other run writes"
  done
  says "resuming from $1/checkpoints/step-00000002"
  want 0 env "${unlocked[@]}" "$GPT3D" ckpt verify "$1"
  want 0 env "${unlocked[@]}" "$GPT3D" ckpt ls "$1"
  says "step-00000004 +step 4"
  same_metrics with "$1"
  same_checkpoints with "$1" 4
}
trial not-supported 95 # ENOTSUP
trial no-locks-left 37 # ENOLCK
trial locking-wanted 95 HDF5_USE_FILE_LOCKING=TRUE
