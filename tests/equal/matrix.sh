#!/usr/bin/env bash
# labels: equal
# Layouts and options together train as one rank does: loss and gradient norm within 1e-6 on step 1, growing to 1e-4 on
# step 5. Five layers and 257 ids, which no layout divides. With "all" the whole matrix instead of the sample.
. "$(dirname "$0")/common.sh"

# The learning rate rises by 1e-4 a step: without a warm-up AdamW makes much of what is only rounding.
model+=(--global-batch 32 --steps 5 --warmup 5 --lr 5e-4 --min-lr 5e-5)
for dropout in 0 0.1; do run "one-$dropout" 1 --dropout $dropout --micro-batch 1; done

runs=0
while read -r ranks flags; do
  # shellcheck disable=SC2086
  run many "$ranks" $flags --overwrite
  dropout=${flags#*--dropout }
  /usr/bin/python3 "$G3_SOURCE/tests/equal/compare.py" "one-${dropout%% *}" many 1e-6 1e-4 > compared 2>&1 || {
    echo "FAILED: $flags"
    cat compared
    exit 1
  }
  echo "$(cut -c 40- compared) $flags"
  rm -r many
  runs=$((runs + 1))
done < <(/usr/bin/python3 "$G3_SOURCE/tests/equal/pairs.py" "$@")
[ $runs -ge 27 ] || { echo "FAILED: $runs runs are less than the layouts" && exit 1; }
echo "$runs runs train as one rank does"
