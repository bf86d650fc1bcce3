#!/usr/bin/env python3
"""compare.py ONE OTHER FIRST LAST: the metrics of two runs side by side.

Fails unless loss and gradient norm of every step differ by at most FIRST (relative) on the first step, LAST
on the last, and a bound between the two, growing evenly in its logarithm, on those between. Bounds of 0 mean:
the same text.
"""
import json
import math
import sys


def read(run):
    with open(f"{run}/metrics.jsonl", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def main():
    one, other = read(sys.argv[1]), read(sys.argv[2])
    first, last = float(sys.argv[3]), float(sys.argv[4])
    if len(one) != len(other) or len(one) < 2:
        sys.exit(f"{sys.argv[2]}: {len(other)} steps, {sys.argv[1]} has {len(one)}")
    worst = {"loss": 0.0, "grad_norm": 0.0}
    for i, (a, b) in enumerate(zip(one, other)):
        share = i / (len(one) - 1)
        bound = first * math.pow(last / first, share) if first > 0 else 0.0
        for key in worst:
            difference = abs(b[key] / a[key] - 1.0)
            worst[key] = max(worst[key], difference)
            if not difference <= bound:
                sys.exit(f"{sys.argv[2]}: step {a['step']}: {key} {b[key]!r} is not {a[key]!r} "
                         f"(differs by {difference:.2e}, allowed {bound:.2e})")
    print(f"{sys.argv[2]:40s} loss {worst['loss']:.1e}  grad_norm {worst['grad_norm']:.1e}")


main()
