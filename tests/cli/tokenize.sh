#!/usr/bin/env bash
# labels: cli
# gpt3d tokenize: a text becomes token files that training reads; wrong arguments leave none.
. "$(dirname "$0")/common.sh"

printf 'In the beginning\n\nGod created\n' > text
want 0 "$GPT3D" tokenize --tokenizer byte --input text --output out
says '^wrote out.bin and out.idx: 30 tokens of a vocabulary of 256; train with --data out.bin$'
cmp text out.bin || fail "the tokens, a byte each, are not the bytes"
[ "$(head -c 7 out.idx)" = MMIDIDX ] || fail "out.idx does not begin as Megatron's"

# Trained on, the files are the text.
yes 'the quick brown fox' | head -c 4000 > fox || true
want 0 "$GPT3D" tokenize --input=fox --output=fox.tokens
loss() {
  want 0 "$GPT3D" --data "$1" "${small[@]}" --steps 2 --val-split 0 --save-interval 0 \
    --eval-interval 0 --out "runs/$1" --resume none
  grep -o '"loss":[0-9.]*' "runs/$1/metrics.jsonl"
}
[ "$(loss fox)" = "$(loss fox.tokens.bin)" ] || fail "a text and its token files train differently"

want 0 "$GPT3D" tokenize --help
says '^usage: gpt3d tokenize .*--input FILE --output PREFIX$'
want 2 "$GPT3D" tokenize --inptu text --output x
says 'error: .*unknown flag --inptu; did you mean --input\?$'
want 2 "$GPT3D" tokenize --input text
says 'error: .*--output PREFIX is missing'
want 2 "$GPT3D" tokenize --input text --output
says 'error: .*--output wants PREFIX; found the end of the command line'
want 2 "$GPT3D" tokenize --input --output x
says 'error: .*--input wants FILE; found --output'
want 2 "$GPT3D" tokenize --tokenizer words --input text --output x
says 'error: .*--tokenizer wants byte; found "words"'
want 2 "$GPT3D" tokenize text --output x
says 'error: .*stray word "text"'
want 1 "$GPT3D" tokenize --input nowhere --output x
says 'error: .*nowhere.*No such file'
want 1 "$GPT3D" tokenize --input text --output no/such/folder/x
says 'error: .*no/such/folder/x'
: > empty
want 1 "$GPT3D" tokenize --input empty --output x
says 'error: .*empty'
[ -z "$(ls x* 2> /dev/null)" ] || fail "a failed run left $(ls x*)"
