"""The recorder's process: reads what a tap forwards from standard input, and writes the trace.

    python -m accord_tools.tap.recorder

It ends when its input does. Its standard output is one line if the recording is incomplete: why.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import IO, TYPE_CHECKING

import msgspec

from accord import AccordError, TraceEvent
from accord.jsonrpc.line_frames import FrameReader, Oversized
from accord.trace import IN, OUT
from accord_tools.tap.live import LiveTap, announced
from accord_tools.tap.parcels import FROM_AGENT, LOST, PROCESS, STDERR, TO_AGENT, Parcel, unpacked
from accord_tools.tap.plan import RecordingPlan
from accord_tools.tap.recording import Recording

if TYPE_CHECKING:
    from accord.trace import Direction

LONGEST_LINE = 64 * 1024
"""Bytes of a line of standard error that are recorded."""
LOW_PRIORITY = 5


def main() -> int:
    """Record until the input ends."""
    if sys.platform != "win32":
        with suppress(OSError):
            os.nice(LOW_PRIORITY)  # the conversation comes first
    problem = record(sys.stdin.buffer)
    if problem is not None:
        print(problem)
    return 0


def record(source: IO[bytes]) -> str | None:
    """Write the trace of these parcels; returns why it is incomplete, if it is."""
    parcels = unpacked(source)
    first = next(parcels, None)
    if first is None:
        return "the tap ended before it began"
    plan = msgspec.json.decode(first.content, type=RecordingPlan)
    try:
        recording = Recording(plan)
    except (AccordError, OSError) as error:
        _drain(source)
        return str(error)
    with announced(_tap(plan, recording)) as recording.announcement:
        streams = Streams(recording)
        for parcel in parcels:
            streams.take(parcel)
        streams.end()
        recording.close()
    return None if recording.problem is None else recording.problem.strerror or str(recording.problem)


def _tap(plan: RecordingPlan, recording: Recording) -> LiveTap:
    from accord.masking import mask_urls

    return LiveTap(
        trace=str(recording.path.absolute()),
        started=plan.started,
        pid=plan.pid,
        recorder=os.getpid(),
        command=tuple(mask_urls(word) for word in plan.command),
        cwd=plan.cwd,
    )


def _drain(source: IO[bytes]) -> None:
    while source.read(1 << 16):
        pass


class Streams:
    """The three streams of an agent: bytes become frames and lines, and those become events."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._frames = {TO_AGENT: FrameReader(), FROM_AGENT: FrameReader(), STDERR: FrameReader(LONGEST_LINE)}
        self._skips: set[bytes] = set()
        """The streams of which bytes were lost: they are read again from the next line on."""
        self._has_ended = False
        self._time = 0.0

    def take(self, parcel: Parcel) -> None:
        """Record what a parcel completes."""
        self._time = parcel.time
        if parcel.kind == PROCESS:
            self._process(parcel)
        elif parcel.kind == LOST:
            self._lost(parcel.content[:1], int(parcel.content[1:]))
        elif parcel.kind in self._frames:
            self._bytes(parcel.kind, parcel.content)

    def end(self) -> None:
        """Record the last lines, which may lack their newline, and that the tap was killed if it was."""
        self._finish()
        if not self._has_ended:
            self._note(OUT, "lost: the tap ended before the agent did")

    def _process(self, parcel: Parcel) -> None:
        event = msgspec.json.decode(parcel.content, type=dict[str, object])
        if event.get("event") == "exited":
            self._finish()
            self._has_ended = True
        if self._recording.announcement is not None and isinstance(pid := event.get("pid"), int):
            self._recording.announcement.update(agent=pid)
        self._recording.add(TraceEvent(parcel.time, IN, process=event))

    def _bytes(self, kind: bytes, chunk: bytes) -> None:
        if kind in self._skips:
            _, newline, chunk = chunk.partition(b"\n")
            if not newline:
                return
            self._skips.discard(kind)
        for frame in self._frames[kind].feed(chunk):
            self._frame(kind, frame)

    def _frame(self, kind: bytes, frame: bytes | Oversized) -> None:
        direction: Direction = OUT if kind == TO_AGENT else IN
        if isinstance(frame, Oversized):
            what = "a line of standard error" if kind == STDERR else "a message"
            self._note(direction, f"lost: {what} of {frame.length:,} bytes is too long to be recorded")
        elif kind == STDERR:
            self._recording.add(TraceEvent(self._time, direction, stderr=frame.decode("utf-8", "replace")))
        else:
            self._recording.add(TraceEvent(self._time, direction, frame))

    def _lost(self, kind: bytes, size: int) -> None:
        direction: Direction = OUT if kind == TO_AGENT else IN
        self._frames[kind] = FrameReader(LONGEST_LINE) if kind == STDERR else FrameReader()
        self._skips.add(kind)
        self._note(direction, f"lost: {size:,} bytes or more; the recorder was too slow")

    def _finish(self) -> None:
        for kind, frames in self._frames.items():
            for frame in frames.finish():
                self._frame(kind, frame)

    def _note(self, direction: Direction, note: str) -> None:
        self._recording.add(TraceEvent(self._time, direction, note=note))


if __name__ == "__main__":
    sys.exit(main())
