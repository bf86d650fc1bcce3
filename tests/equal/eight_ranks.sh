#!/usr/bin/env bash
# labels: mpi
# One whole job on 8 ranks, short enough for the sanitizers: trains, saves, resumes, evaluates.
. "$(dirname "$0")/common.sh"

job=(--tp 2 --pp 2 --dp 2 --sequence-parallel --dropout 0.1 --val-split 0.1 --eval-interval 2 --save-interval 2
  --warmup 2 --data text)
run job 8 "${job[@]}" --steps 2
run job 8 "${job[@]}" --steps 4
grep -q "resuming from job/checkpoints/step-00000002" job.log
[ "$(jq -s -c 'map(.step)' job/metrics.jsonl)" = "[1,2,3,4]" ]
jq -s -e '.[3].val_loss < .[0].loss' job/metrics.jsonl > /dev/null
