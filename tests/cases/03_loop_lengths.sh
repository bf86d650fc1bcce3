#!/usr/bin/env bash
# labels: cases
# pytorch/torchtitan #1618 (also karpathy/llm.c #727): data ranks get different numbers of validation batches, and a
# collective waits for ever. The kind: a loop's length decided by each rank.
. "$(dirname "$0")/common.sh"
run trained 1 --steps 2 --save-interval 2
head -c 161 text > windows

evaluate() { # evaluate RANKS FLAGS...
  through "$1"
  want 0 timeout 30 "${through[@]}" "$GPT3D" eval --resume trained --data windows --json --threads 1 "${@:2}"
}
evaluate 1 --micro-batch 2 --global-batch 8
reference=$(jq -s -c 'map(.loss)' said)
for layout in "4 --dp 4" "4 --dp 2 --pp 2" "4 --tp 4" "3 --dp 3 --global-batch 6"; do
  # shellcheck disable=SC2086
  evaluate ${layout%% *} --micro-batch 2 --global-batch 8 ${layout#* }
  near "$reference" "$(jq -s -c 'map(.loss)' said)" 1e-6
  [ "$(jq .tokens said)" = 160 ] || fail "$layout counts $(jq .tokens said) tokens instead of 160"
done

# Five validation windows for four data ranks, and one for four.
for split in 0.004 0.0009; do
  run "split$split" 4 --dp 4 --val-split $split --eval-interval 3 --steps 7
  [ "$(jq -s -c 'map(select(.val_loss) | .step)' "split$split/metrics.jsonl")" = "[3,6]" ] ||
    fail "validation losses stand at other steps than 3 and 6"
  run "one$split" 1 --val-split $split --eval-interval 3 --steps 7
  near "$(jq -s -c 'map(.val_loss // empty)' "one$split/metrics.jsonl")" \
    "$(jq -s -c 'map(.val_loss // empty)' "split$split/metrics.jsonl")" 1e-5
done

# One window of training data for four ranks, again and again; and one byte too little.
head -c 33 text > bytes33
run one-window 4 --dp 4 --data bytes33 --steps 3
steps_once one-window 3
head -c 32 text > bytes32
refused "too little data: 32 tokens.* 32 \+ 1" mpirun -np 4 "$GPT3D" "${model[@]}" --dp 4 --data bytes32 --out never
[ ! -e never ] || fail "a refused run left its folder"
