# What the scripts of this folder share. GPT3D: the program; G3_SOURCE: the repository.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# A model whose layers and vocabulary divide by nothing, on text that needs no file from elsewhere.
awk 'BEGIN { for (i = 0; i < 40000; i++) printf "%c", 32 + (i * i + 7 * int(i / 11)) % 90 }' > text
model=(--layers 5 --width 64 --heads 4 --seq 32 --vocab 257 --data text --val-split 0 --seed 7
  --global-batch 16 --micro-batch 2 --steps 20 --warmup 20 --lr 2e-3 --min-lr 2e-4
  --save-interval 0 --eval-interval 0 --log-interval 0 --threads 1)

# run NAME RANKS FLAGS...: trains into $work/NAME, quietly; what it said is shown when it fails.
run() {
  local name=$1 ranks=$2
  shift 2
  mpirun -np "$ranks" "$GPT3D" "${model[@]}" --out "$name" "$@" < /dev/null > "$name.log" 2>&1 || {
    echo "FAILED: mpirun -np $ranks gpt3d ${model[*]} $*"
    cat "$name.log"
    exit 1
  }
}
