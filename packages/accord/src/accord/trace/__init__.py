"""Traces of the wire: each frame with its time and direction, and notes about frames that had a problem.

An *observer* is a function that takes a `TraceEvent`. It is called before a received frame is handled, and when a frame
is sent, so the events are in the order of the wire. A frame that was ignored, refused or malformed is followed by an
event with a note that says so (`malformed: ...`). Without an observer, tracing costs nothing.

**The file format** (`TraceFile`, version 1) is one JSON object per line. The first line describes the recording, see
`TraceHeader`:

    {"accord-trace": 1, "started": "2026-11-21T09:00:00.000+00:00", "role": "client", "peer": "process agent"}

Each further line is an event: `t`, seconds since the start; `dir`, `in` or `out` as the recording side sees it; and one
of `frame` (the message as JSON, byte for byte unless it contained secrets), `text` (a frame that is not plain JSON, as
a string), `note`, `stderr` (a line of the agent's standard error) or `process` (an event of the agent's process). In a
trace of a chain of proxies, `from` and `to` name the components; in one of several connections, `link` names the
connection.

A trace contains private messages. So only its owner can read the file, and recognisable secrets are masked in it
(`redaction`). The wire itself is not changed.
"""

from __future__ import annotations

import logging
import signal
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

from accord.installation import on_first_use
from accord.jsonrpc.wire_messages import Malformed, NotificationFrame, RequestFrame, ResponseFrame, parse

if TYPE_CHECKING:
    from accord.trace.trace_file import (
        FORMAT as FORMAT,
        TraceFile as TraceFile,
        TraceHeader as TraceHeader,
        follow as follow,
        read as read,
        read_event as read_event,
        read_header as read_header,
    )


log = logging.getLogger("accord")

Direction = Literal["in", "out"]
IN: Direction = "in"
OUT: Direction = "out"


class TraceEvent(msgspec.Struct, eq=False):
    """A frame on the wire, a note about the frame before it, a line of standard error, or an event of the process."""

    time: float
    """Seconds on the clock of `time.monotonic`; in a trace that was read, since its start."""
    direction: Direction
    """`in` or `out`, as this side sees it."""
    frame: bytes | None = None
    """The bytes of the message; None for every other event."""
    _message: Any = None
    note: str | None = None
    """The problem of the previous frame, or a gap of the recording; None for every other event."""
    hop: tuple[str, str] | None = None
    """In a trace of a chain of proxies: the components that sent and received the frame; else None."""
    link: int | str | None = None
    """In a trace of several connections: which of them, by number or name; else None."""
    stderr: str | None = None
    """A line of the agent's standard error; None for every other event."""
    process: Mapping[str, Any] | None = None
    """An event of the agent's process, such as `{"event": "exited", "code": 0}`; None for every other event."""

    @property
    def message(self) -> RequestFrame | NotificationFrame | ResponseFrame | Malformed | None:
        """The frame as a message, parsed on first use."""
        message: RequestFrame | NotificationFrame | ResponseFrame | Malformed | None = self._message
        if message is None and self.frame is not None:
            self._message = message = parse(self.frame)
        return message

    def __repr__(self) -> str:
        content = next(it for it in (self.note, self.stderr, self.process, (self.frame or b"")[:100]) if it is not None)
        return f"TraceEvent({self.direction} {content!r})"


Observer: TypeAlias = Callable[[TraceEvent], None]


class Watch:
    """The observers of one connection, and how they are called."""

    __slots__ = ("observers",)

    def __init__(self) -> None:
        self.observers: list[Observer] = []

    def frame(self, direction: Direction, frame: bytes, message: Any = None) -> None:
        self._tell(TraceEvent(time.monotonic(), direction, frame, message))

    def note(self, direction: Direction, note: str) -> None:
        self._tell(TraceEvent(time.monotonic(), direction, note=note))

    def _tell(self, event: TraceEvent) -> None:
        for observer in self.observers:
            try:
                observer(event)
            except Exception:
                log.exception("an observer of the connection failed")


def exit_event(code: int) -> dict[str, str | int]:
    """Return the trace's event for a process that ended with this return code of `subprocess`: a negative one is a
    signal.

    >>> exit_event(3), exit_event(-9)
    ({'event': 'exited', 'code': 3}, {'event': 'exited', 'signal': 'SIGKILL'})
    """
    return {"event": "exited", "signal": signal_name(-code)} if code < 0 else {"event": "exited", "code": code}


def signal_name(number: int) -> str:
    """Return the name of a signal; its number if it has none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


_HOMES = {"trace_file": "FORMAT TraceFile TraceHeader follow read read_event read_header"}

if not TYPE_CHECKING:
    __all__, __getattr__, __dir__ = on_first_use(
        __name__, _HOMES, "Direction IN OUT Observer TraceEvent Watch exit_event signal_name"
    )
