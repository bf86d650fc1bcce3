#!/usr/bin/env bash
# labels: cases
# karpathy/nanoGPT #190 (also karpathy/minGPT #120 and ggml-org/llama.cpp #1473): weights stored the other way round, of
# which the square one would fit unseen; mask buffers and bf16 that break loaders. The kind: other programs' layouts.
. "$(dirname "$0")/common.sh"
awk 'BEGIN { for (i = 0; i < 200; i++) printf "%c", i % 32 }' > v.txt

variant() { # variant NAME FLAGS...: its loss is that of a plain float64 forward of the same values
  /usr/bin/python3 "$cases/hf_model.py" "$1" --loss v.txt "${@:2}" > reference
  want 0 "$GPT3D" ckpt import --format hf "$1" --out "$1-ckpt"
  cp said "$1-said"
  want 0 "$GPT3D" eval --resume "$1-ckpt" --data v.txt --json --threads 1
  near "[$(cat reference)]" "$(jq -s -c 'map(.loss)' said)" 1e-5
  jq -e '.tokens == 199' said > /dev/null || fail "$1 was evaluated on other tokens"
}
variant plain
variant bare --prefix ""
variant buffers --buffers
[ "$(grep -c 'attn.*bias' buffers-said)" = 1 ] || fail "the mask buffers are not skipped with one line"
variant bf16 --dtype BF16
variant mixed --dtype MIXED
cmp reference <(/usr/bin/python3 "$cases/hf_model.py" again --loss v.txt) &&
  fail "rounding changes nothing, so nothing was tried"

# And back: the same values, in the shapes that they came in.
want 0 "$GPT3D" ckpt export --format hf plain-ckpt --out back
/usr/bin/python3 - > said 2>&1 << 'EOF' || fail "the export is not what was imported"
import json, struct
def read(folder):
    with open(folder + "/model.safetensors", "rb") as f:
        data = f.read()
    (n,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + n])
    header.pop("__metadata__", None)
    return {name.removeprefix("transformer."): (tuple(t["shape"]), t["dtype"], data[8 + n:][slice(*t["data_offsets"])])
            for name, t in header.items() if name != "lm_head.weight"}
a, b = read("plain"), read("back")
assert a.keys() == b.keys(), a.keys() ^ b.keys()
for name in a:
    assert a[name] == b[name], (name, a[name][:2], b[name][:2])
assert b["h.0.attn.c_attn.weight"][0] == (8, 24) and b["h.1.mlp.c_proj.weight"][0] == (32, 8)
EOF
