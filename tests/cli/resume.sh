#!/usr/bin/env bash
# labels: cli
# A run that was stopped and went on cannot be told from one that never stopped.
. "$G3_SOURCE/tests/cli/common.sh"

layout=(--tp 2 --pp 2 --dp 2 --sequence-parallel)
training=(--steps 8 --warmup 4 --dropout 0.1 --val-split 0.05 --eval-interval 3 --save-interval 2)

for dtype in f32 bf16; do
  run "$dtype" 8 "${layout[@]}" "${training[@]}" --dtype "$dtype"
  steps_once "$dtype" 8
  [ "$(grep -c val_loss "$dtype/metrics.jsonl")" = 2 ] || fail "$dtype evaluated not twice"
  [ "$(checkpoints "$dtype")" = "2 4 6 8" ] || fail "$dtype has checkpoints $(checkpoints "$dtype")"

  # It died while it wrote its last checkpoint, and while it wrote a line.
  cp -r "$dtype" "$dtype-resumed"
  mv "$dtype-resumed/checkpoints/step-00000008"{,.tmp}
  rm "$dtype-resumed/checkpoints/step-00000008.tmp/index.h5"
  printf '{"step":9,"loss":' >> "$dtype-resumed/metrics.jsonl"
  run "$dtype-resumed" 8 "${layout[@]}" "${training[@]}" --dtype "$dtype"
  grep -q "resuming from .*step-00000006, step 6" "$dtype-resumed.log" ||
    fail "$dtype-resumed did not go on from step 6"
  steps_once "$dtype-resumed" 8
  same_metrics "$dtype" "$dtype-resumed"
  same_checkpoints "$dtype" "$dtype-resumed" 8
done

# The same seen from another layout: the same numbers up to rounding.
cp -r f32 elsewhere
rm -r elsewhere/checkpoints/step-00000008
run elsewhere 1 "${training[@]}"
steps_once elsewhere 8
same_metrics f32 elsewhere 1 6
/usr/bin/python3 "$G3_SOURCE/tests/equal/compare.py" f32 elsewhere 1e-6 1e-4

# From f32 to bf16 and back: the moments are f32 either way.
cp -r f32 narrowed
run narrowed 8 "${layout[@]}" "${training[@]}" --steps 9 --dtype bf16
steps_once narrowed 9
cp -r bf16 widened
run widened 2 --dp 2 "${training[@]}" --steps 9
steps_once widened 9

# Nothing left to do: nothing is touched.
find f32 -type f -exec sha256sum {} + | sort > before
said=f32.log
run f32 8 "${layout[@]}" "${training[@]}"
grep -q "already at step 8" f32.log || fail "a run that is over did not say so"
find f32 -type f -exec sha256sum {} + | sort | cmp -s - before || fail "a run that is over was changed"

# More steps, and the model's flags left out: it comes from the checkpoint.
cp -r f32 longer
said=longer.log
mpirun -np 2 "$GPT3D" --resume longer --out longer --dp 2 --data text --global-batch 16 --steps 10 \
  --val-split 0 --eval-interval 0 --threads 1 < /dev/null > longer.log 2>&1 ||
  fail "resuming without the model's flags"
grep -q "5 layers, 4 heads, width 64, ffn 256, seq 32, vocab 257" longer.log ||
  fail "the model did not come from the checkpoint"
steps_once longer 10
same_metrics f32 longer 1 8
[ "$(checkpoints longer)" = "2 4 6 8 10" ] || fail "longer has checkpoints $(checkpoints longer)"

# From another run's directory into a new one.
run branch 4 --dp 4 "${training[@]}" --resume f32/checkpoints/step-00000004 --steps 6
[ "$(checkpoints branch)" = 6 ] || fail "branch has checkpoints $(checkpoints branch)"
[ "$(metrics branch | wc -l)" = 2 ] || fail "branch did not take two steps"

# --init: the weights alone, from step 0; with a learning rate of 0 they stay as they are.
run init 2 --tp 2 --init f32 --steps 1 --warmup 0 --save-interval 1 --lr 0 --min-lr 0
grep -q "starting from the weights of .*step-00000008" init.log || fail "init did not say where from"
steps_once init 1
said=init.diff
"$GPT3D" ckpt diff f32/checkpoints/step-00000008 init > init.diff 2>&1 && fail "moments were taken"
grep -q "optim/exp_avg/" init.diff || fail "moments were taken along"
! grep -q "model/" init.diff || fail "the weights of --init changed"

# --overwrite begins anew; --resume none without it is refused, and harms nothing.
said=refused.log
cp -r f32 again
! mpirun -np 2 "$GPT3D" "${model[@]}" --out again --resume none < /dev/null > refused.log 2>&1 ||
  fail "--resume none was not refused"
steps_once again 8
run again 2 --resume none --overwrite --steps 3 --warmup 2 --save-interval 3
steps_once again 3
[ "$(checkpoints again)" = 3 ] || fail "--overwrite left checkpoints $(checkpoints again)"

# --keep, and never.
run kept 2 --dp 2 --steps 7 --warmup 2 --save-interval 2 --keep 2
[ "$(checkpoints kept)" = "6 7" ] || fail "--keep 2 left $(checkpoints kept)"
[ "$(cat kept/checkpoints/latest)" = step-00000007 ] || fail "latest is $(cat kept/checkpoints/latest)"
run never 2 --dp 2 --steps 3 --warmup 2
[ -z "$(checkpoints never)" ] || fail "--save-interval 0 left $(checkpoints never)"
echo "resume: equal as text and bit by bit, f32 and bf16"
