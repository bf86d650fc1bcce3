#!/usr/bin/env python3
"""Makes tests/golden/hf_tiny: two tiny random GPT-2 as transformers saves them, and what it computes.

tied/    config.json, model.safetensors (F32)
untied/  config.json, two shards with model.safetensors.index.json (BF16)
tokens   a file of bytes, each a token
expected.h5, per model:
    /MODEL/logits  f32 [windows, seq, vocab] of the first windows of the file
    /MODEL/loss    f64, mean over all its tokens but the first, in nats, as gpt3d eval defines it
expected.json      the losses again, and the number of tokens

Everything is random, biases and layer norms too, so that no term is hidden behind a zero or a one.
Tests read the files; only making them anew needs transformers:
    python3 -m venv VENV && VENV/bin/pip install torch transformers h5py
    VENV/bin/python tools/hf_fixture.py
"""
import json
import pathlib
import shutil

import h5py
import numpy
import torch
import transformers
from torch.nn import functional as F

SHAPE = {"vocab_size": 61, "n_positions": 12, "n_embd": 24, "n_layer": 2, "n_head": 3, "n_inner": 80}
TOKENS, WINDOWS = 200, 2
OUTPUT = pathlib.Path(__file__).resolve().parent.parent / "tests/golden/hf_tiny"


def make(tied):
    """N(0, 0.2), layer norms' weights around 1."""
    config = transformers.GPT2Config(
        **SHAPE, tie_word_embeddings=tied, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
        bos_token_id=None, eos_token_id=None)
    model = transformers.GPT2LMHeadModel(config)
    generator = torch.Generator().manual_seed(40 + tied)
    with torch.no_grad():
        for name, value in model.named_parameters():
            centre = 1.0 if ".ln_" in name and name.endswith("weight") else 0.0
            value.copy_(centre + 0.2 * torch.randn(value.shape, generator=generator))
    return model


def load(folder):
    return transformers.GPT2LMHeadModel.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager").eval()


def evaluate(model, tokens):
    """Windows of seq + 1 tokens, seq apart, the last one short: mean loss, and each one's logits."""
    seq, total, logits = SHAPE["n_positions"], 0.0, []
    for start in range(0, len(tokens) - 1, seq):
        window = tokens[start:start + seq + 1]
        with torch.no_grad():
            logits.append(model(window[None, :-1]).logits[0])
        total += F.cross_entropy(logits[-1].double(), window[1:], reduction="sum").item()
    return total / (len(tokens) - 1), torch.stack(logits[:WINDOWS])


def main():
    torch.set_num_threads(1)
    shutil.rmtree(OUTPUT, ignore_errors=True)
    OUTPUT.mkdir(parents=True)
    tokens = torch.randint(SHAPE["vocab_size"], (TOKENS,), generator=torch.Generator().manual_seed(42))
    (OUTPUT / "tokens").write_bytes(bytes(tokens.tolist()))
    expected = {"tokens": TOKENS - 1}
    with h5py.File(OUTPUT / "expected.h5", "w") as file:
        file.attrs["made_with"] = f"transformers {transformers.__version__}, torch {torch.__version__}"
        for name in ("tied", "untied"):
            model, folder = make(name == "tied"), OUTPUT / name
            if name == "tied":
                model.save_pretrained(folder)
            else:
                model.to(torch.bfloat16).save_pretrained(folder, max_shard_size="30KB")
            (folder / "generation_config.json").unlink(missing_ok=True)
            loss, logits = evaluate(load(folder), tokens)
            file[f"{name}/logits"] = logits.numpy().astype(numpy.float32)
            file[f"{name}/loss"] = loss
            expected[name] = loss
            print(name, "loss", loss, *sorted(path.name for path in folder.iterdir()))
    (OUTPUT / "expected.json").write_text(json.dumps(expected) + "\n")
    print(OUTPUT, sum(path.stat().st_size for path in OUTPUT.rglob("*") if path.is_file()), "bytes")


if __name__ == "__main__":
    main()
