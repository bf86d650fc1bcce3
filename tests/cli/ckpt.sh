#!/usr/bin/env bash
# labels: cli
# gpt3d ckpt: lists, verifies and compares checkpoints; damage and differences end with 1.
. "$(dirname "$0")/common.sh"

awk 'BEGIN { for (i = 0; i < 2000; i++) printf "%c", 32 + i * i % 90 }' > text
train() {
  local out=$1
  shift
  want 0 "$GPT3D" --data text "${small[@]}" --val-split 0 --eval-interval 0 --out "$out" "$@"
}
train a --steps 4 --save-interval 2
train b --steps 4 --save-interval 4
train c --steps 4 --save-interval 4 --seed 7
train d --steps 4 --save-interval 4 --width 64

want 0 "$GPT3D" ckpt ls a
once '^a/checkpoints/step-00000002  step 2, .* in 1 shard, 8 samples, 84 tensors$'
once '^a/checkpoints/step-00000004  step 4, .* in 1 shard, 16 samples, 84 tensors$'
want 0 "$GPT3D" ckpt ls a/checkpoints
once 'step-00000002'
want 0 "$GPT3D" ckpt ls a/checkpoints/step-00000004
says '^step 4, 16 samples, 4 updates, 1 shard of '
says '^model.width = 32$'
once '^model/embed.tokens.weight +f32 +256 x 32 +1$'
once '^optim/exp_avg_sq/blocks.1.attn.qkv.weight +f32 +3 x 32 x 32 +1$'

want 0 "$GPT3D" ckpt verify a
[ "$(grep -c 'whole: .* read, every hash right' said)" = 2 ] || fail "not both were verified"
want 0 "$GPT3D" ckpt verify b/checkpoints/step-00000004

# The same run is the same to the bit; another seed and another shape are not.
want 0 "$GPT3D" ckpt diff a b
says '^the 84 tensors of a/checkpoints/step-00000004 and b/.* are equal, bit by bit$'
want 1 "$GPT3D" ckpt diff a/checkpoints/step-00000002 a
says '^model/embed.tokens.weight .* elements differ, by at most'
says '^[0-9]+ tensors differ between '
want 1 "$GPT3D" ckpt diff a c
want 1 "$GPT3D" ckpt diff a d
says '^model/embed.tokens.weight +shapes differ$'

# Several ranks write several shards: each tensor in pieces, each piece hashed.
want 0 mpirun -np 4 "$GPT3D" --data text "${small[@]}" --val-split 0 --eval-interval 0 --out many \
  --tp 2 --dp 2 --steps 2 --save-interval 2
want 0 "$GPT3D" ckpt ls many
once '^many/checkpoints/step-00000002  step 2, .* in 4 shards, 8 samples, 84 tensors$'
want 0 "$GPT3D" ckpt ls many/checkpoints/step-00000002
once '^model/blocks.1.mlp.up.weight +f32 +128 x 32 +[2-9]$'
want 0 "$GPT3D" ckpt verify many
once 'whole'

# One flipped byte in the middle of a shard.
shard=a/checkpoints/step-00000002/shard-00000.h5
at=$(($(stat -c %s "$shard") / 2))
byte=$(od -An -tu1 -j "$at" -N 1 "$shard")
printf "\\x$(printf %02x $((byte ^ 16)))" | dd of="$shard" bs=1 seek="$at" conv=notrunc status=none
want 1 "$GPT3D" ckpt verify a
once '^a/checkpoints/step-00000002  damaged: .*shard-00000.h5'
once '^a/checkpoints/step-00000004  whole'
want 1 "$GPT3D" ckpt diff a/checkpoints/step-00000002 b
says 'error: .*shard-00000.h5'

rm b/checkpoints/step-00000004/shard-00000.h5
want 1 "$GPT3D" ckpt ls b
once '^b/checkpoints/step-00000004  not whole: .*shard-00000.h5'
want 1 "$GPT3D" ckpt verify b
once 'damaged: .*shard-00000.h5'
want 1 "$GPT3D" ckpt diff a b

mkdir empty
for command in ls verify; do
  want 1 "$GPT3D" ckpt $command empty
  says 'error: there is no checkpoint in empty'
  want 1 "$GPT3D" ckpt $command nowhere
  says 'error: nowhere is no directory'
done
want 1 "$GPT3D" ckpt diff a empty
says 'error: there is no checkpoint in empty'
want 2 "$GPT3D" ckpt
says 'error: .*wants ls, verify, diff, import or export; found nothing'
want 2 "$GPT3D" ckpt verfy a
says "error: .*unknown command 'verfy'; did you mean verify\?"
want 2 "$GPT3D" ckpt diff a
says 'error: .*wants A B; found 1 of 2'
want 2 "$GPT3D" ckpt ls a b
says 'error: .*stray word "b"'
want 2 "$GPT3D" ckpt ls --all a
says 'error: .*unknown flag --all'
want 0 "$GPT3D" ckpt --help
says '^gpt3d ckpt verify DIR$'
