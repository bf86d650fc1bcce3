#!/usr/bin/env bash
# labels: cli
# gpt3d eval: one loss for a file in any layout, from any form of it; refusals say why.
. "$(dirname "$0")/common.sh"

run trained 2 --dp 2 --steps 6 --warmup 2 --save-interval 3
head -c 1001 text > odd
printf 'ab' > two
printf 'a' > one
: > none

# ranks N: $through starts so many; one needs no launcher.
ranks() {
  through=(mpirun -np "$1")
  [ "$1" -gt 1 ] || through=(env)
}

# evaluates FILE RANKS FLAGS...: the loss goes to $loss, how many tokens to $tokens.
evaluates() {
  ranks "$2"
  want 0 "${through[@]}" "$GPT3D" eval --resume trained --data "$1" --json --threads 1 "${@:3}"
  [ "$(wc -l < said)" = 1 ] || fail "more than one line of JSON"
  loss=$(jq .loss said) tokens=$(jq .tokens said)
  jq -e '(.loss | exp) / .perplexity - 1 | fabs < 1e-12' said > exact || fail "perplexity is not e^loss"
}

close() { # close A B BOUND: relative
  jq -en "($1 / $2 - 1) | fabs <= $3" > exact || fail "$1 and $2 are not within $3"
}

# 1000 targets: 31 windows of 32 and one of 8, in batches that no layout divides evenly.
evaluates odd 1 --global-batch 5 --micro-batch 1
[ "$tokens" = 1000 ] || fail "$tokens tokens instead of 1000"
reference=$loss
same() { # same FILE RANKS FLAGS...: as the reference
  evaluates "$@"
  close "$loss" "$reference" 1e-6
}
same odd 1 --global-batch 32 --micro-batch 32
same odd 2 --tp 2 --sequence-parallel
same odd 3 --dp 3 --global-batch 3 --micro-batch 1
same odd 4 --tp 2 --pp 2 --global-batch 2 --micro-batch 2
same odd 5 --pp 5 --zero 0 --global-batch 8 --micro-batch 1
same odd 8 --tp 2 --pp 2 --dp 2 --global-batch 8
evaluates two 1 && reference=$loss
[ "$tokens" = 1 ] || fail "$tokens tokens instead of 1"
same two 4 --pp 2 --dp 2

# What training says of its validation part, evaluated as a file. 2049 bytes are 64 whole windows.
want 0 mpirun -np 1 "$GPT3D" "${model[@]}" --init trained --out continued --steps 1 --warmup 1 \
  --lr 1e-30 --min-lr 0 --val-split 0.051225 --eval-interval 1
said_loss=$(jq .val_loss continued/metrics.jsonl)
tail -c 2049 text > last
evaluates last 2 --dp 2 --global-batch 16
[ "$tokens" = 2048 ] || fail "$tokens tokens instead of 2048"
close "$loss" "$said_loss" 1e-6

# A pair of token files is the text; an older checkpoint is another model; bf16 is near.
evaluates odd 1 && reference=$loss
"$GPT3D" tokenize --tokenizer byte --input odd --output pair
evaluates pair.bin 1
[ "$loss" = "$reference" ] || fail "the pair gives $loss, the text $reference"
evaluates odd 1 --resume trained/checkpoints/step-00000006
[ "$loss" = "$reference" ] || fail "the newest checkpoint is not the run's"
evaluates odd 1 --resume trained/checkpoints/step-00000003
[ "$loss" != "$reference" ] || fail "step 3 is as step 6"
evaluates odd 2 --tp 2 --dtype bf16
close "$loss" "$reference" 1e-2
[ "$loss" != "$reference" ] || fail "bf16 is f32"
before=$(ls)

# Words for people, and none of them when JSON is wanted.
want 0 "$GPT3D" eval --resume trained --data odd --threads 1
once '^evaluating trained/checkpoints/step-00000006, step 6$'
once '^loss [0-9.]+ nats per token, perplexity [0-9.]+, over 1,000 tokens of odd$'
want 0 "$GPT3D" eval --help
once '^usage: gpt3d eval --resume DIR --data FILE'
once '^ +--micro-batch'

# Refusals: one voice, the right code.
refuse() { # refuse CODE PATTERN RANKS FLAGS...
  ranks "$3"
  want "$1" "${through[@]}" "$GPT3D" eval --threads 1 "${@:4}"
  once 'gpt3d: .*error: '
  once "gpt3d: error: .*$2"
}
refuse 2 'one: too little data: 1 token, but a loss needs 2' 2 --resume trained --data one
refuse 1 'none: no tokens: the file is empty' 1 --resume trained --data none
refuse 1 'nowhere: .*No such file' 1 --resume trained --data nowhere
refuse 2 'auto names no checkpoint; give --resume DIR' 2 --data odd
refuse 2 'none names no checkpoint; give --resume DIR' 1 --resume none --data odd
refuse 2 'nothing: there is no checkpoint' 1 --resume nothing --data odd
refuse 2 '--heads: model.heads = 2, but the checkpoint .* has 4' 1 --resume trained --heads 2
refuse 2 'parallel.tp = 3 does not divide model.heads = 4' 3 --tp 3 --resume trained --data odd
refuse 2 'global_batch = 7 is not train.micro_batch 2' 1 --resume trained --global-batch 7 --data odd
refuse 2 'dry-run evaluates nothing' 1 --resume trained --data odd --dry-run
refuse 2 'unknown flag --resum; did you mean --resume' 1 --resum trained
[ "$(ls)" = "$before" ] || fail "eval left files behind: $(ls)"

# A token that the model does not know, in the share of one rank, far into the file.
want 0 "$GPT3D" ckpt import --format hf "$G3_SOURCE/tests/golden/hf_tiny/tied" --out tiny
{ head -c 900 /dev/zero && printf 'z' && head -c 5000 /dev/zero; } > late
refuse 1 'late: token 900 is id 122, outside a vocabulary of 61' 2 --dp 2 --resume tiny --data late
