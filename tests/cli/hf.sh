#!/usr/bin/env bash
# labels: cli
# gpt3d ckpt import and export: models of transformers in all their spellings become checkpoints
# that evaluate and train; what is not such a model is refused, and leaves nothing.
. "$(dirname "$0")/common.sh"

golden=$G3_SOURCE/tests/golden/hf_tiny

# variant NAME SOURCE CODE: a copy of a model, edited by Python: `t` maps names to [dtype, shape,
# bytes], `c` is config.json.
variant() {
  /usr/bin/python3 - "$1" "$golden/$2" "$3" << 'PY'
import json, pathlib, struct, sys
out, source, code = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
t, c = {}, json.loads((source / "config.json").read_text())
for file in sorted(source.glob("*.safetensors")):
    raw = file.read_bytes()
    size = struct.unpack_from("<Q", raw)[0]
    for name, e in json.loads(raw[8:8 + size]).items():
        if name != "__metadata__":
            begin, end = (8 + size + x for x in e["data_offsets"])
            t[name] = [e["dtype"], e["shape"], raw[begin:end]]

def rename(f):
    for name in list(t):
        t[f(name)] = t.pop(name)

def half(dtype): # with numbers that 16 bits hold
    for name, (_, shape, raw) in t.items():
        f = struct.unpack(f"<{len(raw) // 4}f", raw)
        f = [round(x * 64) / 64 for x in f]
        bits = (struct.pack(f"<{len(f)}e", *f) if dtype == "F16" else
                b"".join(struct.pack("<f", x)[2:] for x in f))
        t[name] = [dtype, shape, bits] if dtype != "F32" else [dtype, shape, struct.pack(f"<{len(f)}f", *f)]

def poke(name, index, value):
    raw = bytearray(t[name][2])
    struct.pack_into("<f", raw, 4 * index, value)
    t[name][2] = bytes(raw)

exec(code)
header, at = {}, 0
for name, (dtype, shape, raw) in t.items():
    header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(raw)]}
    at += len(raw)
text = json.dumps(header).encode()
out.mkdir()
(out / "config.json").write_text(json.dumps(c))
(out / "model.safetensors").write_bytes(
    struct.pack("<Q", len(text)) + text + b"".join(raw for _, _, raw in t.values()))
PY
}

import() { # import CODE NAME [OUT]
  want "$1" "$GPT3D" ckpt import --format hf "$2" --out "${3:-ckpt-$2}"
}
same() { # same A B: both checkpoints are equal
  want 0 "$GPT3D" ckpt diff "$1" "$2"
  says 'are equal, bit by bit$'
}

# Both models of the fixture: what transformers computed, and there and back.
for model in tied untied; do
  want 0 "$GPT3D" ckpt import --format hf "$golden/$model" --out "ckpt-$model"
  once "^imported [0-9,]+ parameters in 2[89] tensors into ckpt-$model/step-00000000: 2 layers, .*, $model\$"
  want 0 "$GPT3D" eval --resume "ckpt-$model" --data "$golden/tokens" --json --threads 1
  jq -e --slurpfile want "$golden/expected.json" \
    "(.loss / \$want[0].$model - 1 | fabs < 1e-5) and .tokens == \$want[0].tokens" said > exact ||
    fail "the loss of $model is not that of transformers"
  want 0 "$GPT3D" ckpt export --format hf "ckpt-$model" --out "back-$model"
  once "^exported .* of ckpt-$model/step-00000000 to back-$model/model.safetensors, F32\$"
  [ "$(ls "back-$model")" = "$(printf 'config.json\nmodel.safetensors')" ] || fail "more was written"
  import 0 "back-$model"
  same "ckpt-$model" "ckpt-back-$model"
done
want 0 mpirun -np 4 "$GPT3D" eval --resume ckpt-tied --data "$golden/tokens" --json --threads 1 \
  --pp 2 --global-batch 4 --micro-batch 1
jq -e --slurpfile want "$golden/expected.json" '.loss / $want[0].tied - 1 | fabs < 1e-5' said \
  > exact || fail "another layout gives another loss"

# The same weights in other spellings.
variant bare tied 'rename(lambda n: n.removeprefix("transformer."))'
variant head tied 't["lm_head.weight"] = t["transformer.wte.weight"]'
variant unsaid tied 'del c["tie_word_embeddings"]; t["lm_head.weight"] = t["transformer.wte.weight"]'
variant masks tied '
for i in range(2):
    t[f"transformer.h.{i}.attn.bias"] = ["BOOL", [1, 1, 12, 12], bytes(144)]
    t[f"transformer.h.{i}.attn.masked_bias"] = ["F32", [], bytes(4)]'
