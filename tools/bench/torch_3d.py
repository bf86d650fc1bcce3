"""A GPT trained by PyTorch over tp x pp x dp processes on one machine's CPU, as a peer for gpt3d.

Tensor parallelism by DTensor, pipeline by torch.distributed.pipelining (1F1B), data parallelism by
FSDP2, all over gloo. Without gradient clipping, which would cost PyTorch one more reduction. The
last rank prints one line of JSON: seconds of each step and from launch to the end of the first.

    torchrun --nproc-per-node 16 tools/bench/torch_3d.py --tp 2 --pp 2 --dp 4 --launched $(date +%s.%N)
"""
import argparse
import json
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.distributed.tensor.parallel import (ColwiseParallel, RowwiseParallel,
                                               parallelize_module)
from torch.nn import functional as F


class Block(nn.Module):
    """Heads are counted by what is left of the width, so that a tensor-parallel part works alike."""

    def __init__(self, width, heads):
        super().__init__()
        self.head_width = width // heads
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))
        self.proj = nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attention(self, x):
        q, k, v = (layer(x).unflatten(2, (-1, self.head_width)).transpose(1, 2)
                   for layer in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(y.transpose(1, 2).flatten(2))

    def forward(self, x):
        x = x + self.attention(self.ln1(x))
        return x + self.down(F.gelu(self.up(self.ln2(x)), approximate="tanh"))


class Stage(nn.Module):
    """Embeddings on the first stage, blocks, the head on the last."""

    def __init__(self, args, first, last):
        super().__init__()
        self.tokens = nn.Embedding(args.vocab, args.width) if first else None
        self.positions = nn.Embedding(args.seq, args.width) if first else None
        self.blocks = nn.ModuleList(Block(args.width, args.heads)
                                    for _ in range(args.layers // args.pp))
        self.ln = nn.LayerNorm(args.width) if last else None
        self.head = nn.Linear(args.width, args.vocab, bias=False) if last else None

    def forward(self, x):
        if self.tokens is not None:
            x = self.tokens(x) + self.positions.weight
        for block in self.blocks:
            x = block(x)
        return x if self.head is None else self.head(self.ln(x))


def cut(stage, mesh, args):
    """The stage over its tp and dp ranks."""
    if args.tp > 1:
        plan = {}
        for i in range(len(stage.blocks)):
            plan.update({f"blocks.{i}.{name}": ColwiseParallel() for name in ("q", "k", "v", "up")})
            plan.update({f"blocks.{i}.{name}": RowwiseParallel() for name in ("proj", "down")})
        parallelize_module(stage, mesh["tp"], plan)
    if args.dp > 1:
        fully_shard(stage, mesh=mesh["dp"])
    return stage


def loss_of(logits, targets):
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def train(args, mesh):
    """Returns the seconds of each step, the time at which the first ended, and the last loss."""
    index, dp_rank = mesh.get_local_rank("pp"), mesh.get_local_rank("dp")
    first, last = index == 0, index == args.pp - 1
    module = cut(Stage(args, first, last), mesh, args)
    stage = PipelineStage(module, index, args.pp, torch.device("cpu"), group=mesh.get_group("pp"))
    schedule = Schedule1F1B(stage, args.micros, loss_fn=loss_of)
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3, weight_decay=0.1)
    steps, first_end, losses = [], 0.0, []
    for step in range(args.steps):
        generator = torch.Generator().manual_seed(step * args.dp + dp_rank)
        ids = torch.randint(args.vocab, (args.micro_batch * args.micros, args.seq + 1),
                            generator=generator)
        inputs = (ids[:, :-1].contiguous(),) if first else ()
        losses = []
        labels = {"target": ids[:, 1:].contiguous(), "losses": losses} if last else {}
        begin = time.perf_counter()
        schedule.step(*inputs, **labels)
        optimizer.step()
        optimizer.zero_grad()
        dist.barrier()
        steps.append(time.perf_counter() - begin)
        first_end = first_end or time.time()
    return steps, first_end, [x.item() for x in losses]


def main():
    begin = time.time()
    parser = argparse.ArgumentParser(description=__doc__)
    for name, value in (("tp", 2), ("pp", 2), ("dp", 4), ("layers", 4), ("heads", 4),
                        ("width", 128), ("vocab", 256), ("seq", 128), ("micro-batch", 2),
                        ("micros", 4), ("steps", 12)):
        parser.add_argument("--" + name, type=int, default=value)
    parser.add_argument("--launched", type=float, default=begin, help="seconds since 1970")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (args.pp, args.dp, args.tp), mesh_dim_names=("pp", "dp", "tp"))
    steps, first_end, losses = train(args, mesh)
    if dist.get_rank() == dist.get_world_size() - 1:
        print(json.dumps({"peer": "PyTorch " + torch.__version__.split("+")[0], "step_s": steps,
                          "to_step1_s": first_end - args.launched, "losses": losses}), flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
