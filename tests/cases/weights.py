#!/usr/bin/env python3
"""The weights of checkpoints, read as anybody would: whole tensors of the newest one's index.h5.

weights.py near A B BOUND    each tensor's |a - b| / |a| <= BOUND, Euclidean; but the qkv bias as a whole is left out,
                             whose key part has no gradient but rounding
weights.py distinct A B      within A no two layers and no two halves of a matrix are equal; every random tensor of B,
                             which has another seed, is another
"""
import sys

import h5py
import numpy


def read(run):
    with open(f"{run}/checkpoints/latest", encoding="utf-8") as f:
        path = f"{run}/checkpoints/{f.read().strip()}/index.h5"
    tensors = {}
    with h5py.File(path) as file:
        file.visititems(lambda name, item: tensors.update({name: item[...]})
                        if isinstance(item, h5py.Dataset) and name.startswith("model/") else None)
    if not tensors:
        sys.exit(f"{path} has no tensors")
    return tensors


def near(a, b, bound):
    for name, x in a.items():
        if "qkv.bias" in name:
            continue
        far = numpy.linalg.norm(x - b[name]) / (numpy.linalg.norm(x) or 1.0)
        print(f"{far:.1e} {name}")
        if not far <= bound:
            sys.exit(f"{name} differs by {far:.2e}, allowed {bound}")


def halves(x):
    for axis in range(x.ndim):
        if x.shape[axis] % 2 == 0:
            yield numpy.split(x, 2, axis)


def distinct(a, b):
    random = [name for name, x in a.items() if x.ndim > 1 and numpy.std(x) > 0]
    if len(random) < 10:
        sys.exit(f"only {len(random)} tensors are random")
    for i, name in enumerate(random):
        for other in random[:i]:
            if a[name].shape == a[other].shape and numpy.array_equal(a[name], a[other]):
                sys.exit(f"{name} is {other}")
        for x, y in halves(a[name]):
            if numpy.array_equal(x, y):
                sys.exit(f"two halves of {name} are equal")
        if numpy.mean(a[name] == b[name]) > 0.01:
            sys.exit(f"{name} is the same with another seed")


def main():
    what, a, b = sys.argv[1:4]
    if what == "near":
        near(read(a), read(b), float(sys.argv[4]))
    else:
        distinct(read(a), read(b))


main()
