#!/usr/bin/env bash
# labels: equal
# --exact: every layout gives the same losses, gradient norms and weights, bit by bit, for any number of threads.
# With G3_ALL set: every layout that there is room for, else a sample.
. "$G3_SOURCE/tests/cli/common.sh"

export OMP_WAIT_POLICY=passive # with more threads than cores, those that wait let the others run

# trains NAME RANKS FLAGS...: 20 steps with dropout, checkpoints after 10 and 20.
common=(--dropout 0.1 --warmup 10 --val-split 0.1 --eval-interval 10 --eval-samples 5)
trains() { run "$@" "${common[@]}" --exact --save-interval 10; }

# equals ONE RANKS FLAGS...: such a run is the run ONE.
runs=0
equals() {
  trains other "${@:2}"
  same_metrics "$1" other
  same_checkpoints "$1" other 20
  rm -rf other
  runs=$((runs + 1))
}

kinds=("--dtype f32" "--dtype bf16 --tied false" "--dtype bf16" "--dtype f32 --tied false")
sample() { # KIND: layouts for it, "RANKS FLAGS"
  case $1 in
    0) cat << 'LAYOUTS' ;;
1 --threads 2
2 --tp 2 --threads 2
4 --tp 4 --sequence-parallel
2 --pp 2
2 --dp 2 --zero 0
4 --dp 4 --bucket-elements 1000
8 --tp 2 --pp 2 --dp 2 --schedule gpipe
16 --tp 2 --pp 2 --dp 4 --sequence-parallel
LAYOUTS
    1) cat << 'LAYOUTS' ;;
1 --threads 2
4 --tp 4
4 --tp 2 --pp 2 --sequence-parallel
4 --pp 2 --dp 2 --zero 0
8 --tp 4 --dp 2 --sequence-parallel
LAYOUTS
    2) echo "8 --tp 2 --pp 2 --dp 2 --sequence-parallel" ;;
    3) echo "8 --tp 2 --pp 2 --dp 2 --zero 0" ;;
  esac
}
all() {
  local tp pp dp sp zero threads
  for tp in 1 2 4; do for pp in 1 2; do for dp in 1 2 4; do
    for sp in "" --sequence-parallel; do [ "$tp$sp" != 1--sequence-parallel ] || continue
      for zero in 0 1; do [ "$dp$zero" != 10 ] || continue
        for threads in 1 2; do
          echo "$((tp * pp * dp)) --tp $tp --pp $pp --dp $dp $sp --zero $zero --threads $threads"
        done
        echo "$((tp * pp * dp)) --tp $tp --pp $pp --dp $dp $sp --zero $zero --schedule gpipe --micro-batch 1"
      done
    done
  done; done; done
}

for kind in "${!kinds[@]}"; do
  read -r -a flags <<< "${kinds[kind]}"
  trains "one$kind" 1 "${flags[@]}"
  while read -r -a layout; do
    equals "one$kind" "${layout[@]}" "${flags[@]}"
  done < <(if [ -n "${G3_ALL:-}" ]; then all; else sample "$kind"; fi)
done
echo "exact: $runs runs in other layouts are the one-rank runs, bit by bit"

# It is the same training as without --exact, but for rounding.
run fast 1 "${common[@]}"
/usr/bin/python3 "$G3_SOURCE/tests/equal/compare.py" fast one0 1e-6 1e-4

# A run that was stopped goes on with the same bits in another layout, and again in another.
for layout in "4 --tp 2 --dp 2" "4 --tp 4 --sequence-parallel" "8 --tp 2 --pp 2 --dp 2 --zero 0"; do
  read -r -a more <<< "$layout"
  trains resumed "${more[@]}" --resume one0/checkpoints/step-00000010
  same_metrics one0 resumed 11 20
  same_checkpoints one0 resumed 20
  rm -rf resumed
  echo "exact: resumed with $layout"
done

# Only what can run is begun, and the words say what would do.
model+=(--exact)
refuses() { # PATTERN FLAGS...
  want 2 "$GPT3D" "${model[@]}" --dry-run "${@:2}"
  says "$1"
}
refuses "parallel.exact_chunks = 6 must be a power of two.*use 4 or 8" --exact-chunks 6
refuses "train.global_batch = 12 must be a power of two.*use 8 or 16" --global-batch 12
refuses "parallel.tp = 4 must divide parallel.exact_chunks = 2; use 1 or 2" --tp 4 --exact-chunks 2
refuses "exact_chunks = 8 must divide model.seq = 36; use a power of two that divides 4" --seq 36
refuses "train.exact is the cpu backend's alone" --device cuda
want 0 "$GPT3D" "${model[@]}" --dry-run --micro-batch 4
says "micro-batch 1 x 16"
says "^exact .*8 blocks.*one sample at a time"
echo "exact: what cannot run is refused"
