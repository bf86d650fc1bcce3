#!/usr/bin/env bash
# labels: equal slow
# --exact in all layouts of up to 32 ranks: tp 1, 2, 4 x pp 1, 2 x dp 1, 2, 4 x sequence parallelism x ZeRO x threads.
export G3_ALL=1
. "$G3_SOURCE/tests/equal/exact.sh"
