#!/usr/bin/env bash
# labels: cases
# NVIDIA/Megatron-LM #62: an empty first document crashes the tokenizing tool. The kind: items of length zero.
. "$(dirname "$0")/common.sh"

# idx NAME LENGTHS...: tokens of two bytes, k mod 251, in sequences of these lengths, one a document.
idx() {
  /usr/bin/python3 - "$@" << 'EOF'
import struct, sys
name, lengths = sys.argv[1], [int(x) for x in sys.argv[2:]]
n, offsets = len(lengths), [2 * sum(lengths[:i]) for i in range(len(lengths))]
with open(name + ".idx", "wb") as f:
    f.write(struct.pack("<9sQBQQ", b"MMIDIDX\0\0", 1, 8, n, n + 1))
    f.write(struct.pack(f"<{n}i{n}q{n + 1}q", *lengths, *offsets, *range(n + 1)))
with open(name + ".bin", "wb") as f:
    f.write(struct.pack(f"<{sum(lengths)}H", *(k % 251 for k in range(sum(lengths)))))
EOF
}
train=(--seq 16 --global-batch 2 --steps 6)

idx whole 40 50
idx holes 0 40 0 0 0 50 0
idx more-holes 0 0 0 0 40 50 0 0
run whole 1 "${train[@]}" --data whole.bin
[ "$(values whole loss | jq length)" = 6 ] || fail "six steps were wanted"
for name in holes more-holes; do
  run "run-$name" 1 "${train[@]}" --data "$name.bin"
  [ "$(values whole loss)" = "$(values "run-$name" loss)" ] || fail "$name gives other losses"
done

idx nothing 0 0 0
refused "no tokens" "$GPT3D" "${model[@]}" "${train[@]}" --data nothing.bin --out nothing
[ ! -e nothing ] || fail "a refused run left its folder"
idx without-a-sequence
refused "no tokens" "$GPT3D" "${model[@]}" "${train[@]}" --data without-a-sequence.bin --out nothing

# The tool itself: empty lines first, and a text without a byte.
printf '\n\n\nfirst\n\n' > lines
cat text >> lines
want 0 "$GPT3D" tokenize --tokenizer byte --input lines --output lines-pair
cmp lines lines-pair.bin || fail "the tokens are not the text's bytes"
run run-lines 1 "${train[@]}" --data lines-pair.bin
: > empty
refused "empty" "$GPT3D" tokenize --tokenizer byte --input empty --output empty-pair
[ ! -e empty-pair.bin ] && [ ! -e empty-pair.idx ] || fail "a refused text left a pair"
