#!/usr/bin/env bash
# labels: cli
# What --dry-run says is what a run allocates, to the byte; the process grows by little more, and
# not at all from step 5 to 50.
. "$G3_SOURCE/tests/cli/common.sh"

# classes KIND FILE: the bytes by class of each stage, once, as "STAGE: CLASS BYTES, ...".
classes() {
  sed -nE "s/^debug: $1.* stage ([0-9]+)(, resident grew by [0-9]+)?: (.*)$/\1: \3/p" "$2" | sort -u
}

# tp pp dp flags
layouts=0
while read -r tp pp dp flags; do
  ranks=$((tp * pp * dp))
  read -r -a more <<< "$flags"
  layout=(--tp "$tp" --pp "$pp" --dp "$dp" ${more[@]+"${more[@]}"})
  said=dry.log
  "$GPT3D" "${model[@]}" "${layout[@]}" --dry-run --debug > dry.log || fail "--dry-run ${layout[*]}"
  name=$tp-$pp-$dp$(tr -d ' -' <<< "$flags")
  run "$name" "$ranks" "${layout[@]}" --steps 1 --warmup 1 --debug
  classes planned dry.log > planned
  classes allocated "$name.log" > allocated
  [ "$(wc -l < planned)" = "$pp" ] || fail "--dry-run ${layout[*]} does not speak of $pp stages"
  [ "$(grep -c "^debug: allocated on rank" "$name.log")" = "$ranks" ] || fail "$name lacks ranks"
  diff planned allocated || fail "$name allocated other sizes than planned"
  layouts=$((layouts + 1))
done << 'LAYOUTS'
1 1 1
1 1 1 --dtype bf16 --dropout 0.1
2 1 1 --tied false
4 1 1 --dtype bf16 --sequence-parallel
1 4 1 --schedule gpipe
1 3 2 --global-batch 12 --zero 0
1 1 4 --dtype bf16
2 2 1 --sequence-parallel
2 2 2 --dtype bf16 --zero 0
2 2 4 --dtype bf16 --sequence-parallel --tied false
1 1 1 --exact --global-batch 16 --dropout 0.1
2 2 2 --exact --global-batch 16 --dtype bf16 --sequence-parallel
LAYOUTS
echo "memory: $layouts layouts allocated what was planned, to the byte"

# What the kernel sees of a model that is large enough for it to matter.
grows --layers 8 --width 512 --heads 8 --vocab 8192 --seq 256

# Resident memory of each rank, in KiB, at step 5 and at step 50 of a run that does not end.
resident() { for pid in "${ranks[@]}"; do awk '/^VmRSS/ { print $2 }' "/proc/$pid/status"; done; }
for n in 1 4; do
  start "flat$n" "$n" --tp "$n" --dtype bf16
  wait_for_step "flat$n" 5
  ranks_of_job "$n"
  resident > early
  wait_for_step "flat$n" 50
  resident > late
  kill -USR1 "$job"
  ended "flat$n" 3
  paste early late | awk -v n="$n" '
    { grown = $2 - $1; if (grown > most || NR == 1) most = grown }
    END { printf "memory: %d ranks grew by at most %d KiB from step 5 to 50\n", n, most
          exit NR != n || most > 1024 }' || fail "resident memory is not flat"
done
