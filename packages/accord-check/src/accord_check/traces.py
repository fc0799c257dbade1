"""The conversations in a trace file: one, or one for each hop of a chain of proxies, or one after the other."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import msgspec

from accord import DecodeError, TraceEvent
from accord.trace import Direction, read as read_trace
from accord_check.conversation import read


@dataclass(slots=True)
class Conversed:
    """One conversation of a trace, with the line of each event."""

    title: str = ""
    """What tells it from the others of the file; empty if it is the only one."""
    client: Direction | None = None
    """The direction of the client's frames, if the file says it."""
    events: list[TraceEvent] = field(default_factory=list[TraceEvent])
    lines: list[int] = field(default_factory=list[int])
    """The line of each event in the file, from 1."""


BEGINS_LATE = "the trace begins after the handshake, and what was agreed in it is not known"


def begins_late(one: Conversed) -> bool:
    """Whether a conversation has frames, and no `initialize` in them: it was recorded from its middle."""
    frames = [event.frame for event in one.events if event.frame is not None]
    return bool(frames) and not any(_is_initialize(frame) for frame in frames)


def _is_initialize(frame: bytes) -> bool:
    # To look for the word first is much faster than to decode each frame of a long trace.
    return b'initialize"' in frame and read(0, 0.0, "client", frame).members.get("method") == "initialize"


def conversations(path: str | Path) -> list[Conversed]:
    """The conversations in a trace file, in the order in which they begin.

    A chain of proxies is recorded in one file: each pair of neighbours is a conversation. A file may also hold several
    recordings, one after the other, each with a first line of its own. A last line that is cut off is left out.
    """
    found: list[Conversed] = []
    with Path(path).open("rb") as file:
        for start, lines in _recordings(file):
            found += _of_recording(start, lines)
    if len(found) > 1:
        for number, one in enumerate(found, 1):
            one.title = one.title or f"conversation {number}"
    return found


def _recordings(file: IO[bytes]) -> Iterator[tuple[int, list[bytes]]]:
    """The lines of each recording in a file, with the number of the first."""
    start, lines = 1, list[bytes]()
    for number, line in enumerate(file, 1):
        if lines and line.startswith(b'{"accord-trace"'):
            yield start, lines
            start, lines = number, []
        lines.append(line)
    yield start, lines


def _of_recording(start: int, lines: list[bytes]) -> list[Conversed]:
    if not lines:
        raise DecodeError("$", "the file is empty, not an Accord trace")
    client = _client_of(lines[0])
    by_hop: dict[frozenset[str], Conversed] = {}
    for number, event in enumerate(read_trace(io.BytesIO(b"".join(lines))), start + 1):
        hop = frozenset(event.hop or ())
        one = by_hop.get(hop)
        if one is None:
            title = " and ".join(event.hop) if event.hop is not None else ""
            # In a trace of a chain, `out` is towards the agent at every hop.
            one = by_hop[hop] = Conversed(title, "out" if event.hop is not None else client)
        one.events.append(event)
        one.lines.append(number)
    return list(by_hop.values()) or [Conversed(client=client)]


def _client_of(header: bytes) -> Direction | None:
    try:
        said = msgspec.json.decode(header, type=dict[str, object]).get("role")
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None  # reading the trace says what is wrong with the line
    return "out" if said == "client" else "in" if said == "agent" else None
