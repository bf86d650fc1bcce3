#!/usr/bin/env bash
# labels: cli
# Signals: save the very step and stop with 3; and whatever kills a run, no checkpoint is damaged.
. "$G3_SOURCE/tests/cli/common.sh"

# A constant learning rate, so that runs of different lengths are the same run.
flags=(--tp 2 --dp 2 --dropout 0.1 --lr-schedule constant --warmup 4)

# begin NAME FLAGS...: trains on 4 ranks in the background until step 3 is done.
begin() {
  start "$1" 4 "${flags[@]}" "${@:2}"
  wait_for_step "$1" 3
  ranks_of_job 4
}

# stopped_well NAME: one checkpoint, of the last step in metrics.jsonl.
stopped_well() {
  ended "$1" 3
  step=$(last_step "$1")
  steps_once "$1" "$step"
  [ "$(checkpoints "$1")" = "$step" ] || fail "$1 did $step steps and saved '$(checkpoints "$1")'"
  "$GPT3D" ckpt verify "$1" > "$said" 2>&1 || fail "$1 left a damaged checkpoint"
  echo "$1: stopped and saved at step $step"
}

# SIGUSR1 to mpirun, as a batch system sends it; then as if it had never happened.
begin usr1
kill -USR1 "$job"
stopped_well usr1
more=(--steps $((step + 3)) --save-interval 1000000)
run usr1 4 "${flags[@]}" "${more[@]}"
run straight 4 "${flags[@]}" "${more[@]}"
steps_once usr1 $((step + 3))
same_metrics straight usr1
same_checkpoints straight usr1 $((step + 3))

# To one rank only: the others hear of it.
begin usr1-one
kill -USR1 "${ranks[2]}"
stopped_well usr1-one
begin term-one
kill -TERM "${ranks[3]}"
stopped_well term-one

# SIGTERM to mpirun, which kills all about a second later: at least the last periodic checkpoint
# is there, and none is damaged.
begin term --save-interval 3
kill -TERM "$job"
ended term "1 3 143 15"
"$GPT3D" ckpt verify term > "$said" 2>&1 || fail "term left a damaged checkpoint"
for step in $(checkpoints term); do :; done
[ "$step" -ge $(($(last_step term) / 3 * 3 - 3)) ] || fail "term kept step $step of $(last_step term)"
echo "term: ended at step $(last_step term), saved $step"

# SIGKILL of one rank: the job ends, and goes on from its last checkpoint.
begin killed --save-interval 3
wait_for_step killed 7
kill -KILL "${ranks[1]}"
ended killed "137 1 9"
"$GPT3D" ckpt verify killed > "$said" 2>&1 || fail "killed left a damaged checkpoint"
for step in $(checkpoints killed); do :; done
more=(--steps $((step + 4)) --save-interval 1000000)
run killed 4 "${flags[@]}" "${more[@]}"
grep -q "resuming from killed/.*, step $step" killed.log || fail "killed did not go on from $step"
steps_once killed $((step + 4))
run straight-on 4 "${flags[@]}" "${more[@]}"
same_metrics straight-on killed
same_checkpoints straight-on killed $((step + 4))
echo "killed: went on from step $step"

# Killed again and again while it saves: what is there is whole, and it goes on from there.
for try in 1 2 3; do
  at=$(last_step often)
  start often 4 "${flags[@]}" --save-interval 1 --keep 2
  wait_for_step often $((at + 3))
  ranks_of_job 4
  sleep "0.0$((3 * try))"
  kill -KILL "${ranks[$try]}"
  ended often "137 1 9"
  "$GPT3D" ckpt verify often > "$said" 2>&1 || fail "often has a damaged checkpoint"
done
for step in $(checkpoints often); do :; done
run often 4 "${flags[@]}" --steps $((step + 2)) --save-interval 1 --keep 2
steps_once often $((step + 2))
[ "$(checkpoints often)" = "$((step + 1)) $((step + 2))" ] || fail "often kept $(checkpoints often)"
left=$(find often/checkpoints -mindepth 1 -name "*.tmp*")
[ -z "$left" ] || fail "often left $left"
echo "often: killed three times while it saved, went on from step $step"

# The second signal quits at once, without saving.
begin impatient
kill -STOP "${ranks[0]}" # holds back the step's sum, so that both come within one step
kill -USR1 "${ranks[2]}"
sleep 0.2
kill -USR1 "${ranks[2]}"
ended impatient "138 1 10"
[ -z "$(checkpoints impatient)" ] || fail "impatient saved $(checkpoints impatient)"
echo "impatient: gone without saving"
