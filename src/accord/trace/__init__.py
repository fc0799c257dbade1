"""Traces of the wire: each frame with its time and direction, and notes about frames that were not simply handled.

An *observer* is a function that takes a `TraceEvent`. It is called before a received frame is handled, and when a frame
is sent, so the events are in the order of the wire. A frame that was ignored, refused or malformed is followed by an
event with a note that says so (`malformed: ...`). Without an observer, tracing costs nothing.

**The file format** (`TraceFile`, version 1) is one JSON object per line. The first line describes the recording, see
`TraceHeader`:

    {"accord-trace": 1, "started": "2026-11-21T09:00:00.000+00:00", "role": "client", "peer": "process agent"}

Each further line is an event: `t`, seconds since the start; `dir`, `in` or `out` as the recording side sees it; and one
of `frame` (the message as JSON, byte for byte unless it held secrets), `text` (a frame that is not plain JSON, as a
string), `note`, `stderr` (a line of the agent's standard error) or `process` (what became of the agent's process). In
a trace of a chain of proxies, `from` and `to` name the components; in one of several connections, `link` names the
connection.

A trace holds private messages. So only its owner can read the file, and secrets that can be recognised are masked in it
(`redaction`). The wire itself is not changed.
"""

from accord.trace.events import IN, OUT, Direction, Observer, TraceEvent, Watch
from accord.trace.header import FORMAT, TraceHeader
from accord.trace.reading import follow, read, read_event, read_header
from accord.trace.writing import TraceFile

__all__ = [
    "FORMAT",
    "IN",
    "OUT",
    "Direction",
    "Observer",
    "TraceEvent",
    "TraceFile",
    "TraceHeader",
    "Watch",
    "follow",
    "read",
    "read_event",
    "read_header",
]
