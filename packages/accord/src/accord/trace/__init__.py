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

from typing import TYPE_CHECKING

from accord._internal.lazy_names import homes_of, on_first_use

if TYPE_CHECKING:
    from accord.trace.trace_events import (
        IN as IN,
        OUT as OUT,
        Direction as Direction,
        Observer as Observer,
        TraceEvent as TraceEvent,
        Watch as Watch,
        exit_event as exit_event,
        signal_name as signal_name,
    )
    from accord.trace.trace_file import (
        FORMAT as FORMAT,
        TraceFile as TraceFile,
        TraceHeader as TraceHeader,
        follow as follow,
        read as read,
        read_event as read_event,
        read_header as read_header,
    )

_HOMES = homes_of(
    {
        "trace_events": "Direction IN OUT Observer TraceEvent Watch exit_event signal_name",
        "trace_file": "FORMAT TraceFile TraceHeader follow read read_event read_header",
    }
)

__all__ = list(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll]

if not TYPE_CHECKING:
    __getattr__ = on_first_use(__name__, _HOMES)
