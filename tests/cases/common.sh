# What the scripts of this folder share. Each tries a fault that users of another trainer reported in public,
# in words of ours; the report is named so that the whole kind of fault can be understood.
# shellcheck disable=SC2034
. "$G3_SOURCE/tests/cli/common.sh"
cases=$G3_SOURCE/tests/cases

# A later flag wins.
model=(--layers 4 --width 64 --heads 4 --seq 32 --vocab 257 --dropout 0 --dtype f32 --seed 7 --lr 1e-3
  --lr-schedule constant --warmup 0 --weight-decay 0 --global-batch 8 --micro-batch 1 --val-split 0 --data text
  --threads 1 --save-interval 0 --eval-interval 0 --log-interval 0)

# values NAME FIELD: of each step, as JSON, on one line.
values() { jq -s -c "map(.$2)" "$1/metrics.jsonl"; }

# near A B BOUND: two JSON arrays of numbers that differ by at most so much, relative.
near() {
  jq -e -n --argjson a "$1" --argjson b "$2" --argjson bound "$3" \
    '($a | length) == ($b | length) and ($a | length) > 0 and
     all([$a, $b] | transpose[]; (.[0] - .[1] | fabs) <= $bound * (.[0] | fabs))' > near.out ||
    fail "not within $3: $1 and $2"
}

# refused WORDS COMMAND...: ends with 1 or 2 within five seconds, with one message that has these words.
refused() {
  local words=$1 code=0 begin=$SECONDS
  shift
  said=said
  "$@" > said 2>&1 < /dev/null || code=$?
  [ "$code" = 1 ] || [ "$code" = 2 ] || fail "$* ended with $code instead of being refused"
  [ $((SECONDS - begin)) -le 5 ] || fail "$* took $((SECONDS - begin)) s to be refused"
  [ "$(grep -c 'gpt3d: error: ' said)" = 1 ] || fail "not one message"
  grep -Eq -- "gpt3d: error: .*$words" said || fail "the message does not say: $words"
}

# through RANKS: $through starts so many; one needs no launcher.
through() {
  through=(mpirun -np "$1")
  [ "$1" -gt 1 ] || through=(env)
}
