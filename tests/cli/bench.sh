#!/usr/bin/env bash
# labels: cli
# gpt3d bench train: numbers that add up, alone and over ranks; nothing is left behind.
. "$(dirname "$0")/common.sh"

want 0 "$GPT3D" bench train "${small[@]}" --json
[ "$(wc -l < said)" = 1 ] || fail "more than one line of JSON"
/usr/bin/python3 - << 'CHECK' || fail "the numbers do not add up"
import json
b = json.load(open("said"))
assert b["steps"] == 8 and b["tokens"] == 4 * 16 and b["threads"] == 1, b
assert (b["tp"], b["pp"], b["dp"], b["dtype"]) == (1, 1, 1, "f32"), b
rows = {r["name"]: r for r in b["operations"]}
# Two micro-batches of two blocks: four products each forward, eight backward, three of the head.
assert rows["gemm"]["calls"] == 2 * (2 * 12 + 3), rows["gemm"]
assert rows["attention"]["calls"] == rows["attention_bwd"]["calls"] == 4, rows
assert rows["control"]["calls"] == 1, rows
assert not any("all_reduce" in name for name in rows), rows
total = sum(r["ms"] for r in b["operations"]) + b["rest_ms"]
assert abs(total / b["step_ms"] - 1) < 1e-9 and b["rest_ms"] > 0, (total, b["step_ms"])
assert 0 < b["step_ms"] <= b["mean_step_ms"] * (1 + 1e-9), b
assert abs(b["tok_s"] * b["step_ms"] / 1e3 / b["tokens"] - 1) < 1e-9, b
p = b["products"]
assert sum(x["calls"] for x in p) == rows["gemm"]["calls"], p
assert abs(sum(x["ms"] for x in p) / rows["gemm"]["ms"] - 1) < 1e-9, p
flops = sum(2 * x["m"] * x["n"] * x["k"] * x["calls"] for x in p)
assert abs(flops / rows["gemm"]["ms"] / 1e6 / rows["gemm"]["gflop_s"] - 1) < 1e-9, (flops, rows)
assert abs(b["products_gflop_s"] / rows["gemm"]["gflop_s"] - 1) < 1e-9, b
own = flops / sum(2 * x["m"] * x["n"] * x["k"] * x["calls"] / x["alone_gflop_s"] for x in p)
assert abs(own / b["products_alone_gflop_s"] - 1) < 1e-9, (own, b)
assert b["grown_bytes"] <= b["resident_bytes"] and b["planned_bytes"] > 1e5, b
assert 0 < b["loss"] < 7, b
CHECK

# The table of the same, and the user's own flags win.
want 0 "$GPT3D" bench train "${small[@]}" --steps 3 --dtype bf16
once '^gemm +54 .* GFLOP/s$'
once '^adamw .* GB/s$'
once '^the rest, on the host '
once '^step .* ms, the fastest of 3; .* on average. .* tokens/s, .* on average; loss '
once '^products .* by themselves: ratio '
once '^memory .* planned '
says '^ +32 +32 +32  bf16 A x B'

# Communication by kind, over eight ranks.
want 0 mpirun -np 8 "$GPT3D" bench train "${small[@]}" --tp 2 --pp 2 --dp 2 --steps 2 --json
/usr/bin/python3 - << 'CHECK' || fail "communication is not counted"
import json
b = json.load(open("said"))
rows = {r["name"]: r for r in b["operations"]}
# One micro-batch and one block a stage: two sums over tp forward, two backward, one of the embedding
# on the first stage; the last has one of the head's gradient and two of its loss.
assert rows["all_reduce tp"]["calls"] in (5, 7), rows["all_reduce tp"]
assert rows["exchange pp"]["calls"] in (1, 2), rows["exchange pp"] # the first stage joins its two
assert rows["all_reduce ends"]["calls"] == 1, rows["all_reduce ends"]
assert rows["all_reduce world"]["calls"] == 1, rows["all_reduce world"]
assert rows["reduce_scatter dp"]["calls"] == rows["all_gather dp"]["calls"] > 0, rows
for r in b["operations"]:
    assert r["slowest_ms"] >= r["ms"] and 0 <= r["slowest_rank"] < 8, r
assert rows["xent_loss"]["slowest_rank"] >= 4 and rows["xent_loss"]["ms"] == 0, rows["xent_loss"]
total = sum(r["ms"] for r in b["operations"]) + b["rest_ms"]
assert abs(total / b["step_ms"] - 1) < 1e-9, (total, b)
moved = sum(r["ms"] for r in b["operations"] if r["name"].split()[0] in
            ("all_reduce", "reduce_scatter", "all_gather", "exchange", "broadcast", "transfer"))
assert abs(moved / b["transfers_ms"] - 1) < 1e-9, (moved, b)
CHECK
[ "$(ls -A)" = "$(printf 'said\ntext')" ] || fail "left $(ls -A)"

want 2 "$GPT3D" bench
says 'error: gpt3d bench wants train; found nothing'
want 2 "$GPT3D" bench trian
says 'error: gpt3d bench wants train; found "trian"'
want 2 "$GPT3D" bench train --layrs 2
says 'error: unknown flag --layrs; did you mean --layers'
want 2 "$GPT3D" bench train --tp 2
says 'error: .*number of ranks'
want 2 "$GPT3D" bench train --dry-run
says 'error: --dry-run measures nothing'
want 0 "$GPT3D" bench --help
says '^usage: gpt3d bench train'

# With --exact: the blocks of its products, and what it costs against the same run without.
want 0 "$GPT3D" bench train "${small[@]}" --exact --steps 2
once '^exact +[0-9.]+ ms a step, [0-9.]+ ms without: [0-9.]+ times the time; planned .* times the memory$'
says '^ +16 +32 +128 .*, k / 16 '
want 0 "$GPT3D" bench train "${small[@]}" --exact --steps 2 --json
/usr/bin/python3 - << 'CHECK' || fail "the cost of --exact is missing"
import json
b = json.load(open("said"))
assert b["fast_step_ms"] > 0 and 0 < b["fast_planned_bytes"] != b["planned_bytes"], b
assert {p["cut"] for p in b["products"]} == {"m", "n", "k"} and all(p["block"] > 0 for p in b["products"]), b
assert any(r["name"] == "tree_sum" and r["calls"] > 0 for r in b["operations"]), b
CHECK
