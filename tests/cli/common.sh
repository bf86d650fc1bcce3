# What the scripts of this folder share, beside what those of equal/ do.
. "$G3_SOURCE/tests/equal/common.sh"

# fail WORDS...: shows what the last program said, and ends the test.
fail() {
  echo "FAILED: $*"
  [ ! -e "${said:-}" ] || tail -n 40 "$said"
  exit 1
}

# metrics NAME [FROM TO]: what a run's metrics.jsonl says of its steps, without the times.
metrics() {
  awk -v from="${2:-1}" -v to="${3:-1000000000}" -F'[:,]' '$2 >= from && $2 <= to' \
    "$1/metrics.jsonl" | sed -E 's/"(step_s|tok_s|tflops|mfu)":[^,}]*,?//g'
}

# same_metrics A B [FROM TO]: both say the same, as text.
same_metrics() {
  metrics "$1" "${@:3}" > metrics-a
  metrics "$2" "${@:3}" > metrics-b
  [ -s metrics-a ] || fail "$1/metrics.jsonl has no such steps"
  diff metrics-a metrics-b > metrics-diff || {
    head metrics-diff
    fail "$1 and $2 do not say the same of steps ${*:3}"
  }
}

# steps_once NAME LAST: each of the steps 1 .. LAST stands in metrics.jsonl once, in order.
steps_once() {
  sed -E 's/^\{"step":([0-9]+),.*\}$/\1/' "$1/metrics.jsonl" | cmp -s - <(seq "$2") ||
    fail "$1/metrics.jsonl does not hold the steps 1 to $2 once each"
}

# same_checkpoints A B STEP: weights, moments and masters equal, bit by bit.
same_checkpoints() {
  local step
  step=$(printf 'checkpoints/step-%08d' "$3")
  said=diff.log
  "$GPT3D" ckpt diff "$1/$step" "$2/$step" > "$said" 2>&1 || fail "$1 and $2 differ at step $3"
}

# checkpoints NAME: the steps that it has whole checkpoints of, on one line.
checkpoints() {
  local dir steps=
  for dir in "$1"/checkpoints/step-*[0-9]; do
    [ ! -d "$dir" ] || steps="$steps $((10#${dir##*-}))"
  done
  echo "${steps# }"
}

# A model that trains in no time.
# shellcheck disable=SC2034
small=(--layers 2 --width 32 --heads 2 --seq 16 --global-batch 4 --micro-batch 2 --threads 1)

# want CODE COMMAND...: runs it; what it says, on both streams, is in the file `said`.
want() {
  local code=$1 got=0
  shift
  said=said
  "$@" > said 2>&1 < /dev/null || got=$?
  [ "$got" = "$code" ] || fail "$* ended with $got instead of $code"
}

# says PATTERN: a line of the last command's words matches the extended expression.
says() { grep -Eq -- "$1" said || fail "nothing said matches: $1"; }

# once PATTERN: exactly one line does.
once() { [ "$(grep -Ec -- "$1" said)" = 1 ] || fail "not exactly one line matches: $1"; }

# start NAME RANKS FLAGS...: trains in the background, without end. $job is mpirun; see ranks_of_job.
start() {
  said=$1.log
  mpirun -np "$2" "$GPT3D" "${model[@]}" --out "$1" --steps 1000000 --save-interval 1000000 \
    "${@:3}" < /dev/null > "$said" 2>&1 &
  job=$!
}

# ranks_of_job N: $ranks gets the processes of the N ranks, by number.
ranks_of_job() {
  read -r -a ranks <<< "$(pgrep -P "$job" -x gpt3d | sort -n | tr '\n' ' ')"
  [ ${#ranks[@]} = "$1" ] || fail "found ${#ranks[@]} ranks, wanted $1"
}

# last_step NAME: of metrics.jsonl, 0 when there is none.
last_step() {
  { tail -n 1 "$1/metrics.jsonl" 2> /dev/null || true; } |
    sed -nE 's/^\{"step":([0-9]+),.*\}$/\1/p' | grep . || echo 0
}

# wait_for_step NAME STEP: until the run of $job has done it.
wait_for_step() {
  for ((i = 0; i < 1200; i++)); do
    [ "$(last_step "$1")" -lt "$2" ] || return 0
    kill -0 "$job" 2> /dev/null || fail "$1 ended before step $2"
    sleep 0.05
  done
  fail "$1 did not come to step $2"
}

# ended NAME CODES: waits for $job; its exit code must be among them, within ten seconds.
ended() {
  local got=0 begin=$SECONDS
  wait "$job" || got=$?
  [ $((SECONDS - begin)) -le 10 ] || fail "$1 took $((SECONDS - begin)) s to end"
  grep -qw "$got" <<< "$2" || fail "$1 ended with $got, wanted $2"
}

# grows FLAGS...: one rank trains three steps of 4 samples; from before it allocates to its peak it
# grows by at most 1.10 times what was planned.
grows() {
  said=grows.log
  mpirun -np 1 "$GPT3D" --data mock --micro-batch 4 --global-batch 4 --steps 3 --save-interval 0 \
    --eval-interval 0 --out grows "$@" < /dev/null > grows.log 2>&1 || fail "training $*"
  local line share
  line=$(grep "^memory .* largest share" grows.log) || fail "no word of the peak"
  share=${line##* }
  echo "memory: $*: ${line#memory   }"
  awk -v x="$share" 'BEGIN { exit !(x > 0.9 && x <= 1.10) }' || fail "$* grew by $share, wanted 1.10"
}
