#!/usr/bin/env bash
# labels: equal slow
# The whole matrix of layouts and options that matrix.sh takes a sample of.
set -- all
. "$(dirname "$0")/matrix.sh"
