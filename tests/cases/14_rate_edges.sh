#!/usr/bin/env bash
# labels: cases
# EleutherAI/gpt-neox #1373 (also karpathy/nanoGPT pull request 691, NVIDIA/Megatron-LM #2258): a warm-up that gives
# rate 0 at the first step, so that it changes nothing. The kind: the edges of learning-rate curves.
. "$(dirname "$0")/common.sh"
model+=(--layers 1 --width 16 --heads 2 --steps 8 --min-lr 1e-4 --save-interval 1)
rates() { jq -s -e --argjson warmup "$1" "$2" "$name/metrics.jsonl" > /dev/null || fail "$name: $(values "$name" lr)"; }

run still 1 --lr 0 --min-lr 0 --lr-schedule cosine
for curve in cosine linear wsd constant; do
  for warmup in 0 1 4 8; do
    name=$curve-$warmup
    run "$name" 1 --lr-schedule $curve --warmup $warmup
    rates $warmup 'length == 8 and all(.[]; .lr > 0 and .lr <= 1e-3)'
    rates $warmup '([$warmup, 1] | max) as $peak | .[$peak - 1].lr == 1e-3 and
      all(.[:$peak] | to_entries[]; (.value.lr / (1e-3 * (.key + 1) / $peak) - 1 | fabs) < 1e-12)'
    last=1e-4
    [ $curve != constant ] && [ $warmup != 8 ] || last=1e-3
    rates $warmup ".[7].lr == $last"
    said=said
    ! "$GPT3D" ckpt diff "$name/checkpoints/step-00000001" still/checkpoints/step-00000001 > said 2>&1 ||
      fail "$name: the first step changes nothing"
    grep -q '^model/' said || fail "$name: the first step changes no weight"
    [ "$warmup" -le 1 ] || [ $curve = constant ] || [ "$(values "$name" lr | jq 'index(1e-3)')" = $((warmup - 1)) ] ||
      fail "$name reaches its peak at another step"
  done
  refused "optim.warmup = 20 is more than train.steps = 8" \
    "$GPT3D" "${model[@]}" --lr-schedule $curve --warmup 20 --out never
done
[ ! -e never ] || fail "a refused run left its folder"

name=one-step
run one-step 1 --steps 1 --warmup 1 --lr-schedule cosine
rates 1 'length == 1 and .[0].lr == 1e-3'
name=still
rates 0 'all(.[]; .lr == 0)'
said=said
"$GPT3D" ckpt diff still/checkpoints/step-00000001 still/checkpoints/step-00000008 > said 2>&1 || true
! grep -q '^model/' said || fail "a rate of 0 changes weights"
