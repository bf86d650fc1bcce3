#!/usr/bin/env bash
# labels: cli
# What bad input gets: one message from one voice, the right exit code on all ranks, within 5 seconds.
. "$G3_SOURCE/tests/equal/common.sh"

together=4 # cases at once: most of a refused run's time mpirun waits for its ranks to end
limit=5000 # ms
cases=0

# refuse RANKS CODE PATTERN FLAGS...: the run must end so. Works in the background; see `finish`.
refuse() {
  cases=$((cases + 1))
  while [ "$(jobs -rp | wc -l)" -ge "$together" ]; do wait -n || true; done
  judge "$cases" "$@" > "case-$cases" 2>&1 &
}

# Where the machine was too busy with other things, another try counts.
judge() {
  local id=$1 ranks=$2 code=$3 pattern=$4 begin ms voices got
  local out=out-$1 err=err-$1
  shift 4
  for _ in 1 2 3; do
    got=0
    begin=$(date +%s%N)
    timeout 20 mpirun -np "$ranks" ${through[@]+"${through[@]}"} "$GPT3D" "${model[@]}" \
      --out "refused-$id" "$@" < /dev/null > "$out" 2> "$err" || got=$?
    ms=$((($(date +%s%N) - begin) / 1000000))
    [ "$ms" -ge "$limit" ] || break
  done
  voices=$(grep -c "gpt3d: .*error: " "$err" || true)
  if [ "$got" != "$code" ] || [ "$voices" != 1 ] || ! grep -Eq -- "$pattern" "$err" ||
    grep -q "MPI_ABORT\|signal" "$err" || [ "$ms" -ge "$limit" ]; then
    echo "FAILED: $ranks ranks, $*: exit $got (wanted $code), $voices voices, $ms ms," \
      "wanted: $pattern"
    cat "$out" "$err"
    return
  fi
  printf '%5d ms  exit %d  %s\n' "$ms" "$got" "$(grep -m1 "gpt3d: .*error: " "$err" | cut -c1-150)"
}

finish() {
  wait
  for ((i = 1; i <= cases; i++)); do cat "case-$i"; done
  ! grep -q FAILED case-*
}

# Configuration.
refuse 2 2 "unknown flag --layrs; did you mean --layers" --layrs 4
printf 'model:\n  layers: 4\n  widht: 64\n' > typo.yaml
refuse 2 2 "typo.yaml:3: .*widht.* did you mean .*width" --config typo.yaml
printf 'parallel:\n  sequence_parallel: maybe\n' > bool.yaml
refuse 2 2 'bool.yaml:2: .*true or false.* found "maybe"' --config bool.yaml
refuse 2 1 "nowhere.yaml.*No such file" --config nowhere.yaml
refuse 2 2 'model.layers wants a whole number .* found "4x"' --layers 4x
refuse 2 2 "train.dtype = fp16 needs run.device = cuda.* use --dtype bf16 or f32" --dtype fp16
refuse 3 2 "parallel.tp = 3 does not divide model.heads = 4; use 1, 2 or 4" --tp 3
refuse 3 2 "parallel.tp = 3 does not divide model.ffn = 100" --tp 3 --heads 3 --width 96 --ffn 100
refuse 3 2 "number of ranks, 3, is not parallel.tp 2 x parallel.pp 1 .* 3 / 2 = 1.5" --tp 2
refuse 4 2 "parallel.tp 2 x parallel.pp 2 x parallel.dp 2 = 8 ranks, but 4" --tp 2 --pp 2 --dp 2
refuse 4 2 "train.global_batch = 12 is not train.micro_batch 2 x parallel.dp 4" --global-batch 12
refuse 4 2 "parallel.pp = 4 stages are more than model.layers = 2" --pp 4 --layers 2
refuse 4 2 "sequence_parallel cuts .*micro_batch 3 x model.seq 33 = 99 tokens" --tp 4 \
  --sequence-parallel --seq 33 --micro-batch 3 --global-batch 3
refuse 2 2 'no schedule is called "1f2b"; use .*1f1b' --pp 2 --schedule 1f2b
refuse 16 2 "number of ranks, 16, is not parallel.tp 3" --tp 3 --heads 3 --width 96 --ffn 96

