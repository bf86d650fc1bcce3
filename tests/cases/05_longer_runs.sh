#!/usr/bin/env bash
# labels: cases
# bigscience-workshop/Megatron-DeepSpeed pull request 11 (also NVIDIA/Megatron-LM #1449): a restart dies after a run too
# short to have evaluated. The kind: nothing so far taken for nothing there; a finished run that is made longer.
. "$(dirname "$0")/common.sh"
base=(--val-split 0.1 --resume auto --save-interval 100)
tree() { find run -type f ! -name .lock -exec sha256sum {} + | sort; }

run run 1 --val-split 0.1 --steps 3 --eval-interval 100 --save-interval 100
[ "$(jq -s 'map(select(.val_loss)) | length' run/metrics.jsonl)" = 0 ] || fail "three steps evaluated already"
run run 1 "${base[@]}" --steps 5 --eval-interval 1
steps_once run 5
[ "$(jq -s -c 'map(select(.val_loss) | .step)' run/metrics.jsonl)" = "[4,5]" ] ||
  fail "steps 4 and 5 have no validation loss"
tree > before
run run 1 "${base[@]}" --steps 5 --eval-interval 1
grep -q "already at step 5" run.log || fail "a run that is over does not say so"
tree | cmp -s - before || fail "a run that is over was changed"
run run 1 "${base[@]}" --steps 4 --eval-interval 1
grep -q "is at step 5 > --steps 4" run.log || fail "a run that is past its end does not say so"
tree | cmp -s - before || fail "a run that is past its end was changed"
[ "$(checkpoints run)" = "3 5" ] || fail "it has checkpoints $(checkpoints run)"
