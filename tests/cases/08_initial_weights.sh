#!/usr/bin/env bash
# labels: cases
# pytorch/pytorch #139304: stages that start from one seed get the same weights. The kind: initial values that depend
# on the rank.
. "$(dirname "$0")/common.sh"
model+=(--lr 0 --steps 1 --global-batch 6 --save-interval 1)

run one 1
alike() { # alike NAME RANKS FLAGS...: the same weights, to the bit; moments are rounded otherwise elsewhere
  run "$@"
  said=said
  "$GPT3D" ckpt diff one "$1" > said 2>&1 || true
  grep -Eq '^(optim/|.*equal|.*no tensor)' said || fail "ckpt diff says nothing known"
  ! grep -q '^model/' said || fail "$1 starts from other weights"
}
alike pp2 2 --pp 2
alike pp4 4 --pp 4
alike tp2 2 --tp 2
alike tp4 4 --tp 4 --sequence-parallel
alike dp3 3 --dp 3
alike all 8 --tp 2 --pp 2 --dp 2 --global-batch 6

# Within a checkpoint nothing repeats, and another seed changes everything that is random.
run seed8 1 --seed 8
said=said
/usr/bin/python3 "$cases/weights.py" distinct one seed8 > said 2>&1 || fail "weights repeat"
! "$GPT3D" ckpt diff one seed8 > said 2>&1 || fail "another seed gives the same weights"
