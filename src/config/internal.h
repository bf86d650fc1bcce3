/* What the files of this folder share; no other folder includes it. */
#ifndef G3_CONFIG_INTERNAL_H
#define G3_CONFIG_INTERNAL_H
#include "config/config.h"

/* Which field of g3_config an option holds. */
#define G3_AT(field) offsetof(g3_config, field)

/* configs/tiny.yaml, put into the binary by cmake/embed.cmake. */
extern const char g3_tiny_yaml[];

/* What a value of `o` may be, for messages and --help: "a whole number from 1 to 65536", "true or
 * false", "cosine, linear, constant or wsd", "text". Pure; `out` always ends with NUL. */
void g3_value_wanted(const g3_option *o, char *out, size_t size);

/* Local. Reads `text` strictly as a value of `o` and stores it in `c`, which is untouched on
 * failure. `where` opens the message. */
G3_MUST_USE g3_status g3_value_parse(g3_config *c, const g3_option *o, const char *text,
                                     const char *where);

/* Local. Like g3_settings_set, for options that have no key as well. */
G3_MUST_USE g3_status g3_settings_put(g3_settings *s, const g3_option *o, const char *text,
                                      g3_origin origin);

/* The origin made of a kind and a printf'd place; a place that is too long loses its beginning, so
 * that the line number stays. Pure. */
g3_origin g3_origin_make(g3_origin_kind kind, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Local. Puts all keys of a YAML text into `s`. `name` stands for it in messages. */
G3_MUST_USE g3_status g3_yaml_text(g3_settings *s, const char *text, const char *name,
                                   g3_origin_kind kind);

/* Local. The same from a file, with kind G3_FROM_FILE. G3_EIO when it cannot be read or is no
 * regular file. */
G3_MUST_USE g3_status g3_yaml_file(g3_settings *s, const char *path);

/* Local. Puts all flags into `s` with kind G3_FROM_COMMAND. */
G3_MUST_USE g3_status g3_command_parse(g3_settings *s, int argc, char *const *argv);

/* Which spelling of an option a search compares with. */
typedef enum { G3_SPELLED_KEY, G3_SPELLED_FLAG } g3_spelling;

/* The spelling nearest to `word`, or NULL when none is near. A flag is looked for among flags,
 * aliases and keys behind "--". `out` gets the whole word. Pure. */
const char *g3_option_nearest(const char *word, g3_spelling spelling, char *out, size_t size);

/* The option that a flag names ("--tp", its alias, or "--parallel.tp"), or NULL. Pure. */
const g3_option *g3_option_by_flag(const char *flag);

/* Whether some key begins with `name` and a dot. Pure. */
bool g3_option_is_section(const char *name);

/* Words as a list for a sentence: "a, b or c". Appends one of `n` to `out`. Pure. */
void g3_list_append(char *out, size_t size, int i, int n, const char *word);

#endif
