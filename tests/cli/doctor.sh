#!/usr/bin/env bash
# labels: cli
# gpt3d doctor: facts of this machine, alone and under mpirun; exit code 1 when something is missing.
. "$(dirname "$0")/common.sh"

want 0 "$GPT3D" doctor
! grep -Evq '^(ok|warn) |^[0-9]+ facts fine' said || fail "a line that is no fact"
for fact in gpt3d processor kernels oneDNN GPU cores binding memory stack 'locked memory' \
  'open files' 'core file' MPI ranks mpirun HDF5 xxHash cJSON libyaml disk 'file locks' data; do
  once "^(ok|warn) +$fact "
done
once "^ok +cores +$(nproc) of "
once "^ok +mpirun +$(command -v mpirun), of the same version as the library\$"
once '^warn +data +no data/kjv.txt.*tools/corpus'
[ "$(ls -A)" = "$(printf 'said\ntext')" ] || fail "left $(ls -A)"
mkdir data && echo x > data/kjv.txt
want 0 "$GPT3D" doctor
once '^ok +data +data/kjv.txt'

# What is missing is named with what brings it.
want 1 env PATH=/nowhere "$GPT3D" doctor
once '^missing +mpirun +not on PATH: apt install openmpi-bin$'
once '^[0-9]+ facts fine, .* 1 missing$'

# The mpirun of another MPI is not the one.
mkdir bin && printf '#!/bin/sh\necho "HYDRA build details: Version 4.0"\n' > bin/mpirun
chmod +x bin/mpirun
want 0 env PATH="$PWD/bin:$PATH" "$GPT3D" doctor
once '^warn +mpirun +.*/bin/mpirun says "HYDRA .*, and the library is Open MPI v'

# What the environment takes away is seen.
want 0 env GPT3D_ISA=v2 DNNL_MAX_CPU_ISA=AVX2 "$GPT3D" doctor
once '^ok +kernels +x86-64-v2'
once '^ok +oneDNN .*no bf16 product under DNNL_MAX_CPU_ISA=AVX2'
want 0 bash -c "ulimit -n 256; '$GPT3D' doctor"
once '^warn +open files +256; little: ulimit -n 4096$'

# One voice under mpirun.
want 0 mpirun -np 3 "$GPT3D" doctor
once '^ok +ranks +3, of them 3 on this machine'
once '^ok +MPI '
once '^ok +waiting +ranks that wait give up their core'

want 2 "$GPT3D" doctor --jsn
says 'error: gpt3d doctor: unknown flag --jsn'
want 2 "$GPT3D" doctor now
says 'error: .*stray word "now"'
want 0 "$GPT3D" doctor --help
says '^usage: gpt3d doctor'
