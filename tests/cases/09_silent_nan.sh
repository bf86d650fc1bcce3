#!/usr/bin/env bash
# labels: cases
# deepspeedai/DeepSpeed #8415: in bf16 every update is skipped while the run looks healthy. The kind: numbers that are
# not finite, and nobody says so.
. "$(dirname "$0")/common.sh"
/usr/bin/python3 "$cases/hf_model.py" sane
/usr/bin/python3 "$cases/hf_model.py" sick --nan transformer.h.1.mlp.c_fc.weight
awk 'BEGIN { for (i = 0; i < 200; i++) printf "%c", i % 32 }' > v.txt

refused "h.1.mlp.c_fc.weight.*(not finite|NaN|nan)" "$GPT3D" ckpt import --format hf sick --out sick-ckpt
[ ! -d sick-ckpt/checkpoints ] || fail "a refused import left a checkpoint"
want 0 "$GPT3D" ckpt import --format hf sane --out sane-ckpt

# Bad steps from the third on: each is said, with its place; after four of them the run ends.
train=(--out run --dp 2 --zero 1 --dtype bf16 --data v.txt --global-batch 4 --micro-batch 1 --steps 20 --warmup 0
  --val-split 0 --threads 1)
want 1 mpirun -np 2 "$GPT3D" "${train[@]}" --init sane-ckpt --save-interval 1 --bad-steps 4 --debug-nan 3-20:0:2:1.up
place="rank 1 \(tp 0, dp 1, pp 0\), stage 0, layer 1, tensor up, micro-batch 2"
for step in 3 4 5 6; do
  once "warning: step $step: .*not finite, so the update was skipped"
  once "warning: step $step: first not finite: $place, sample $((4 * step - 2)) "
done
once "error: 4 steps in a row were not finite; the last good checkpoint is untouched"
jq -s -e 'length == 6 and (.[2:] | all(.loss == null and .grad_norm == null and .skipped)) and
  (.[:2] | all(.loss > 0))' run/metrics.jsonl > /dev/null ||
  fail "metrics.jsonl is not JSON, or does not say what was skipped"
[ "$(checkpoints run)" = "1 2" ] && [ "$(cat run/checkpoints/latest)" = step-00000002 ] || fail "bad steps were saved"
want 0 "$GPT3D" ckpt verify run

# The next run goes on from there as if nothing had been.
want 0 mpirun -np 2 "$GPT3D" "${train[@]}"
says "resuming from .*step-00000002"
steps_once run 20

# One bad step among good ones: the run goes on, and is saved when it is good again.
run hiccup 1 --steps 4 --save-interval 1 --debug-nan 2:0:5:0.d_qkv
[ "$(checkpoints hiccup)" = "1 3 4" ] || fail "it saved $(checkpoints hiccup)"
[ "$(jq -s -c 'map(select(.skipped) | .step)' hiccup/metrics.jsonl)" = "[2]" ] || fail "other steps than 2 were skipped"

# A rate beyond all reason.
refused "optim.lr = 1e30|--lr: .*1e30" "$GPT3D" "${model[@]}" --lr 1e30 --out never
