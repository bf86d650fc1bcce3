#!/usr/bin/env bash
# labels: cli
# gpt3d schedule: the lists of actions, and what they keep alive.
. "$(dirname "$0")/common.sh"

want 0 "$GPT3D" schedule --pp 2 --micros 2
cat > wanted << 'LIST'
# 1f1b: 2 ranks, 2 stages, 2 micro-batches
0F0,0SEND_F0,0F1,0SEND_F1+0RECV_B0,0B0,0RECV_B1,0B1,0REDUCE
1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1,1REDUCE
# rank 0 keeps the activations of at most 2 micro-batches
# rank 1 keeps the activations of at most 1 micro-batch
LIST
diff wanted said || fail "another list than wanted"

# Eight micro-batches by default; 1f1b keeps as many as stages are left, gpipe all.
want 0 "$GPT3D" schedule --pp 4
says '^# 1f1b: 4 ranks, 4 stages, 8 micro-batches$'
for rank in 0 1 2 3; do says "^# rank $rank keeps .* at most $((4 - rank)) micro-batch"; done
[ "$(grep -o '0B[0-9]*' said | sort -u | wc -l)" = 8 ] || fail "not eight backwards of stage 0"
want 0 "$GPT3D" schedule --schedule gpipe --pp=4 --micros=6
for rank in 0 1 2 3; do says "^# rank $rank keeps .* at most 6 micro-batches$"; done
want 0 "$GPT3D" schedule --schedule forward --pp 3
says '^# rank 2 keeps .* at most 0 micro-batches$'
! grep -q B0 said || fail "a backward in a list of forwards"

want 0 "$GPT3D" schedule --help
says '^usage: gpt3d schedule'
want 2 "$GPT3D" schedule
says 'error: .*--pp N is missing'
want 2 "$GPT3D" schedule --pp 4x
says 'error: .*--pp wants a whole number from 1 to [0-9]*; found "4x"'
want 2 "$GPT3D" schedule --pp 0
says 'error: .*found "0"'
want 2 "$GPT3D" schedule --pp 99999999999999999999
says 'error: .*found "99999999999999999999"'
want 2 "$GPT3D" schedule --pp 2 --schedule 1f2b
says 'error: no schedule is called "1f2b"; use .*1f1b'
want 2 "$GPT3D" schedule --pp 2 --mircos 4
says 'error: .*unknown flag --mircos; did you mean --micros\?'
