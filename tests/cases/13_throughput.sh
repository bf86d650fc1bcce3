#!/usr/bin/env bash
# labels: cases
# EleutherAI/gpt-neox #1093 (also deepspeedai/DeepSpeed #2498 and #407): the vocabulary's term lacks the common factor;
# tokens per second forget accumulation or the log interval. The kind: formulas of throughput.
. "$(dirname "$0")/common.sh"
model+=(--layers 2 --seq 64 --vocab 50257 --steps 6)

# Operations of a token, forward and backward: 6 x (12 layers width^2 + width vocabulary), and attention's scores and
# sums, 12 layers width seq (half of it when the causal mask is counted).
trial() { # trial NAME RANKS FLAGS...
  run "$@"
  jq -s -e --argjson ranks "$2" --argjson least "$(jq -n '6 * (12*2*64*64 + 64*50257)')" '
    length == 6 and all(.[]; (.tflops * 1e12 * .step_s * $ranks / 512) as $flops
      | $flops >= $least * 0.98 and $flops <= ($least + 12*2*64*64) * 1.02
        and ((.tok_s * .step_s / 512 - 1) | fabs) < 1e-9 and .tokens == .step * 512)' "$1/metrics.jsonl" > /dev/null ||
    fail "$1: $(head -n 1 "$1/metrics.jsonl")"
}
trial tied 1
trial untied 1 --tied false
trial tp 2 --tp 2
trial pp 2 --pp 2
trial micro 1 --micro-batch 4
trial every-step 1 --log-interval 1
trial every-fifth 1 --log-interval 5
trial evaluating 1 --val-split 0.1 --eval-interval 2
said=every-step.log
[ "$(grep -c '^step [1-6]/6 ' every-step.log)" = 6 ] || fail "not six lines for six steps"
