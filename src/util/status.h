/* Errors. A function that can fail because of the world (files, memory, configuration, peers)
 * returns g3_status and leaves a message for this thread; a mistake of the program itself ends the
 * job. */
#ifndef G3_UTIL_STATUS_H
#define G3_UTIL_STATUS_H

/* One list, two uses: the enum and its texts. */
#define G3_STATUS_LIST(X)                                                                          \
  X(G3_OK, "success")                                                                              \
  X(G3_EINVAL, "bad argument or configuration")                                                    \
  X(G3_ENOMEM, "out of memory")                                                                    \
  X(G3_EIO, "input or output failed")                                                              \
  X(G3_EFORMAT, "file is not what its header says")                                                \
  X(G3_EUNSUPPORTED, "not available in this build or backend")                                     \
  X(G3_EPEER, "another rank failed")                                                               \
  X(G3_EBACKEND, "a library reported an error")                                                    \
  X(G3_ENUMERIC, "the numbers went bad")

#define G3_AS_ENUM(name, text) name,
typedef enum { G3_STATUS_LIST(G3_AS_ENUM) G3_STATUS_COUNT } g3_status;
#undef G3_AS_ENUM

#define G3_MUST_USE __attribute__((warn_unused_result))

/* The name's text, for messages. Local. */
const char *g3_status_text(g3_status s);

/* Records `code` with a message for this thread and returns `code`. Messages say what was wanted,
 * what was found, where, and what to do. Local. */
g3_status g3_fail(g3_status code, const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Adds the calling line to the record of the failure; returns `code`. Local. */
g3_status g3_trace_up(g3_status code, const char *file, int line);

/* The last failure on this thread: its message; "" when there was none. Valid until the next
 * failure. */
const char *g3_last_error(void);

/* The source lines that the last failure passed on its way up, for bug reports. */
const char *g3_last_trace(void);

/* Called by g3_die after it printed; ends the whole job (MPI_Abort). Set once by main. */
void g3_set_fatal_hook(void (*hook)(int exit_code));

/* What g3_die prints before its message, such as "rank 3 (tp 1 pp 0 dp 1)". Copied. */
void g3_set_fatal_place(const char *place);

/* Prints the message with the rank's place and ends the whole job. Never returns. */
void g3_die(const char *file, int line, const char *fmt, ...)
    __attribute__((noreturn, format(printf, 3, 4)));

#define G3_FAIL(code, ...) g3_fail((code), __FILE__, __LINE__, __VA_ARGS__)

#define G3_TRY(call)                                                                               \
  do {                                                                                             \
    g3_status g3_s_ = (call);                                                                      \
    if (g3_s_ != G3_OK) return g3_trace_up(g3_s_, __FILE__, __LINE__);                             \
  } while (0)

/* For functions with something to undo: jumps to `label` with `st` set. */
#define G3_TRY_TO(label, st, call)                                                                 \
  do {                                                                                             \
    if (((st) = (call)) != G3_OK) {                                                                \
      g3_trace_up((st), __FILE__, __LINE__);                                                       \
      goto label;                                                                                  \
    }                                                                                              \
  } while (0)

/* For mistakes of the program: always on. */
#define G3_CHECK(cond, ...)                                                                        \
  do {                                                                                             \
    if (!(cond)) g3_die(__FILE__, __LINE__, __VA_ARGS__);                                          \
  } while (0)

#endif
