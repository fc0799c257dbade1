"""The traces that are stored without a file's name, and those that are being written.

A trace that is being written has a descriptor file, so that viewers find it. The problem: a viewer must know which
traces still grow, even after a recorder was killed and its number was given to another process. The rule: the recorder
holds a lock on its descriptor for as long as it lives. The kernel releases the lock with the process, however that
ends. So a descriptor that can be locked is stale, and a viewer removes it.

A descriptor is JSON, readable by its owner alone, in the folder `taps` of Accord's state folder. Its members are those
of `LiveTap`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

import msgspec

from accord import DecodeError
from accord.paths import state_folder
from accord.trace import TraceHeader, read_header
from accord_tools.state_file import try_lock

SUFFIX = ".json"


class LiveTap(msgspec.Struct, frozen=True):
    """A running recording."""

    trace: str
    """The path of the file that grows; of its last part, where it has several."""
    started: str
    """When the recording began, in ISO 8601 with an offset."""
    role: str = "tap"
    """The recording side: `tap`, `client`, `agent` or `conductor`."""
    pid: int = 0
    """The process that the editor started, or that was started at a terminal."""
    recorder: int = 0
    """The process that writes the trace."""
    agent: int = 0
    """The agent's process, where the recorder knows it."""
    command: tuple[str, ...] = ()
    """The agent's command, with secrets in URLs masked."""
    cwd: str = ""
    """The folder in which the agent was started."""


class Announcement:
    """The descriptor of a recording of this process. `update` changes the file of the trace."""

    def __init__(self, path: Path, fd: int, tap: LiveTap) -> None:
        self._path = path
        self._fd = fd
        self._tap = tap

    def update(self, **changes: str | int) -> None:
        """Change members of the descriptor, such as `trace`: the file in which the recording continues."""
        self._tap = msgspec.structs.replace(self._tap, **changes)
        with suppress(OSError, UnicodeEncodeError):
            self.write()

    def write(self) -> None:
        """Write the descriptor: the same file, because its lock belongs to it."""
        content = msgspec.json.encode(self._tap)
        os.lseek(self._fd, 0, os.SEEK_SET)
        os.write(self._fd, content)
        os.ftruncate(self._fd, len(content))

    def withdraw(self) -> None:
        """Remove the descriptor: the recording has ended."""
        with suppress(OSError):
            self._path.unlink()
        with suppress(OSError):
            os.close(self._fd)


def taps_folder() -> Path:
    """The folder of the descriptors."""
    return state_folder() / "taps"


@contextmanager
def announced(tap: LiveTap) -> Generator[Announcement | None]:
    """Announce a recording of this process during this block; None if the descriptor cannot be written."""
    announcement = None
    with suppress(OSError, UnicodeEncodeError):  # a path may be no text
        announcement = _announce(tap)
    try:
        yield announcement
    finally:
        if announcement is not None:
            announcement.withdraw()


def live_taps() -> list[LiveTap]:
    """Return the running recordings, the oldest first. Descriptors that a killed recorder left are removed."""
    try:
        paths = sorted(taps_folder().glob(f"*{SUFFIX}"))
    except OSError:
        return []
    found = [tap for path in paths if (tap := _read_tap(path)) is not None]
    return sorted(found, key=lambda tap: tap.started)


def _announce(tap: LiveTap) -> Announcement:
    folder = taps_folder()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Hidden until it is locked and complete: a reader would take it for stale and remove it.
    path = folder / f"{os.getpid()}-{os.urandom(4).hex()}{SUFFIX}"
    hidden = path.with_suffix(".new")
    fd = os.open(hidden, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o600)
    announcement = Announcement(path, fd, tap)
    try:
        if not try_lock(fd):
            raise OSError("this file system has no locks")  # noqa: TRY301 - the file is removed below
        announcement.write()
        hidden.rename(path)
    except (OSError, UnicodeEncodeError):
        os.close(fd)
        hidden.unlink(missing_ok=True)
        raise
    return announcement


def _read_tap(path: Path) -> LiveTap | None:
    try:
        fd = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0))
    except OSError:
        return None
    try:
        if try_lock(fd, shared=True):  # shared: two readers do not take each other for a recorder
            path.unlink(missing_ok=True)
            return None
        return msgspec.json.decode(os.read(fd, 1 << 20), type=LiveTap)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None
    finally:
        os.close(fd)


ENDINGS = (".jsonl", ".jsonl.gz")


class KeptTrace(msgspec.Struct, frozen=True):
    """A trace in the folder of stored traces, or one that is being written elsewhere."""

    path: str
    size: int
    """Its bytes on the disk."""
    changed: float
    """When it was last written, in seconds since 1970."""
    header: TraceHeader | None = None
    """Its first line; None if that cannot be read."""
    live: LiveTap | None = None
    """The recording that still writes it; None if it has ended."""


def traces_folder() -> Path:
    """Return the folder of the traces whose user named no file."""
    return state_folder() / "traces"


def kept_traces() -> list[KeptTrace]:
    """Return the stored traces and those that are being written, wherever they are; the newest first."""
    live = {os.path.realpath(tap.trace): tap for tap in live_taps()}
    paths = {os.path.realpath(path) for path in _files()} | set(live)
    found = [trace for path in paths if (trace := _described(path, live.get(path))) is not None]
    return sorted(found, key=lambda trace: (trace.live is not None, trace.changed, trace.path), reverse=True)


def new_path(command: Sequence[str], started: datetime, pid: int) -> Path:
    """The path of a new trace of this command; its folder exists, for its owner alone."""
    folder = traces_folder()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    program = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(command[0]).name if command else "") or "agent"
    # No colon: Windows allows none in names.
    return folder / f"{started.astimezone():%Y-%m-%dT%H-%M-%S}-{program[:40]}-{pid}.jsonl"


def part_path(path: Path, part: int) -> Path:
    """Return the path of a part of a long recording: `name.jsonl`, then `name.2.jsonl`.

    >>> part_path(Path("wire.jsonl"), 3).name, part_path(Path("wire.jsonl.gz"), 2).name, part_path(Path("wire"), 1).name
    ('wire.3.jsonl', 'wire.2.jsonl.gz', 'wire')
    """
    if part == 1:
        return path
    ending = next((it for it in ENDINGS if path.name.endswith(it)), "")
    return path.with_name(f"{path.name.removesuffix(ending)}.{part}{ending}")


def make_room(most: int) -> None:
    """Remove the oldest stored traces until they take at most this many bytes; none that is being written."""
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
