#!/usr/bin/env python3
"""hf_model.py DIR [FLAGS]: a tiny GPT-2 as Hugging Face's transformers store it, without that library; its loss.

--prefix TEXT     before every name ("transformer." unless given)
--buffers         mask buffers beside the weights, as old files have them
--dtype F32|BF16|F16|MIXED
--nan NAME        makes the second number of a tensor NaN
--loss FILE       prints the mean loss of the bytes of FILE, windows of 16, in float64
Every number is 0.3 sin(k + 1), k counted over the whole file.
"""
import argparse
import json
import os
import struct

import numpy

LAYERS, WIDTH, HEADS, POSITIONS, VOCAB = 2, 8, 2, 16, 32


def shapes():
    yield "wte.weight", (VOCAB, WIDTH)
    yield "wpe.weight", (POSITIONS, WIDTH)
    for i in range(LAYERS):
        for name, shape in (("ln_1", (WIDTH,)), ("attn.c_attn", (WIDTH, 3 * WIDTH)), ("attn.c_proj", (WIDTH, WIDTH)),
                            ("ln_2", (WIDTH,)), ("mlp.c_fc", (WIDTH, 4 * WIDTH)), ("mlp.c_proj", (4 * WIDTH, WIDTH))):
            yield f"h.{i}.{name}.weight", shape
            yield f"h.{i}.{name}.bias", shape[-1:]
    yield "ln_f.weight", (WIDTH,)
    yield "ln_f.bias", (WIDTH,)


def weights():
    first, out = 0, {}
    for name, shape in shapes():
        count = int(numpy.prod(shape))
        out[name] = (0.3 * numpy.sin(numpy.arange(first, first + count) + 1.0)).astype(numpy.float32).reshape(shape)
        first += count
    return out


def rounded(x, dtype):
    """The number's bytes, and the values that they stand for."""
    if dtype == "F16":
        half = x.astype(numpy.float16)
        return half.tobytes(), half.astype(numpy.float32)
    if dtype == "BF16":
        bits = x.view(numpy.uint32)
        bits = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(numpy.uint16)
        return bits.tobytes(), (bits.astype(numpy.uint32) << 16).view(numpy.float32)
    return x.tobytes(), x


def write(folder, tensors, args):
    header, data, values = {}, b"", {}
    for i, (name, x) in enumerate(tensors.items()):
        begin = len(data)
        dtype = ("F32", "F16")[i % 2] if args.dtype == "MIXED" else args.dtype
        raw, values[name] = rounded(x, dtype)
        data += raw
        header[args.prefix + name] = {"dtype": dtype, "shape": x.shape, "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/model.safetensors", "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)
    with open(f"{folder}/config.json", "w", encoding="utf-8") as f:
        json.dump({"model_type": "gpt2", "n_layer": LAYERS, "n_embd": WIDTH, "n_head": HEADS,
                   "n_positions": POSITIONS, "vocab_size": VOCAB, "n_inner": None,
                   "activation_function": "gelu_new", "tie_word_embeddings": True}, f)
    return values


def norm(x, w, name):
    x = x - x.mean(-1, keepdims=True)
    return x / numpy.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * w[name + ".weight"] + w[name + ".bias"]


def linear(x, w, name):
    return x @ w[name + ".weight"] + w[name + ".bias"]


def logits(tokens, w):
    n, d = len(tokens), WIDTH // HEADS
    x = w["wte.weight"][tokens] + w["wpe.weight"][:n]
    for i in range(LAYERS):
        q, k, v = (t.reshape(n, HEADS, d).transpose(1, 0, 2)
                   for t in numpy.split(linear(norm(x, w, f"h.{i}.ln_1"), w, f"h.{i}.attn.c_attn"), 3, -1))
        scores = q @ k.transpose(0, 2, 1) / numpy.sqrt(d) + numpy.triu(numpy.full((n, n), -numpy.inf), 1)
        p = numpy.exp(scores - scores.max(-1, keepdims=True))
        out = (p / p.sum(-1, keepdims=True) @ v).transpose(1, 0, 2).reshape(n, WIDTH)
        x = x + linear(out, w, f"h.{i}.attn.c_proj")
        u = linear(norm(x, w, f"h.{i}.ln_2"), w, f"h.{i}.mlp.c_fc")
        u = u / 2 * (1 + numpy.tanh(numpy.sqrt(2 / numpy.pi) * (u + 0.044715 * u**3)))
        x = x + linear(u, w, f"h.{i}.mlp.c_proj")
    return norm(x, w, "ln_f") @ w["wte.weight"].T


def loss(path, w):
    with open(path, "rb") as f:
        tokens = numpy.frombuffer(f.read(), numpy.uint8)
    total = 0.0
    for start in range(0, len(tokens) - 1, POSITIONS):
        window = tokens[start:start + POSITIONS + 1]
        z = logits(window[:-1], w)
        z = z - z.max(-1, keepdims=True)
        total += (numpy.log(numpy.exp(z).sum(-1)) - z[numpy.arange(len(window) - 1), window[1:]]).sum()
    return total / (len(tokens) - 1)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("dir")
    p.add_argument("--prefix", default="transformer.")
    p.add_argument("--buffers", action="store_true")
    p.add_argument("--dtype", default="F32")
    p.add_argument("--nan")
    p.add_argument("--loss")
    args = p.parse_args()
    tensors = weights()
    if args.nan:
        tensors[args.nan.removeprefix(args.prefix)].reshape(-1)[1] = numpy.nan
    values = {name: x.astype(numpy.float64) for name, x in write(args.dir, tensors, args).items()}
    if args.buffers:
        for i in range(LAYERS):
            tensors[f"h.{i}.attn.bias"] = numpy.tril(numpy.ones((1, 1, POSITIONS, POSITIONS), numpy.float32))
            tensors[f"h.{i}.attn.masked_bias"] = numpy.array(-1e4, numpy.float32)
        write(args.dir, tensors, args)
    if args.loss:
        print(repr(float(loss(args.loss, values))))


main()
