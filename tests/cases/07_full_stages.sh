#!/usr/bin/env bash
# labels: cases
# huggingface/nanotron #108: a split balanced by cost leaves a stage empty when the vocabulary outweighs the layers.
# The kind: balance without a lower bound.
. "$(dirname "$0")/common.sh"
model+=(--width 32 --vocab 50257)

# stages FLAGS...: the layers of each stage that a dry run names, one a line.
stages() {
  want 0 "$GPT3D" "${model[@]}" --dry-run "$@"
  sed -nE 's/^stage [0-9]+ .*layers ([0-9]+)-([0-9]+).*/\1 \2/p' said
}
covered() { # covered LAYERS STAGES: each has one at least, in order, and together they are all
  awk -v layers="$1" -v want="$2" '$1 != next_ || $2 < $1 { exit 1 } { next_ = $2 + 1; n++ }
    END { exit !(n == want && next_ == layers) }' || fail "the stages do not hold each layer once"
}
for tied in true false; do
  stages --pp 4 --tied $tied | covered 4 4
  stages --pp 3 --tied $tied | covered 4 3
  stages --pp 7 --tied $tied --layers 9 | covered 9 7
  run one-$tied 1 --tied $tied --steps 3
  for pp in 2 4; do
    run pp$pp-$tied $pp --pp $pp --tied $tied --steps 3
    near "$(values one-$tied loss)" "$(values pp$pp-$tied loss)" 1e-5
  done
done
run few 2 --layers 2 --pp 2 --steps 2
grep -Eq '^stage 0 .*layers 0-0' few.log && grep -Eq '^stage 1 .*layers 1-1' few.log ||
  fail "two stages share two layers otherwise"
refused "parallel.pp = 4 stages are more than model.layers = 3" \
  mpirun -np 4 "$GPT3D" "${model[@]}" --layers 3 --pp 4 --out never
[ ! -e never ] || fail "a refused run left its folder"
