#!/usr/bin/env bash
# labels: cli bench slow
# Time from launch to the end of step 1: 16 ranks, the tiny model. The target is under 2 s on an
# idle machine; prints it, and fails at five times that.
. "$G3_SOURCE/tests/cli/common.sh"

# As long as the default text, so that the evaluation before step 1 is as long.
awk 'BEGIN { for (i = 0; i < 4404412; i++) printf "%c", 32 + (i * i + 7 * int(i / 11)) % 90 }' > long

for layout in "--tp 2 --pp 2" "--dp 16" "--pp 4"; do
  best=
  for try in 1 2 3; do
    read -r -a flags <<< "$layout"
    said=start.log
    rm -rf start
    begin=$(date +%s%N)
    mpirun -np 16 "$GPT3D" --data long --out start "${flags[@]}" --steps 1 --save-interval 0 \
      < /dev/null > "$said" 2>&1 || fail "training $layout"
    # Written at the end of step 1; nothing is written after it.
    end=$(date +%s%N -r start/metrics.jsonl)
    ms=$(((end - begin) / 1000000))
    [ -n "$best" ] && [ "$best" -le "$ms" ] || best=$ms
    echo "16 ranks $layout, try $try: $ms ms from launch to the end of step 1"
  done
  awk -v ms="$best" -v what="$layout" 'BEGIN {
    printf "startup 16 ranks %s: best %.2f s, target 2 s: %s\n", what, ms / 1000,
      ms < 2000 ? "met" : "missed"
    exit ms > 10000 }' || fail "a start took $best ms"
done
