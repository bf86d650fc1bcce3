/* Streams and events. Compute is done when a call returns, so that order concerns deferred work
 * alone: an event remembers how far its stream's queue reached. */
#include "device/cpu/cpu.h"
#include "util/log.h"
#include <stdlib.h>

struct g3_event {
  g3_stream *stream; /* borrowed; NULL until recorded */
  int64_t completed; /* of the stream's deferred works, when the event has happened */
};

g3_status g3_cpu_stream_create(g3_device *dev, bool side, g3_tensor workspace, g3_stream **out) {
  g3_stream *s;
  G3_TRY(G3_NEW_ARRAY(1, &s));
  s->dev = dev;
  s->side = side;
  s->workspace = workspace;
  *out = s;
  return G3_OK;
}

void g3_cpu_stream_destroy(g3_stream *s) {
  if (!s) return;
  while (s->npending > 0) /* the buffers of pending transfers may be freed next */
    if (g3_stream_drain(s) != G3_OK) G3_WARN("while closing a stream: %s", g3_last_error());
  free(s);
}

g3_status g3_cpu_sync(g3_stream *s) {
  return g3_stream_drain(s);
}

g3_status g3_cpu_event_create(g3_device *dev, g3_event **out) {
  (void)dev;
  g3_event *e;
  G3_TRY(G3_NEW_ARRAY(1, &e));
  *out = e;
  return G3_OK;
}

void g3_cpu_event_destroy(g3_event *e) {
  free(e);
}

g3_status g3_cpu_record(g3_stream *s, g3_event *e) {
  e->stream = s;
  e->completed = s->completed + s->npending;
  return G3_OK;
}

/* What is pending on `s` itself stays under way: a side stream waits for compute before each of its
 * transfers, and must not thereby wait for the transfers before. */
g3_status g3_cpu_wait(g3_stream *s, g3_event *e) {
  (void)s;
  return e->stream ? g3_stream_drain_to(e->stream, e->completed) : G3_OK;
}
