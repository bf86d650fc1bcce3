#!/usr/bin/env bash
# labels: cli
# After step 1 the program's own objects take no memory, in training and in evaluation.
. "$G3_SOURCE/tests/cli/common.sh"

# reports NAME: how many lines the preloaded counter has written.
reports() { grep -c "^own allocations: " "$1.log" || true; }

# count NAME N: has each of the N ranks report, and waits for that.
count() {
  local before
  before=$(reports "$1")
  kill -USR2 "${ranks[@]}"
  for ((i = 0; i < 200; i++)); do
    [ "$(reports "$1")" -lt $((before + $2)) ] || return 0
    sleep 0.05
  done
  fail "$1: not all ranks reported"
}

# watch NAME RANKS FLAGS...: none from step 2 to step 10 and more.
watch() {
  local name=$1 n=$2
  start "$name" "$n" --log-interval 1 --val-split 0.05 "${@:3}"
  wait_for_step "$name" 1
  ranks_of_job "$n"
  count "$name" "$n"
  local at
  at=$(last_step "$name")
  wait_for_step "$name" $((at + 10))
  count "$name" "$n"
  kill -USR1 "$job"
  ended "$name" 3
  # The counter sees the start, so it sees.
  grep "^own allocations: " "$name.log" | head -n "$n" | awk '$3 < 50 { exit 1 }' ||
    fail "$name: the counter saw next to nothing of the start"
  grep "^own allocations: " "$name.log" | tail -n "$n" > own
  if grep -v "^own allocations: 0$" own; then
    grep -o "0x[0-9a-f]*" own | sort -u | xargs addr2line -f -p -e "$GPT3D" || true
    fail "$name: allocations after step 1"
  fi
  echo "malloc: $n ranks, ${*:3}: none of our own in 10 steps"
}

export LD_PRELOAD=$G3_COUNT_MALLOC
watch alone 1 --dropout 0.1 --threads 2
watch evaluating 1 --eval-interval 1 --eval-samples 40
watch many 8 --tp 2 --pp 2 --dp 2 --dtype bf16 --sequence-parallel --dropout 0.1 --eval-interval 2 \
  --eval-samples 20
watch plain 4 --pp 2 --dp 2 --zero 0 --schedule gpipe
watch exact 4 --exact --tp 2 --dp 2 --dtype bf16 --eval-interval 2 --eval-samples 20
