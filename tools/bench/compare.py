"""Runs gpt3d and the PyTorch programs beside this file in turn and prints medians and ratios.

Started by tools/bench/peers, which sets up the environment.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
TREE = HERE.parent.parent
WARM_STEPS = 2  # not counted: caches fill, primitives and graphs are compiled


def launch(command, threads):
    """Runs a command. Returns its output, seconds and the peak memory in GB of its largest process."""
    begin = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=TREE,
                             env={**os.environ, "OMP_NUM_THREADS": str(threads)})
    output = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    if status != 0:
        sys.exit(f"{output}\nfailed: {' '.join(command)}")
    return output, time.monotonic() - begin, usage.ru_maxrss / 1e6


def run_gpt3d(command, threads):
    """A gpt3d run on generated tokens without evaluation or checkpoints."""
    with tempfile.TemporaryDirectory() as out:
        _, seconds, memory = launch(
            [*command, "--data", "mock", "--val-split", "0", "--save-interval", "0",
             "--eval-interval", "0", "--out", out + "/run"], threads)
        lines = pathlib.Path(out, "run/metrics.jsonl").read_text().splitlines()
    steps = [json.loads(line)["step_s"] for line in lines]
    return {"step_s": steps, "seconds": seconds, "memory": memory}


def run_torch(command, threads):
    """One of our PyTorch programs; the last line that it prints is JSON."""
    output, seconds, memory = launch(command, threads)
    found = json.loads(output.strip().splitlines()[-1])
    return {**found, "seconds": seconds, "memory": memory}


def median_step(run):
    return statistics.median(run["step_s"][WARM_STEPS:])


def spread(values):
    """The smallest and the largest of a few numbers: how far a median can be trusted."""
    return f"{min(values):.0f}-{max(values):.0f}"


def single(args):
    """GPT-2 124M in one process, 4 samples of 256 tokens a step."""
    batch, seq, steps, threads = 4, 256, 8, os.cpu_count()
    print(f"GPT-2 124M, one process, {threads} threads, {batch} x {seq} tokens a step, "
          f"{args.rounds} rounds of {steps} steps")
    print(f"{'':26}{'tokens/s':>10}{'from-to':>14}{'GEMM GF/s':>11}{'peak GB':>9}")
    for dtype in ("f32", "bf16"):
        torch_command = [sys.executable, str(HERE / "torch_gpt2.py"), "--batch", str(batch),
                         "--seq", str(seq), "--steps", str(steps), "--dtype", dtype,
                         "--threads", str(threads)] + ["--compile"] * args.compile
        ours_command = ["gpt3d", "--config", "configs/gpt2-124m.yaml", "--seq", str(seq),
                        "--micro-batch", str(batch), "--global-batch", str(batch), "--steps",
                        str(steps), "--dtype", dtype, "--threads", str(threads)]
        torch_runs, our_runs = [], []
        for _ in range(args.rounds):
            torch_runs.append(run_torch(torch_command, threads))
            our_runs.append(run_gpt3d(ours_command, threads))
        rates = []
        name = torch_runs[0]["peer"] + (" compile" if args.compile else " eager")
        for who, runs in ((name, torch_runs), ("gpt3d", our_runs)):
            rounds = [batch * seq / median_step(r) for r in runs]
            rates.append(statistics.median(rounds))
            gemm = statistics.median(r.get("gemm_gflop_s", 0) for r in runs)
            memory = max(r["memory"] for r in runs)
            print(f"{dtype:5}{who:21}{rates[-1]:10.1f}{spread(rounds):>14}"
                  f"{f'{gemm:.0f}' if gemm else '':>11}{memory:9.2f}")
        print(f"{dtype:5}{'gpt3d / PyTorch':21}{rates[1] / rates[0]:9.2f}x", flush=True)


def mesh(args):
    """The tiny model on 16 processes, tp 2 x pp 2 x dp 4, 4,096 tokens a step."""
    layout, steps = ["--tp", "2", "--pp", "2", "--dp", "4"], 12
    torch_command = ["torchrun", "--nproc-per-node", "16", str(HERE / "torch_3d.py"), *layout,
                     "--steps", str(steps), "--launched"]
    ours_command = ["mpirun", "-np", "16", "gpt3d", *layout, "--threads", "1", "--steps"]
    print(f"tiny model, 16 processes, tp 2 x pp 2 x dp 4, {args.rounds} rounds of {steps} steps")
    torch_runs, our_runs = [], []
    for _ in range(args.rounds):
        torch_runs.append(run_torch([*torch_command, str(time.time())], 1))
        our_runs.append(run_gpt3d([*ours_command, str(steps)], 1))
        # A run of one step, from launch to the end of the program, is an upper bound.
        our_runs[-1]["to_step1_s"] = run_gpt3d([*ours_command, "1"], 1)["seconds"]
    print(f"{'':26}{'ms a step':>10}{'from-to':>14}{'to step 1, s':>14}{'peak GB a rank':>16}")
    results = []
    for who, runs in ((torch_runs[0]["peer"], torch_runs), ("gpt3d", our_runs)):
        rounds = [1e3 * median_step(r) for r in runs]
        step = statistics.median(rounds)
        first = statistics.median(r["to_step1_s"] for r in runs)
        results.append((step, first))
        print(f"{who:26}{step:10.1f}{spread(rounds):>14}{first:14.2f}"
              f"{max(r['memory'] for r in runs):16.2f}")
    (their_step, their_first), (our_step, our_first) = results
    print(f"{'gpt3d is faster by':26}{their_step / our_step:9.1f}x"
          f"{their_first / our_first:27.1f}x")


def main():
    parser = argparse.ArgumentParser(prog="tools/bench/peers", description=__doc__)
    parser.add_argument("what", nargs="?", choices=["single", "mesh"], help="default: both")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--compile", action="store_true", help="PyTorch with torch.compile")
    args = parser.parse_args()
    if os.getloadavg()[0] > 0.5:
        print(f"(the machine was busy in the last minute, {os.getloadavg()[0]:.1f} processes on "
              "average: if that goes on, expect noise)")
    for name, compare in (("single", single), ("mesh", mesh)):
        if args.what in (None, name):
            compare(args)


if __name__ == "__main__":
    main()
