#!/usr/bin/env python3
"""pairs.py [all]: the matrix of layouts, a run a line: "RANKS FLAGS..." that gpt3d takes.

tp and pp of 1, 2 and 4, dp a power of two, at most 16 ranks: 27 layouts; times sequence parallelism, ZeRO 0 and 1,
gpipe and 1f1b, dropout, and micro-batches of 1 and 2. What a layout has no use for (sequence parallelism with tp 1,
ZeRO with dp 1, a schedule with pp 1) is not varied there. Without `all` a sample, the same every time: every layout at
least once, and every two values of any two options together at least once.
"""
import collections
import itertools
import sys

LAYOUTS = [(tp, pp, dp) for tp in (1, 2, 4) for pp in (1, 2, 4) for dp in (1, 2, 4, 8, 16) if tp * pp * dp <= 16]
OPTIONS = {"sequence": (False, True), "zero": (0, 1), "schedule": ("gpipe", "1f1b"), "dropout": (0, 0.1),
           "micro": (1, 2)}


def useful(layout, options):
    tp, pp, dp = layout
    sequence, zero, schedule = options[:3]
    return (tp > 1 or not sequence) and (dp > 1 or zero == 1) and (pp > 1 or schedule == "1f1b")


def every_run():
    return [(layout, options) for layout in LAYOUTS for options in itertools.product(*OPTIONS.values())
            if useful(layout, options)]


def pairs(run):
    """What a run covers: its layout, and its values two by two; the axes of the layout are options here, too."""
    layout, options = run
    values = [*zip(("tp", "pp", "dp"), layout), *zip(OPTIONS, options)]
    return {layout, *itertools.combinations(values, 2)}


def sample(runs):
    """Greedy: the run that covers most of what is left; among equals the one whose values were taken least."""
    left, taken, chosen = set().union(*map(pairs, runs)), collections.Counter(), []
    while left:
        best = max(runs, key=lambda run: (len(pairs(run) & left), -sum(taken[v] for v in zip(OPTIONS, run[1]))))
        left -= pairs(best)
        taken.update(zip(OPTIONS, best[1]))
        chosen.append(best)
    return sorted(chosen)


def main():
    runs = every_run()
    for (tp, pp, dp), (sequence, zero, schedule, dropout, micro) in runs if "all" in sys.argv[1:] else sample(runs):
        print(f"{tp * pp * dp} --tp {tp} --pp {pp} --dp {dp} --zero {zero} --schedule {schedule} --dropout {dropout} "
              f"--micro-batch {micro}" + (" --sequence-parallel" if sequence else ""))


main()
