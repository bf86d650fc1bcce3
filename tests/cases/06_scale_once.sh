#!/usr/bin/env bash
# labels: cases
# deepspeedai/DeepSpeed #8152 (also karpathy/nanoGPT #168): each stage divides by the number of micro-batches again;
# Adam hides it, clipping does not. The kind: a scale applied at every hop.
. "$(dirname "$0")/common.sh"
for clip in 0 0.05; do
  one=pp1-micro1-clip$clip
  for pp in 1 2 4; do
    for micro in 1 2 8; do
      name=pp$pp-micro$micro-clip$clip
      run "$name" $pp --pp $pp --micro-batch $micro --steps 2 --save-interval 2 --clip $clip
      near "$(values $one grad_norm | jq -c '.[:1]')" "$(values "$name" grad_norm | jq -c '.[:1]')" 1e-5
      near "$(values $one loss)" "$(values "$name" loss)" 1e-5
      said=near.log
      /usr/bin/python3 "$cases/weights.py" near $one "$name" 1e-5 > near.log 2>&1 ||
        fail "$name has other weights"
    done
  done
done
jq -e -n --argjson n "$(values pp1-micro1-clip0 grad_norm)" '$n[0] > 0.5' > /dev/null ||
  fail "the norm is too small to be clipped"
want 0 mpirun -np 4 "$GPT3D" verify "${model[@]}" --pp 4
says "^verified"
