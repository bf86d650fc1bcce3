#!/usr/bin/env bash
# labels: cli
# Wherever a run stops, and however often: what follows is what would have been. With dropout, over the ends of epochs,
# and with --exact from one layout to another.
. "$G3_SOURCE/tests/cli/common.sh"

# 39 training windows: the first epoch ends within step 3, the second within step 5.
head -c 730 text > little
model=("${small[@]}" --data little --vocab 257 --seed 3 --global-batch 16 --dropout 0.1 --val-split 0.13
  --eval-interval 2 --lr 2e-3 --min-lr 2e-4 --warmup 2 --decay-steps 6 --save-interval 1 --log-interval 0)
layout=(--tp 2 --dp 2)
step_dir() { printf 'checkpoints/step-%08d' "$1"; }

# as_straight NAME: the six steps of `straight`, as text, and its last weights and moments to the bit.
as_straight() {
  steps_once "$1" 6
  same_metrics straight "$1"
  same_checkpoints straight "$1" 6
}

for dtype in f32 bf16; do
  rm -rf straight
  run straight 4 "${layout[@]}" --dtype $dtype --steps 6
  grep -Eq ' 39 training and 5 validation samples' straight.log || fail "the epochs end elsewhere"
  [ "$(checkpoints straight)" = "1 2 3 4 5 6" ] || fail "it has checkpoints $(checkpoints straight)"
  [ "$(grep -c val_loss straight/metrics.jsonl)" = 3 ] || fail "it evaluated not three times"

  # Killed after each step in turn; what was saved later than that is gone.
  for stop in 1 2 3 4 5; do
    rm -rf stopped
    cp -r straight stopped
    for later in $(seq $((stop + 1)) 6); do rm -r "stopped/$(step_dir "$later")"; done
    run stopped 4 "${layout[@]}" --dtype $dtype --steps 6
    grep -q "resuming from .*, step $stop\$" stopped.log || fail "it did not go on from step $stop"
    as_straight stopped
  done

  # A resume of a resume of a resume: a process a step.
  rm -rf chain
  for step in 1 2 3 4 5 6; do run chain 4 "${layout[@]}" --dtype $dtype --steps $step; done
  as_straight chain

  # Other intervals of saving: when a run saves is no part of what it computes.
  for interval in 2 4 100; do
    rm -rf other
    cp -r straight other
    for later in 4 5 6; do rm -r "other/$(step_dir "$later")"; done
    run other 4 "${layout[@]}" --dtype $dtype --steps 6 --save-interval $interval
    as_straight other
  done
  [ "$(checkpoints other)" = "1 2 3 6" ] || fail "it has checkpoints $(checkpoints other)"
done

# A signal to one rank only, wherever it comes; then on, as if it had never come.
more=(--lr-schedule constant --save-interval 1000000)
start signalled 4 "${layout[@]}" "${more[@]}"
wait_for_step signalled 3
ranks_of_job 4
kill -TERM "${ranks[2]}"
ended signalled 3
step=$(last_step signalled)
run signalled 4 "${layout[@]}" "${more[@]}" --steps $((step + 3))
run unsignalled 4 "${layout[@]}" "${more[@]}" --steps $((step + 3))
steps_once signalled $((step + 3))
same_metrics unsignalled signalled
same_checkpoints unsignalled signalled $((step + 3))

# With --exact another layout goes on with the same bits.
for dtype in f32 bf16; do
  rm -rf straight
  run straight 4 "${layout[@]}" --exact --dtype $dtype --steps 6
  for other in "1 --pp 1" "8 --tp 2 --pp 2 --dp 2 --sequence-parallel" "2 --pp 2 --micro-batch 1" \
    "4 --dp 4 --zero 0"; do
    rm -rf moved
    cp -r straight moved
    for later in 4 5 6; do rm -r "moved/$(step_dir "$later")"; done
    # shellcheck disable=SC2086
    run moved ${other%% *} ${other#* } --exact --dtype $dtype --steps 6
    as_straight moved
  done
done
echo "resume: at every step, again and again, elsewhere: the same text and the same bits"
