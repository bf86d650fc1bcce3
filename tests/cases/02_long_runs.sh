#!/usr/bin/env bash
# labels: cases
# NVIDIA/Megatron-LM pull request 598: little data and a long run overflow 32-bit counters. The kind: products of
# steps, batch and sequence in narrow integers.
. "$(dirname "$0")/common.sh"
head -c 200 text > little
model+=(--data little --seq 4 --global-batch 1024 --micro-batch 64 --steps 3000000000 --lr-schedule cosine
  --warmup 2500000000 --log-interval 1)

want 0 "$GPT3D" "${model[@]}" --dry-run
once '^run +3,000,000,000 steps = 3,072,000,000,000 samples = 12,288,000,000,000 tokens$'

begin() { # begin FIRST: trains in the background until two steps after FIRST are done
  mpirun -np 1 "$GPT3D" "${model[@]}" --out long --save-interval 1000000000 < /dev/null > long.log 2>&1 &
  job=$! said=long.log
  local start=$SECONDS
  wait_for_step long $(($1 + 1))
  [ $((SECONDS - start)) -le 5 ] || fail "the first step took $((SECONDS - start)) s to come"
  wait_for_step long $(($1 + 3))
  kill -USR1 "$job"
  ended long 3
}
begin 0
first=$(last_step long)
begin "$first"
last=$(last_step long)
[ "$last" -ge $((first + 3)) ] || fail "the resumed run took no three steps"
steps_once long "$last"
[ "$(checkpoints long)" = "$first $last" ] || fail "it has checkpoints $(checkpoints long)"

# The learning rate of step t is 1e-3 t / 2.5e9; the tokens are 4096 t; the time to the end is long, not negative.
jq -e -s 'all(.[]; (.lr / (4e-13 * .step) - 1 | fabs) < 1e-12 and .tokens == 4096 * .step)' long/metrics.jsonl \
  > /dev/null || fail "learning rates or tokens are wrong"
grep -Eq '^step [0-9]+/3000000000 .* ETA [1-9][0-9]*d ' long.log || fail "no time of days to the end"
! grep -q 'ETA -' long.log || fail "a negative time to the end"

# Near the end of what can be counted, and beyond it.
want 0 "$GPT3D" "${model[@]}" --steps 274877906943 --dry-run
once '^run .* = 281,474,976,709,632 samples = 1,125,899,906,838,528 tokens$'
refused "more samples than can be numbered" "$GPT3D" "${model[@]}" --steps 274877906944 --out never
refused "more samples than can be numbered" "$GPT3D" "${model[@]}" --steps 1000000000000000 --dry-run
[ ! -e never ] || fail "a refused run left its folder"
