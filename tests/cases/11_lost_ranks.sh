#!/usr/bin/env bash
# labels: cases
# open-mpi/ompi #13523: four tasks run as four worlds of one, and all of them write. The kind: launcher and MPI that
# disagree.
. "$(dirname "$0")/common.sh"

# tasks FLAGS...: four processes at once, as Slurm starts them when MPI does not know of it. Leaves their exit codes.
tasks() {
  local k pids=() begin=$SECONDS
  codes=
  for k in 0 1 2 3; do
    env SLURM_JOB_ID=1 SLURM_NTASKS=4 SLURM_PROCID=$k SLURM_LOCALID=$k "$GPT3D" "${model[@]}" --steps 3 \
      --save-interval 1 --out lost "$@" > "task$k" 2>&1 < /dev/null &
    pids+=($!)
  done
  for k in 0 1 2 3; do
    local code=0
    wait "${pids[$k]}" || code=$?
    codes="$codes$code "
  done
  [ $((SECONDS - begin)) -le 5 ] || fail "it took $((SECONDS - begin)) s"
}
for layout in "" "--tp 2 --pp 2"; do
  # shellcheck disable=SC2086
  tasks $layout
  [ "$codes" = "2 2 2 2 " ] || [ "$codes" = "1 1 1 1 " ] || fail "the tasks ended with $codes"
  for k in 0 1 2 3; do
    said=task$k
    grep -q "Slurm" "task$k" && grep -q "4" "task$k" && grep -Eq "mpirun|srun --mpi" "task$k" ||
      fail "task $k does not say why"
  done
  [ ! -e lost ] || fail "a task wrote"
done
want 0 env SLURM_JOB_ID=1 SLURM_NTASKS=1 SLURM_PROCID=0 SLURM_LOCALID=0 "$GPT3D" "${model[@]}" --steps 3 --out alone
steps_once alone 3
# Under mpirun inside an allocation all is well, whatever the batch script's own variables say.
want 0 env SLURM_JOB_ID=1 SLURM_NTASKS=4 SLURM_PROCID=0 \
  mpirun -np 2 "$GPT3D" "${model[@]}" --dp 2 --steps 3 --out inside

# Two runs that nobody's launcher connects: the folder belongs to the first.
start held 1
wait_for_step held 2
refused "another run is writing in held" "$GPT3D" "${model[@]}" --steps 3 --out held
refused "another run is writing in held" "$GPT3D" "${model[@]}" --steps 3 --out held --resume none --overwrite
kill -USR1 "$job"
said=held.log
ended held 3
steps_once held "$(last_step held)"
want 0 "$GPT3D" ckpt verify held
