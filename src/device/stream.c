#include "device/device.h"
#include <string.h>

/* Takes the oldest work off the queue before waiting, so that a failed wait is not repeated. */
static g3_status complete_oldest(g3_stream *s) {
  const g3_deferred oldest = s->pending[0];
  s->npending--;
  s->completed++;
  memmove(&s->pending[0], &s->pending[1], (size_t)s->npending * sizeof s->pending[0]);
  return oldest.wait(oldest.ctx);
}

g3_status g3_stream_drain_to(g3_stream *s, int64_t completed) {
  while (s->npending > 0 && s->completed < completed)
    G3_TRY(complete_oldest(s));
  return G3_OK;
}

g3_status g3_stream_drain(g3_stream *s) {
  return g3_stream_drain_to(s, INT64_MAX);
}

g3_status g3_stream_defer(g3_stream *s, g3_deferred d) {
  G3_CHECK(d.wait != NULL, "deferred work without a way to wait for it");
  if (s->npending == G3_STREAM_PENDING) G3_TRY(complete_oldest(s));
  s->pending[s->npending++] = d;
  return G3_OK;
}
