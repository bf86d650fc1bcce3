#!/usr/bin/env bash
# labels: equal
# Every layout trains as one rank does: loss and gradient norm within 1e-6 on step 1, 1e-4 on step 20.
. "$(dirname "$0")/common.sh"

compare() { /usr/bin/python3 "$G3_SOURCE/tests/equal/compare.py" "$@"; }

run one 1 --pp 1
# tp pp dp flags
while read -r tp pp dp flags; do
  name=$tp-$pp-$dp$(echo "$flags" | tr -d ' -')
  # shellcheck disable=SC2086
  run "$name" $((tp * pp * dp)) --tp "$tp" --pp "$pp" --dp "$dp" $flags
  compare one "$name" 1e-6 1e-4
done <<'LAYOUTS'
2 1 1
2 1 1 --sequence-parallel
4 1 1
4 1 1 --sequence-parallel
1 2 1
1 2 1 --schedule gpipe
1 4 1
1 1 4 --zero 1
1 1 4 --zero 0
2 2 1
2 2 1 --sequence-parallel
2 1 2 --zero 1
2 1 2 --zero 0
2 1 2 --zero 1 --sequence-parallel
2 1 2 --zero 0 --sequence-parallel
1 2 2 --zero 1
1 2 2 --zero 0
2 2 4 --zero 1
2 2 4 --zero 0
2 2 4 --zero 1 --sequence-parallel
2 2 4 --zero 0 --sequence-parallel
LAYOUTS

# Dropout masks belong to samples and positions, not to ranks.
run one-dropout 1 --dropout 0.1
run many-dropout 8 --dropout 0.1 --tp 2 --pp 2 --dp 2 --sequence-parallel
compare one-dropout many-dropout 1e-6 1e-4

# A pipeline alone changes no bit: untied embeddings, equal micro-batches, one thread.
run one-untied 1 --tied false
for flags in "--pp 2" "--pp 4" "--pp 4 --schedule gpipe"; do
  name=untied$(echo "$flags" | tr -d ' -')
  # shellcheck disable=SC2086
  run "$name" "$(echo "$flags" | tr -dc 0-9)" --tied false $flags
  compare one-untied "$name" 0 0
done
