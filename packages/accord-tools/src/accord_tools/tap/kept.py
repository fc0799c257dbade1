"""Kept traces: the folder of traces that were recorded without a file's name, their names, and how many are kept."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import msgspec

from accord import DecodeError
from accord.folders import state_folder
from accord.trace import TraceHeader, read_header
from accord_tools.tap.live import LiveTap, live_taps

ENDINGS = (".jsonl", ".jsonl.gz")


class KeptTrace(msgspec.Struct, frozen=True):
    """A trace in the folder of kept traces, or one that is being written elsewhere."""

    path: str
    size: int
    """Its bytes on the disk."""
    changed: float
    """When it was last written, in seconds since 1970."""
    header: TraceHeader | None = None
    """What its first line says; None if that cannot be read."""
    live: LiveTap | None = None
    """The recording that still writes it; None if it has ended."""


def traces_folder() -> Path:
    """The folder in which traces are kept whose user named no file."""
    return state_folder() / "traces"


def kept_traces() -> list[KeptTrace]:
    """The traces that are kept and those that are being written, wherever they are; the newest first."""
    live = {os.path.realpath(tap.trace): tap for tap in live_taps()}
    paths = {os.path.realpath(path) for path in _files()} | set(live)
    found = [trace for path in paths if (trace := _described(path, live.get(path))) is not None]
    return sorted(found, key=lambda trace: (trace.live is not None, trace.changed, trace.path), reverse=True)


def new_path(command: Sequence[str], started: datetime, pid: int) -> Path:
    """The path of a new trace of this command; its folder exists, for its owner alone."""
    folder = traces_folder()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    program = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(command[0]).name if command else "") or "agent"
    # No colon: Windows has none in names.
    return folder / f"{started.astimezone():%Y-%m-%dT%H-%M-%S}-{program[:40]}-{pid}.jsonl"


def part_path(path: Path, part: int) -> Path:
    """The path of a part of a long recording: `name.jsonl`, then `name.2.jsonl`.

    >>> part_path(Path("wire.jsonl"), 3).name, part_path(Path("wire.jsonl.gz"), 2).name, part_path(Path("wire"), 1).name
    ('wire.3.jsonl', 'wire.2.jsonl.gz', 'wire')
    """
    if part == 1:
        return path
    ending = next((it for it in ENDINGS if path.name.endswith(it)), "")
    return path.with_name(f"{path.name.removesuffix(ending)}.{part}{ending}")


def make_room(most: int) -> None:
    """Remove the oldest kept traces until they take at most so many bytes; none that is being written."""
    traces = [trace for trace in kept_traces() if Path(trace.path).parent == traces_folder().resolve()]
    total = sum(trace.size for trace in traces)
    for trace in reversed(traces):
        if total <= most:
            return
        if trace.live is None:
            Path(trace.path).unlink(missing_ok=True)
            total -= trace.size


def _files() -> list[Path]:
    try:
        return [path for path in traces_folder().iterdir() if path.name.endswith(ENDINGS)]
    except OSError:
        return []


def _described(path: str, live: LiveTap | None) -> KeptTrace | None:
    try:
        found = Path(path).stat()
    except OSError:
        return None
    try:
        header = read_header(path)
    except (OSError, DecodeError):
        header = None
    return KeptTrace(path, found.st_size, found.st_mtime, header, live)
