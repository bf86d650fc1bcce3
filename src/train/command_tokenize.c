/* gpt3d tokenize */
#include "data/data.h"
#include "train/args.h"
#include "util/text.h"
#include <string.h>

/* One row a tokenizer. */
static const struct {
  const char *name;
  g3_status (*write)(const char *text, const char *prefix);
  int64_t vocab;
} tokenizers[] = {{"byte", g3_tokenize_bytes, 256}};

enum { TOKENIZERS = sizeof tokenizers / sizeof tokenizers[0] };

static g3_status find(const char *name, int *out) {
  for (int i = 0; i < TOKENIZERS; i++) {
    if (strcmp(tokenizers[i].name, name) != 0) continue;
    *out = i;
    return G3_OK;
  }
  return G3_FAIL(G3_EINVAL, "gpt3d tokenize: --tokenizer wants byte; found \"%.80s\"", name);
}

/* Opens what was written, as training will. */
static g3_status say_result(const char *prefix, int64_t vocab) {
  char path[4096];
  g3_tokens *tokens;
  g3_number_text count;
  if (snprintf(path, sizeof path, "%s.bin", prefix) >= (int)sizeof path)
    return G3_FAIL(G3_EINVAL, "the path %.80s... is too long", prefix);
  G3_TRY(g3_tokens_open(path, vocab, &tokens));
  printf("wrote %s.bin and %s.idx: %s tokens of a vocabulary of %lld; train with --data %s.bin\n",
         prefix, prefix, g3_text_commas(g3_tokens_count(tokens), count), (long long)vocab, prefix);
  g3_tokens_close(tokens);
  return G3_OK;
}

static g3_status tokenize(int argc, char **argv) {
  const char *name = "byte", *input = NULL, *output = NULL;
  const g3_arg flags[] = {
      {.flag = "--tokenizer", .meta = "byte", .about = "what a token is [byte]", .text = &name},
      {.flag = "--input",
       .meta = "FILE",
       .about = "a text, one document a line",
       .text = &input,
       .required = true},
      {.flag = "--output",
       .meta = "PREFIX",
       .about = "PREFIX.bin and PREFIX.idx are written",
       .text = &output,
       .required = true},
      {.flag = NULL}};
  const g3_args args = {.command = "gpt3d tokenize",
                        .words = "",
                        .about = "Turns a text into token files in Megatron's format.",
                        .flags = flags};
  bool help;
  int which;
  G3_TRY(g3_args_parse(&args, argc, argv, &help));
  if (help) return G3_OK;
  G3_TRY(find(name, &which));
  G3_TRY(tokenizers[which].write(input, output));
  return say_result(output, tokenizers[which].vocab);
}

g3_exit g3_command_tokenize(int argc, char **argv) {
  return g3_args_verdict(tokenize(argc, argv), G3_EXIT_DONE);
}
