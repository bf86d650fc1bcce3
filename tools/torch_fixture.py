#!/usr/bin/env python3
"""Makes tests/golden/gpt2_tiny.h5: what PyTorch computes for a tiny random GPT-2.

Two groups, /tied and /untied (embeddings), each with
    init/NAME   initial weights, under the names of src/model/spec.c
    tokens      i32 [steps, batch, seq + 1]: inputs and, one later, targets
    logits      f32 [batch, seq, vocab] of the first batch at the initial weights
    grads/NAME  gradients of the first batch's mean loss, not clipped
    losses      f64 [steps], before each update
    norms       f64 [steps], of the gradients before clipping
    final/NAME  weights after all steps of AdamW: warm-up, then a cosine; clipped at every step;
                weight decay for matrices alone
and the shape and the optimizer's numbers as attributes.

All of it is float32. The attribute bf16 of each of these (but init, tokens and norms) is how far
from it PyTorch's own bf16 run comes, |difference| / |f32|: weights, activations and gradients in
bf16, the loss, clipping, master weights and moments in f32; of the weights, the master's distance.

Everything is random, biases and layer norms too, so that no term is hidden behind a zero or a one.
Tests read the file; only making it anew needs PyTorch:
    python3 -m venv VENV && VENV/bin/pip install torch h5py && VENV/bin/python tools/torch_fixture.py
"""
import math
import pathlib

import h5py
import numpy
import torch
from torch.nn import functional as F

SHAPE = {"layers": 2, "heads": 4, "width": 32, "ffn": 128, "seq": 16, "vocab": 61, "batch": 4}
# The key bias has no gradient but rounding; eps well above that (1e-9) keeps Adam from magnifying it.
ADAMW = {"lr": 1e-3, "min_lr": 1e-4, "beta1": 0.9, "beta2": 0.95, "eps": 1e-6, "weight_decay": 0.1,
         "clip": 1.0, "warmup": 10, "steps": 20}
OUTPUT = pathlib.Path(__file__).resolve().parent.parent / "tests/golden/gpt2_tiny.h5"


def shapes(tied):
    """Every parameter with its shape; matrices are stored [out, in]."""
    width, ffn, vocab = SHAPE["width"], SHAPE["ffn"], SHAPE["vocab"]
    found = {"embed.tokens.weight": (vocab, width), "embed.positions.weight": (SHAPE["seq"], width)}
    for layer in range(SHAPE["layers"]):
        block = {"ln1.weight": (width,), "ln1.bias": (width,),
                 "attn.qkv.weight": (3, width, width), "attn.qkv.bias": (3, width),
                 "attn.proj.weight": (width, width), "attn.proj.bias": (width,),
                 "ln2.weight": (width,), "ln2.bias": (width,),
                 "mlp.up.weight": (ffn, width), "mlp.up.bias": (ffn,),
                 "mlp.down.weight": (width, ffn), "mlp.down.bias": (width,)}
        found.update({f"blocks.{layer}.{name}": shape for name, shape in block.items()})
    found.update({"final.ln.weight": (width,), "final.ln.bias": (width,)})
    if not tied:
        found["head.weight"] = (vocab, width)
    return found


def initial(tied, generator):
    """N(0, 0.2), layer norms' weights around 1."""
    params = {}
    for name, shape in shapes(tied).items():
        value = 0.2 * torch.randn(shape, generator=generator)
        centre = 1.0 if ".ln" in name and name.endswith("weight") else 0.0
        params[name] = value + centre
    return params


def forward(params, ids):
    """Logits of token ids [batch, seq]: GPT-2 (Radford et al., 2019), GELU in its tanh form."""
    width, heads = SHAPE["width"], SHAPE["heads"]
    batch, seq = ids.shape

    def norm(x, name):
        return F.layer_norm(x, (width,), params[name + ".weight"], params[name + ".bias"])

    def linear(x, name):
        return F.linear(x, params[name + ".weight"], params[name + ".bias"])

    x = params["embed.tokens.weight"][ids] + params["embed.positions.weight"]
    for layer in range(SHAPE["layers"]):
        block = f"blocks.{layer}"
        h = norm(x, block + ".ln1")
        q, k, v = (F.linear(h, w, b).view(batch, seq, heads, -1).transpose(1, 2)
                   for w, b in zip(params[block + ".attn.qkv.weight"],
                                   params[block + ".attn.qkv.bias"]))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + linear(y.transpose(1, 2).reshape(batch, seq, width), block + ".attn.proj")
        h = F.gelu(linear(norm(x, block + ".ln2"), block + ".mlp.up"), approximate="tanh")
        x = x + linear(h, block + ".mlp.down")
    head = params.get("head.weight", params["embed.tokens.weight"])
    return F.linear(norm(x, "final.ln"), head)