for name in bare head unsaid masks; do
  import 0 "$name"
  [ "$name" != masks ] || once '^ignored 4 buffers attn.bias and attn.masked_bias: causal masks'
  same ckpt-tied "ckpt-$name"
done
variant f32 tied 'half("F32")'
variant f16 tied 'half("F16")'
import 0 f32
import 0 f16
same ckpt-f32 ckpt-f16
variant other-head tied 'del c["tie_word_embeddings"]; t["lm_head.weight"] = ["F32", [61, 24], bytes(5856)]'
import 0 other-head
once '^lm_head.weight differs from wte.weight: the model is untied$'
once ', untied$'
variant dropped tied 'c.update(attn_pdrop=0.25, embd_pdrop=0.25, resid_pdrop=0.25)'
import 0 dropped
once '^its dropout of 0.25 is a setting of training: give --dropout 0.25$'
variant drops tied 'c.update(attn_pdrop=0.25)'
import 0 drops
once '^embd_pdrop 0, attn_pdrop 0.25 and resid_pdrop 0 are settings of training'

# An imported model is where training starts, not where it goes on.
trains=(--data "$golden/tokens" --val-split 0 --eval-interval 0 --micro-batch 2 --global-batch 4 --threads 1
  --steps 2 --save-interval 2)
want 0 "$GPT3D" "${trains[@]}" --init ckpt-tied --out tuned
says '^starting from the weights of ckpt-tied/step-00000000, step 0$'
want 2 "$GPT3D" "${trains[@]}" --resume ckpt-tied --out other
once 'ckpt-tied/step-00000000 has weights only, no optimizer state to resume: .*--init ckpt-tied/'
want 2 "$GPT3D" "${trains[@]}" --init ckpt-tied --width 32 --out other
once 'model.width = 32, but the checkpoint ckpt-tied/step-00000000 has 24'
[ ! -e other ] || fail "a refused run left a folder"

# A bf16 run, and a checkpoint that many ranks wrote, go out as f32 masters.
want 0 mpirun -np 4 "$GPT3D" "${trains[@]}" --init ckpt-untied --dtype bf16 --pp 2 --dp 2 \
  --micro-batch 1 --out half
want 0 "$GPT3D" ckpt export --format hf half --out back-half
import 0 back-half
want 0 "$GPT3D" eval --resume ckpt-back-half --data "$golden/tokens" --json --threads 1
loss=$(jq .loss said)
want 0 "$GPT3D" eval --resume half --data "$golden/tokens" --json --threads 1
[ "$loss" = "$(jq .loss said)" ] || fail "what was exported is not what f32 evaluates"

before=$(ls)
# All that differs is told at once, and nothing is written.
variant wrong tied '
del t["transformer.h.0.ln_1.bias"], t["transformer.wpe.weight"]
t["score.weight"] = ["F32", [2, 24], bytes(192)]
t["transformer.h.2.attn.bias"] = ["U8", [4], bytes(4)]
t["ln_f.bias"] = t["transformer.ln_f.bias"]
t["transformer.h.1.attn.c_attn.weight"][1] = [72, 24]
t["transformer.h.1.mlp.c_fc.bias"] = ["I32", [80], bytes(320)]'
import 1 wrong ckpt-none
once '^transformer.h.0.ln_1.bias +missing; wanted \[24\]$'
once '^transformer.wpe.weight +missing; wanted \[12, 24\]$'
once '^score.weight +is no tensor of this model$'
once '^transformer.h.2.attn.bias +is no tensor of this model$'
once '^ln_f.bias +given twice'
once '^transformer.h.1.attn.c_attn.weight +is \[72, 24\]; wanted \[24, 72\]$'
once '^transformer.h.1.mlp.c_fc.bias +is of I32; F32, F16 and BF16 are read$'
once 'error: wrong differs from the GPT-2 of its config.json in 7 places, .*nothing was written$'

# refuse CODE PATTERN NAME EDIT: the edited model is refused.
refuse() {
  variant "$3" "${source:-tied}" "$4"
  import "$1" "$3" ckpt-none
  once "gpt3d: error: .*$2"
}
refuse 1 'nan/model.safetensors: element 7 of transformer.h.1.ln_2.weight is nan' nan \
  'poke("transformer.h.1.ln_2.weight", 7, float("nan"))'
refuse 1 'inf/model.safetensors: element 575 of transformer.h.0.attn.c_proj.weight is -inf' inf \
  'poke("transformer.h.0.attn.c_proj.weight", 575, float("-inf"))'
