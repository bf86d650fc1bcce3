#!/usr/bin/env bash
# labels: cases
# NVIDIA/Megatron-LM #963: new learning-rate limits are accepted at a resume, then the checkpoint's come back. The
# kind: which side wins at a resume. Here the flags do, and a line says so.
. "$(dirname "$0")/common.sh"
run straight 1 --lr-schedule cosine --lr 3e-4 --min-lr 3e-5 --steps 6 --save-interval 3
again() { # again NAME FLAGS...
  cp -r straight "$1"
  rm -r "$1/checkpoints/step-00000006"
  run "$1" 1 --lr-schedule cosine --steps 6 --save-interval 3 --resume "$1/checkpoints/step-00000003" "${@:2}"
  steps_once "$1" 6
}
again same --lr 3e-4 --min-lr 3e-5
! grep -q "changed since" same.log || fail "a resume that changes nothing says that it does"
same_metrics straight same
same_checkpoints straight same 6

again lower --lr 1e-5 --min-lr 1e-6
said=lower.log
change="changed since the checkpoint: optim.lr 0.0003 -> 1e-05, optim.min_lr 3e-05 -> 1e-06"
[ "$(grep -c "^changed since" lower.log)" = 1 ] && grep -q "^$change$" lower.log ||
  fail "the change is not said in one line"
same_metrics straight lower 1 3
run whole-curve 1 --lr-schedule cosine --lr 1e-5 --min-lr 1e-6 --steps 6
[ "$(values lower lr | jq -c '.[3:]')" = "$(values whole-curve lr | jq -c '.[3:]')" ] ||
  fail "steps 4 to 6 are not on the new curve: $(values lower lr)"
[ "$(values lower lr | jq '.[5]')" = "$(jq -n 1e-6)" ] || fail "the last step is not at the new --min-lr"
grep -Eq '^  lr: 1.0e-05 ' lower/config.yaml && grep -Eq '^  min_lr: 1.0e-06 ' lower/config.yaml ||
  fail "config.yaml has other limits"

# The same for every other part of the recipe; what belongs to the weights does not give way.
again other --lr 3e-4 --min-lr 3e-5 --warmup 5 --clip 0.5 --weight-decay 0.2 --lr-schedule linear
for change in "warmup 0 -> 5" "lr_schedule cosine -> linear" "weight_decay 0 -> 0.2" "clip 1 -> 0.5"; do
  grep -q "^changed since .*optim.$change" other.log || fail "$change is not said"
done
refused "train.seed = 8, but the checkpoint .* has 7" "$GPT3D" "${model[@]}" --steps 8 --seed 8 --out same
