"""The recorder's process: reads the tap's parcels from standard input, and writes the trace.

    python -m accord_tools.tap.recorder

It ends when its input does. Its standard output is one line with the reason if the recording is incomplete.

The files of a `Recording` come one after another when they are large, and are compressed when they are complete.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING

import msgspec

from accord import AccordError, TraceEvent, TraceFile, __version__
from accord.jsonrpc.line_frames import FrameReader, Oversized
from accord.trace import FORMAT, IN, OUT, TraceHeader
from accord_tools.tap.recorder_protocol import (
    FROM_AGENT,
    LOST,
    PROCESS,
    STDERR,
    TO_AGENT,
    Parcel,
    RecordingPlan,
    unpack,
)
from accord_tools.tap.trace_folder import Announcement, LiveTap, announced, make_room, new_path, part_path

if TYPE_CHECKING:
    from accord.trace import Direction


class Recording:
    """Writes events to the files that a plan names."""

    def __init__(self, plan: RecordingPlan) -> None:
        self.announcement: Announcement | None = None
        """The descriptor that names the file that is being written."""
        self._plan = plan
        self._compresses = plan.compress or (plan.path or "").endswith(".gz")
        self._is_stored = plan.path is None
        named = None if plan.path is None else Path(plan.path.removesuffix(".gz"))
        self._first = named or new_path(plan.command, datetime.fromisoformat(plan.started), plan.pid)
        self._part = 0
        self._problem: OSError | None = None
        self._compressing: list[threading.Thread] = []
        self._next()

    @property
    def path(self) -> Path:
        """The file that is being written."""
        return part_path(self._first, self._part)

    @property
    def problem(self) -> OSError | None:
        """Why the recording has ended; None while it continues."""
        return self._problem or self._file.problem

    def __call__(self, event: TraceEvent) -> None:
        """Record this event: a recording is an observer."""
        if self._file.size > self._plan.most_file and self._file.problem is None:
            self._close()
            self._next()
            if self.announcement is not None:
                self.announcement.update(trace=str(self.path.absolute()))
        self._file(event)

    def close(self) -> None:
        """Complete the last file, and wait until all are compressed."""
        self._close()
        for thread in self._compressing:
            thread.join()

    def _next(self) -> None:
        self._part += 1
        if self._is_stored:
            make_room(self._plan.most_folder)
        elif self._plan.most_parts:
            self._remove_oldest_parts()
        self._file = TraceFile(self.path, secrets=self._plan.secrets, header=self._header(), began=self._plan.began)

    def _header(self) -> TraceHeader:
        plan = self._plan
        return TraceHeader(
            FORMAT,
            plan.started,
            plan.role,
            peer=plan.peer or " ".join(plan.command),
            tool=f"accord {__version__}",
            command=plan.command,
            cwd=plan.cwd,
            part=self._part,
        )

    def _close(self) -> None:
        self._file.close()
        if not self._compresses or self._file.problem is not None:
            return
        if not self._plan.is_beside:
            self._compress(self.path)
            return
        thread = threading.Thread(target=self._compress, args=(self.path,), name="accord recording: compress")
        self._compressing.append(thread)
        thread.start()

    def _compress(self, path: Path) -> None:
        try:
            compress(path)
        except OSError as error:
            self._problem = error

    def _remove_oldest_parts(self) -> None:
        """Make room for one more part. The first part is as old as any other one."""
        room = self._plan.most_parts - self._plan.most_file
        for part in range(self._part - 1, 0, -1):
            path = part_path(self._first, part)
            written = next((it for it in (path, path.with_name(f"{path.name}.gz")) if it.exists()), None)
            if written is None:
                return
            room -= written.stat().st_size
            if room < 0:
                written.unlink(missing_ok=True)


def compress(path: Path) -> None:
    """Replace a file by its compressed form, which is complete when it has its name."""
    import gzip

    target = path.with_name(f"{path.name}.gz")
    hidden = target.with_name(f"{target.name}.new")
    fd = os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        with os.fdopen(fd, "wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb") as packed, path.open("rb") as plain:
            shutil.copyfileobj(plain, packed, 1 << 20)
        hidden.replace(target)
    except OSError:
        hidden.unlink(missing_ok=True)
        raise
    path.unlink()


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
    parcels = unpack(source)
    first = next(parcels, None)
    if first is None:
        return "the tap ended before it began"
    plan = msgspec.json.decode(first.content, type=RecordingPlan)
    try:
        recording = Recording(plan)
    except (AccordError, OSError) as error:
        _drain(source)
        return str(error)
    with announced(live_tap(plan, recording)) as recording.announcement:
        streams = TapStreams(recording)
        for parcel in parcels:
            streams.take(parcel)
        streams.end()
        recording.close()
    return None if recording.problem is None else recording.problem.strerror or str(recording.problem)


def live_tap(plan: RecordingPlan, recording: Recording) -> LiveTap:
    """Return what viewers find of a recording that this process writes."""
    from accord.redaction import mask_urls

    return LiveTap(
        trace=str(recording.path.absolute()),
        started=plan.started,
        role=plan.role,
        pid=plan.pid,
        recorder=os.getpid(),
        command=tuple(mask_urls(word) for word in plan.command),
        cwd=plan.cwd,
    )


def _drain(source: IO[bytes]) -> None:
    while source.read(1 << 16):
        pass


class TapStreams:
    """The three streams of an agent: bytes become frames and lines, and those become events."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._frames = {TO_AGENT: FrameReader(), FROM_AGENT: FrameReader(), STDERR: FrameReader(LONGEST_LINE)}
        self._skips: set[bytes] = set()
        """The streams of which bytes were lost: reading resumes at the next line."""
        self._has_ended = False
        self._time = 0.0

    def take(self, parcel: Parcel) -> None:
        """Record the frames and lines that a parcel completes."""
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
        self._recording(TraceEvent(parcel.time, IN, process=event))

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
            self._recording(TraceEvent(self._time, direction, stderr=frame.decode("utf-8", "replace")))
        else:
            self._recording(TraceEvent(self._time, direction, frame))

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
        self._recording(TraceEvent(self._time, direction, note=note))


if __name__ == "__main__":
    sys.exit(main())