refuse 2 'tie_word_embeddings is true, but lm_head.weight differs from wte.weight' torn \
  't["lm_head.weight"] = ["F32", [61, 24], bytes(5856)]'
source=untied refuse 1 'headless differs .* in 1 place,' headless 'del t["lm_head.weight"]'
refuse 2 'relu/config.json: activation_function is "relu"; gpt3d computes only "gelu_new"' relu \
  'c["activation_function"] = "relu"'
refuse 2 'layer_norm_epsilon is 0.001; gpt3d computes only 1e-05' epsilon \
  'c["layer_norm_epsilon"] = 1e-3'
refuse 2 'scale_attn_by_inverse_layer_idx is true' inverse 'c["scale_attn_by_inverse_layer_idx"] = True'
refuse 2 'n_head_kv is 1, a field that gpt3d does not know' unknown 'c["n_head_kv"] = 1'
refuse 2 'model.heads = 5 does not divide model.width = 24' heads 'c["n_head"] = 5'
refuse 2 'model.vocab wants a whole number from 2 to' vocabulary 'c["vocab_size"] = 1'
refuse 1 'headed differs from .* in [0-9]+ places' headed 'c["n_embd"] = 48'
refuse 1 'n_layer is "2"; wanted a whole number above 0' worded 'c["n_layer"] = "2"'

mkdir bare-config && cp "$golden/tied/config.json" bare-config
import 1 bare-config ckpt-none
once 'error: bare-config has neither model.safetensors nor model.safetensors.index.json'
import 1 nowhere ckpt-none
once 'error: cannot open nowhere/config.json: No such file'
cp -r "$golden/untied" cut && truncate -s -1 cut/model-00001-of-00002.safetensors
import 1 cut ckpt-none
once 'error: cut/model-00001-of-00002.safetensors: .* lies in bytes .* of the data, which has'
cp -r "$golden/untied" astray
sed -i 's|: "model-00002|: "../cut/model-00002|' astray/model.safetensors.index.json
import 1 astray ckpt-none
once 'error: astray/model.safetensors.index.json: the shard of "lm_head.weight" is not the plain name'
rm -rf bare-config cut astray wrong nan inf torn headless relu epsilon inverse unknown heads vocabulary headed worded
[ "$(ls)" = "$before" ] || fail "refused imports left $(ls)"

# Where results go.
import 2 "$golden/tied" ckpt-tied
once 'error: --out ckpt-tied has a run or checkpoints already; give another folder'
import 2 "$golden/tied" tuned
once 'error: --out tuned has a run or checkpoints already'
import 1 "$golden/tied" exact
want 2 "$GPT3D" ckpt export --format hf ckpt-tied --out back-tied
once 'error: --out back-tied has config.json already'
want 1 "$GPT3D" ckpt export --format hf nothing --out new
once 'error: there is no checkpoint in nothing'
want 1 "$GPT3D" ckpt export --format hf ckpt-tied --out exact/new
once 'error: .*exact.*Not a directory'
cp -r ckpt-tied torn && truncate -s -9 torn/step-00000000/shard-00000.h5
want 1 "$GPT3D" ckpt export --format hf torn --out new
[ ! -e new ] || fail "a refused export left a folder"
cp -r ckpt-tied flipped
/usr/bin/python3 - flipped/step-00000000/shard-00000.h5 << 'PY'
import pathlib, sys
file = pathlib.Path(sys.argv[1])
data = bytearray(file.read_bytes())
data[len(data) // 2] ^= 4
file.write_bytes(data)
PY
want 1 "$GPT3D" ckpt export --format hf flipped --out new
once 'error: .*shard-00000.h5: .*hash'
[ -z "$(ls new)" ] || fail "a failed export left $(ls new)"

# Words.
want 2 "$GPT3D" ckpt import "$golden/tied" --out x
once 'error: gpt3d ckpt import: --format hf is missing'
want 2 "$GPT3D" ckpt import --format hf "$golden/tied"
once 'error: gpt3d ckpt import: --out FOLDER is missing'
want 2 "$GPT3D" ckpt export --format onnx ckpt-tied --out x
once 'error: gpt3d ckpt export: --format wants hf; found "onnx"'
want 2 "$GPT3D" ckpt export --format hf --out x
once 'error: gpt3d ckpt export wants CKPT; found 0 of 1'
want 0 "$GPT3D" ckpt import --help
once '^usage: gpt3d ckpt import --format hf --out FOLDER DIR$'
want 0 "$GPT3D" ckpt --help
once '^gpt3d ckpt export --format hf --out FOLDER CKPT$'
