#!/usr/bin/env bash
# labels: cli
# The program's own words: its commands, its version, and a command that there is not.
. "$(dirname "$0")/common.sh"

for ask in help --help -h; do
  want 0 "$GPT3D" $ask
  for command in train bench ckpt doctor schedule tokenize; do once "^  gpt3d $command +[a-z]"; done
  once '^  --tp N '
done
want 0 "$GPT3D" train --help
once '^  --tp N '
want 0 "$GPT3D" --version
once '^gpt3d [0-9]+\.[0-9]+\.[0-9]+$'
want 2 "$GPT3D" tokenise
once "error: unknown command 'tokenise'; did you mean tokenize\?"
want 2 "$GPT3D" quantum
once "error: unknown command 'quantum'; gpt3d help lists all$"
want 0 mpirun -np 3 "$GPT3D" help
once '^  --tp N '