def decays(name):
    """As the parameter table has it: matrices and embeddings, not biases or layer norms."""
    return name.endswith("weight") and ".ln" not in name


def rate(step):
    """Learning rate of step 1, 2, ...: linear up to the peak, then a cosine to the least."""
    if step <= ADAMW["warmup"]:
        return ADAMW["lr"] * step / ADAMW["warmup"]
    x = (step - ADAMW["warmup"]) / (ADAMW["steps"] - ADAMW["warmup"])
    return ADAMW["min_lr"] + (ADAMW["lr"] - ADAMW["min_lr"]) * (1 + math.cos(math.pi * x)) / 2


def train(start, tokens, dtype):
    """All steps from the weights `start` (f32). Weights and activations are of dtype; f32 masters of
    them are what AdamW updates (in f32 they are the weights)."""
    masters = {name: value.clone() for name, value in start.items()}
    optimizer = torch.optim.AdamW(
        [{"params": [p for n, p in masters.items() if decays(n) == decay],
          "weight_decay": ADAMW["weight_decay"] if decay else 0.0} for decay in (True, False)],
        betas=(ADAMW["beta1"], ADAMW["beta2"]), eps=ADAMW["eps"], foreach=False)
    seen = {"losses": [], "norms": []}
    for step, batch in enumerate(tokens, start=1):
        params = {name: value.to(dtype).detach().requires_grad_() for name, value in masters.items()}
        logits = forward(params, batch[:, :-1]).float()
        loss = F.cross_entropy(logits.reshape(-1, SHAPE["vocab"]), batch[:, 1:].reshape(-1))
        loss.backward()
        for name, value in masters.items():
            value.grad = params[name].grad.float()
        if step == 1:
            seen["logits"] = logits.detach()
            seen["grads"] = {name: value.grad.clone() for name, value in masters.items()}
        norm = torch.nn.utils.clip_grad_norm_(masters.values(), ADAMW["clip"]).item()
        assert norm > ADAMW["clip"], "a step that is not clipped"
        seen["norms"].append(norm)
        seen["losses"].append(loss.item())
        for rates in optimizer.param_groups:
            rates["lr"] = rate(step)
        optimizer.step()
    return {**seen, "final": masters}


def write(group, name, value, other):
    """The f32 run's value, with the distance of the other run's."""
    value, other = torch.as_tensor(value).double(), torch.as_tensor(other).double()
    single = name not in ("losses", "norms")
    group[name] = value.numpy().astype(numpy.float32) if single else value.numpy()
    group[name].attrs["bf16"] = ((other - value).norm() / value.norm()).item()


def record(group, tied):
    generator = torch.Generator().manual_seed(20 + tied)
    start = initial(tied, generator)
    tokens = torch.randint(SHAPE["vocab"], (ADAMW["steps"], SHAPE["batch"], SHAPE["seq"] + 1),
                           generator=generator)
    group["tokens"] = tokens.numpy().astype(numpy.int32)
    exact, half = (train(start, tokens, dtype) for dtype in (torch.float32, torch.bfloat16))
    for name in ("logits", "losses", "norms"):
        write(group, name, exact[name], half[name])
    for part in ("grads", "final"):
        inner = group.create_group(part)
        for name in start:
            write(inner, name, exact[part][name], half[part][name])
    inner = group.create_group("init")
    for name, value in start.items():
        inner[name] = value.numpy()


def main():
    torch.set_num_threads(1)
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(OUTPUT, "w") as file:
        file.attrs.update({**SHAPE, **ADAMW, "made_with": "torch " + torch.__version__})
        for name in ("untied", "tied"):
            record(file.create_group(name), name == "tied")
            print(name, "losses", *(f"{x:.4f}" for x in file[name]["losses"]), "norms",
                  *(f"{x:.2f}" for x in file[name]["norms"]))
            print("bf16", *(f"{n} {file[name][n].attrs['bf16']:.1e}"
                            for n in ("logits", "losses", "norms")))
    print(OUTPUT, OUTPUT.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
