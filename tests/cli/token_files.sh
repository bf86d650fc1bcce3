#!/usr/bin/env bash
# labels: cli
# Tokenized text trains as the text does; empty documents anywhere change nothing.
. "$G3_SOURCE/tests/equal/common.sh"

losses() { jq -c '[.step, .loss, .grad_norm]' "$1/metrics.jsonl"; }

same() { # NAME NAME
  { [ "$(losses "$1" | wc -l)" -eq 6 ] && cmp <(losses "$1") <(losses "$2"); } || {
    echo "FAILED: $1 and $2 do not have the same six losses"
    exit 1
  }
}

short=(--steps 6 --warmup 2 --global-batch 2 --micro-batch 2 --seq 16 --layers 1)

# Lines of many lengths, empty ones at the beginning, in the middle and at the end.
tr 'AB' '\n\n' < text > lines
printf '\n\n%s\n\n' "$(cat lines)" > lines.txt
"$GPT3D" tokenize --tokenizer byte --input lines.txt --output pair
cmp lines.txt pair.bin
run as-text 1 "${short[@]}" --data lines.txt
run as-pair 1 "${short[@]}" --data pair.bin
run by-idx 2 "${short[@]}" --data pair.idx --tp 2
same as-text as-pair
[ "$(losses by-idx | wc -l)" -eq 6 ]

# idx NAME CODE LENGTHS...: 90 u16 tokens, k mod 251, in sequences of these lengths, one a document.
idx() {
  python3 - "$@" << 'EOF'
import struct, sys
name, code, lengths = sys.argv[1], int(sys.argv[2]), [int(x) for x in sys.argv[3:]]
n, offsets = len(lengths), [2 * sum(lengths[:i]) for i in range(len(lengths))]
with open(name + ".idx", "wb") as f:
    f.write(struct.pack("<9sQBQQ", b"MMIDIDX\0\0", 1, code, n, n + 1))
    f.write(struct.pack(f"<{n}i{n}q{n + 1}q", *lengths, *offsets, *range(n + 1)))
with open(name + ".bin", "wb") as f:
    f.write(struct.pack("<90H", *(k % 251 for k in range(90))))
EOF
}
idx plain 8 40 50
idx holes 8 0 40 0 0 0 50 0
run plain 1 "${short[@]}" --data plain.bin
run holes 1 "${short[@]}" --data holes.bin
same plain holes

idx nothing 8 0 0 0
code=0
mpirun -np 2 "$GPT3D" "${model[@]}" "${short[@]}" --dp 2 --global-batch 4 --data nothing.bin \
  --out new > out 2>&1 || code=$?
{ [ "$code" -eq 1 ] && grep -q "nothing.idx: no tokens" out && [ ! -e new ]; } || {
  echo "FAILED: exit $code with"
  cat out
  exit 1
}
