"""GPT-2 trained by PyTorch in one process on the CPU, as a peer for gpt3d's speed.

Pre-layernorm, learned positions, tied head, fused AdamW, clipping to 1. With --dtype bf16 products
run under autocast and the weights stay f32. The vocabulary is padded to a multiple of 64, as those
who tune PyTorch do. Prints one line of JSON: seconds of each step, and the rate of one of the
model's products alone.
"""
import argparse
import json
import time

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attention(self, x):
        batch, seq, width = x.shape
        q, k, v = (part.view(batch, seq, self.heads, -1).transpose(1, 2)
                   for part in self.qkv(x).split(width, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(y.transpose(1, 2).reshape(batch, seq, width))

    def forward(self, x):
        x = x + self.attention(self.ln1(x))
        return x + self.down(F.gelu(self.up(self.ln2(x)), approximate="tanh"))


class GPT2(nn.Module):
    def __init__(self, layers, heads, width, vocab, seq):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocab, width), nn.Embedding(seq, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.ln = nn.LayerNorm(width)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)

    def forward(self, ids, targets):
        x = self.blocks(self.tokens(ids) + self.positions.weight)
        logits = F.linear(self.ln(x), self.tokens.weight)
        return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


def product_rate(dtype, tokens, width, seconds=1.0):
    """GFLOP/s of the widest linear layer by itself."""
    x, w = torch.randn(tokens, width, dtype=dtype), torch.randn(4 * width, width, dtype=dtype)
    F.linear(x, w)
    count, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        F.linear(x, w)
        count += 1
    return 8e-9 * tokens * width * width * count / (time.perf_counter() - begin)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name, value in (("layers", 12), ("heads", 12), ("width", 768), ("vocab", 50304),
                        ("batch", 4), ("seq", 256), ("steps", 8), ("threads", 2)):
        parser.add_argument("--" + name, type=int, default=value)
    parser.add_argument("--dtype", choices=["f32", "bf16"], default="f32")
    parser.add_argument("--compile", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    half = args.dtype == "bf16"
    model = GPT2(args.layers, args.heads, args.width, args.vocab, args.seq)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.95), weight_decay=0.1,
                                  fused=True)
    loss_of = torch.compile(model) if args.compile else model
    ids = torch.randint(0, args.vocab, (args.batch, args.seq + 1))
    steps, losses = [], []
    for _ in range(args.steps):
        begin = time.perf_counter()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=half):
            loss = loss_of(ids[:, :-1], ids[:, 1:])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        steps.append(time.perf_counter() - begin)
    rate = product_rate(torch.bfloat16 if half else torch.float32, args.batch * args.seq, args.width)
    print(json.dumps({"peer": "PyTorch " + torch.__version__.split("+")[0], "step_s": steps,
                      "losses": losses, "gemm_gflop_s": rate}))


if __name__ == "__main__":
    main()
