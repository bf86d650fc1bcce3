#!/usr/bin/env bash
# labels: cli slow
# GPT-2 124M on one process grows by at most 1.10 times what was planned.
. "$G3_SOURCE/tests/cli/common.sh"
grows --config "$G3_SOURCE/configs/gpt2-124m.yaml" --seq 256