# Data.
refuse 2 1 "nowhere.txt.*No such file" --data nowhere.txt
refuse 2 1 "data/kjv.txt.*make it with tools/corpus" --data data/kjv.txt
: > empty.txt
refuse 2 1 "empty.txt: no tokens" --data empty.txt
printf 'too short' > short.txt
refuse 2 2 "too little data: 9 tokens, .* seq \\+ 1 = 32 \\+ 1" --data short.txt
refuse 2 1 "text: token [0-9]+ is id [0-9]+, outside a vocabulary of 100" --vocab 100
refuse 4 1 "text: token [0-9]+ is id [0-9]+, outside a vocabulary of 100" --vocab 100 --tp 2 --pp 2

"$GPT3D" tokenize --tokenizer byte --input text --output good
damage() { # damage KIND: the pair KIND.bin and KIND.idx
  cp good.bin "$1.bin"
  /usr/bin/python3 - "$1" << 'PY'
import pathlib, struct, sys
idx = bytearray(pathlib.Path("good.idx").read_bytes())
if sys.argv[1] == "magic":
    idx[0] ^= 1
elif sys.argv[1] == "cut":
    idx = idx[:-3]
elif sys.argv[1] == "offset":
    sequences = struct.unpack_from("<Q", idx, 18)[0]
    struct.pack_into("<q", idx, 34 + 4 * sequences + 8 * (sequences - 1), 1 << 40)
pathlib.Path(sys.argv[1] + ".idx").write_bytes(idx)
PY
}
damage magic && refuse 2 1 "magic.idx: bad magic" --data magic.bin
damage cut && refuse 2 1 "cut.idx: truncated" --data cut.bin
damage offset && refuse 2 1 "offset.idx: sequence .*past the end of the .bin" --data offset.bin

# One rank alone cannot read a file.
mkdir elsewhere
cat > blind.sh << 'SH'
[ "$OMPI_COMM_WORLD_RANK" = 1 ] && cd elsewhere
exec "$@"
SH
through=(bash blind.sh)
refuse 3 1 "rank 1: text: .*No such file" --global-batch 12
through=()

# The run directory.
refuse 2 1 "text/run.*Not a directory" --out text/run
refuse 2 1 "/proc/.*(No such file|denied|Read-only).* --out" --out /proc/gpt3d/run

# Checkpoints.
run saved 2 --dp 2 --steps 2 --warmup 2 --save-interval 2
last=saved/checkpoints/step-00000002
spoil() { # spoil COMMAND...: a fresh copy of the checkpoint, named $copy, in which it is run
  copy=spoiled-$cases
  cp -r "$last" "$copy" && (cd "$copy" && "$@")
}
from() { # from CODE PATTERN FLAGS...: the copy is refused
  refuse 2 "$1" "$copy$2" --resume "$copy" "${@:3}"
}
flip() { # flip FILE PERCENT: turns one bit of the byte there
  /usr/bin/python3 -c '
import pathlib, sys
file = pathlib.Path(sys.argv[1])
data = bytearray(file.read_bytes())
data[len(data) * int(sys.argv[2]) // 100] ^= 4
file.write_bytes(data)' "$@"
}
refuse 2 2 "saved has checkpoints .*--overwrite" --out saved --resume none
refuse 2 2 "model.layers = 6, but the checkpoint $last has 5" --resume "$last" --layers 6
refuse 2 2 "train.seed = 8, but the checkpoint $last has 7" --resume saved --seed 8
spoil rm index.h5 && from 1 " is not whole: .* no index.h5"
spoil rm shard-00001.h5 && from 1 "/shard-00001.h5: .* cannot be found"
spoil truncate -s -100 shard-00000.h5 && from 1 "/shard-00000.h5 has .* but the index says"
spoil truncate -s -100 index.h5 && from 1 "/index.h5 is damaged"
spoil flip index.h5 50 && from 1 "/index.h5 is damaged"
spoil flip shard-00000.h5 50 && from 1 "/shard-00000.h5: .* is damaged: .*hash"
refuse 2 1 "cannot list text: Not a directory" --resume text
refuse 2 2 "--resume elsewhere: there is no checkpoint" --resume elsewhere
refuse 2 2 "--init elsewhere: there is no checkpoint" --init elsewhere

finish
for left in refused-*/checkpoints/*; do
  [ ! -e "$left" ] || { echo "FAILED: a refused run left $left"; exit 1; }
done
"$GPT3D" ckpt verify saved > verified || { cat verified; echo "FAILED: refusals harmed a run"; exit 1; }
