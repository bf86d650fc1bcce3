#!/usr/bin/env bash
# labels: cli
# Every file of configs/ says with --dry-run what its source published: parameters, and its layout.
. "$G3_SOURCE/tests/cli/common.sh"

# FILE TP PP PARAMETERS: exactly, or in billions to 1 % and the rounding of what was printed.
# GPT-2: Radford et al., 2019, as its released weights count (with the context given in the file);
# GPT-3: Brown et al., 2020, table 2.1; Megatron: Narayanan et al., SC'21, table 1.
files=0
while read -r file tp pp published; do
  said=$file.log
  begin=$(date +%s%N)
  "$GPT3D" --config "$G3_SOURCE/configs/$file.yaml" --dry-run > "$said" 2>&1 || fail "$file"
  ms=$((($(date +%s%N) - begin) / 1000000))
  count=$(sed -nE 's/.* parameters \(([0-9,]+)\).*/\1/p' "$said" | tr -d ,)
  awk -v n="$count" -v p="$published" 'BEGIN {
    if (p !~ /B$/) exit n != p
    sub("B", "", p)
    digits = index(p, ".") ? length(p) - index(p, ".") : 0
    off = n / 1e9 - p
    if (off < 0) off = -off
    exit off > 0.01 * p && off > 0.5 / 10 ^ digits
  }' || fail "$file has $count parameters, published: $published"
  grep -q "^layout   tp $tp x pp $pp x dp " "$said" || fail "$file is not laid out as tp $tp x pp $pp"
  [ "$(grep -c "^stage " "$said")" = "$pp" ] || fail "$file shows other than $pp stages"
  [ "$(grep -c "^memory   a rank of stage" "$said")" = "$pp" ] || fail "$file lacks memory of stages"
  printf '%-16s %17s parameters  %s  %d ms\n' "$file" "$count" "$published" "$ms"
  files=$((files + 1))
done << 'FILES'
tiny 1 1 842496
gpt2-124m 1 1 124439808
gpt2-350m 1 1 354823168
gpt2-1.5b 1 1 1557611200
gpt3-6.7b 4 1 6.7B
gpt3-175b 8 16 175.0B
megatron-1.7b 1 1 1.7B
megatron-3.6b 2 1 3.6B
megatron-7.5b 4 1 7.5B
megatron-18.4b 8 1 18.4B
megatron-39.1b 8 2 39.1B
megatron-76.1b 8 4 76.1B
megatron-145.6b 8 8 145.6B
megatron-310.1b 8 16 310.1B
megatron-529.6b 8 35 529.6B
megatron-1008b 8 64 1008.0B
FILES
there=("$G3_SOURCE"/configs/*.yaml)
[ "$files" = ${#there[@]} ] || fail "$files files were looked at, configs/ has ${#there[@]}"

# A layout given on the command line, without MPI; and what it cannot be.
said=given.log
"$GPT3D" --config "$G3_SOURCE/configs/gpt3-175b.yaml" --tp 8 --pp 8 --dp 16 --dry-run > "$said" 2>&1 ||
  fail "gpt3-175b on 8 x 8 x 16"
grep -q "= 1024 ranks" "$said" || fail "tp 8 x pp 8 x dp 16 is not 1024 ranks"
grep -Eq "^batch    1536 samples = micro-batch [0-9]+ x [0-9]+ micro-batches x dp 16; x seq 2048 = 3,145,728" \
  "$said" || fail "the batch's factors are not shown"
got=0
"$GPT3D" --config "$G3_SOURCE/configs/gpt3-175b.yaml" --tp 7 --dry-run > "$said" 2>&1 || got=$?
[ "$got" = 2 ] && grep -q "parallel.tp = 7 does not divide model.heads = 96" "$said" ||
  fail "--tp 7 was not refused"
[ ! -e runs ] || fail "--dry-run made a run directory"
