#!/usr/bin/env bash
# labels: equal
# gpt3d verify agrees with layouts that are right, and finds each of eight faults by parameter and axis.
. "$(dirname "$0")/common.sh"

small=(--layers 4 --width 64 --heads 4 --seq 32 --vocab 257 --data text --global-batch 8 --micro-batch 1)

verify() { # RANKS FLAGS...
  local ranks=$1
  shift
  mpirun -np "$ranks" "$GPT3D" verify "${small[@]}" "$@" < /dev/null > said 2>&1
}
good() {
  verify "$@" && grep -q "^verified" said || {
    echo "FAILED: verify $* of a layout that is right"
    cat said
    exit 1
  }
  echo "ok: $*"
}
good 8 --tp 2 --pp 2 --dp 2
good 8 --tp 4 --pp 2 --sequence-parallel --dropout 0.1 --steps 2
good 4 --tp 2 --pp 2 --dtype bf16 --tied false
good 8 --tp 2 --pp 2 --dp 2 --shrink --config "$G3_SOURCE/configs/gpt2-124m.yaml" --vocab 50257 --seq 1024 \
  --layers 12 --width 768 --heads 12 --global-batch 64 --dtype f32

# An instrument must be seen to fail.
finds() { # FAULT PATTERN RANKS FLAGS...
  local fault=$1 pattern=$2 code=0
  shift 2
  GPT3D=$GPT3D_WITH_FAULTS GPT3D_FAULT=$fault verify "$@" || code=$?
  [ $code = 1 ] && grep -q "^NOT VERIFIED" said && grep -Eq "$pattern" said || {
    echo "FAILED: verify $* missed the fault $fault (exit $code), wanted: $pattern"
    cat said
    exit 1
  }
  printf '%-22s %s\n' "$fault" "$(grep -Em1 "$pattern" said)"
}
export GPT3D_FAULT
four=(4 --tp 2 --pp 1 --dp 2)
finds norm-not-summed "blocks.*ln1.weight: the sum over tp is missing" 4 --tp 4 --sequence-parallel
finds tied-after-dp "embed.tokens.weight: .*first and last stage \(pp\).*dp" 4 --pp 2 --dp 2
finds micro-batch-unscaled "axis micro-batches" 2 --dp 2
finds norm-counted-twice "gradient norm: .*count 4 times: tp" 8 --tp 4 --pp 2
finds padding-leaks "embed.tokens.weight: .*padding counted; axis tp" "${four[@]}"
finds layer-dropped "blocks.2.*layer 2 is not computed; axis pp, stage 1" 4 --pp 2 --dp 2
finds data-by-rank "data: .*axis dp" "${four[@]}"
finds bias-added-early "attn.proj.bias .*added 4 times: before a sum over tp" 8 --tp 4 --pp 2

# A layout that cannot run.
code=0
verify 4 --tp 4 --heads 2 || code=$?
[ $code = 2 ] && grep -q "does not divide model.heads = 2" said || {
  echo "FAILED: a layout that cannot run was not refused"
  cat said
  exit 1
}
