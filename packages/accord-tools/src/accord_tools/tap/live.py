"""Live taps: a descriptor file for each trace that is being written, so that viewers find it.

The problem: a viewer must know which traces still grow, also after a recorder was killed and its number was given to
another process. The rule: the recorder holds a lock on its descriptor for as long as it lives. The kernel releases the
lock with the process, however that ends. So a descriptor that can be locked is stale, and a viewer removes it.

A descriptor is JSON, readable by its owner alone, in the folder `taps` of Accord's state folder. Its members are those
of `LiveTap`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from accord.folders import state_folder

SUFFIX = ".json"


class LiveTap(msgspec.Struct, frozen=True):
    """A recording that goes on."""

    trace: str
    """The path of the file that grows; of its last part, where it has several."""
    started: str
    """When the recording began, in ISO 8601 with an offset."""
    role: str = "tap"
    """Who records: `tap`, `client`, `agent` or `conductor`."""
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
    """The descriptor of a recording of this process. `update` says where the trace goes on."""

    def __init__(self, path: Path, fd: int, tap: LiveTap) -> None:
        self._path = path
        self._fd = fd
        self._tap = tap

    def update(self, **changes: str | int) -> None:
        """Change members of the descriptor, such as `trace`: the file in which the recording goes on."""
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
    """Announce a recording of this process while this context is open; None if the descriptor cannot be written."""
    announcement = None
    with suppress(OSError, UnicodeEncodeError):  # a path may be no text
        announcement = _announce(tap)
    try:
        yield announcement
    finally:
        if announcement is not None:
            announcement.withdraw()


def live_taps() -> list[LiveTap]:
    """The recordings that go on now, the oldest first. Descriptors that a killed recorder left are removed."""
    try:
        paths = sorted(taps_folder().glob(f"*{SUFFIX}"))
    except OSError:
        return []
    found = [tap for path in paths if (tap := _read(path)) is not None]
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
        _lock(fd)
        announcement.write()
        hidden.rename(path)
    except (OSError, UnicodeEncodeError):
        os.close(fd)
        hidden.unlink(missing_ok=True)
        raise
    return announcement


def _read(path: Path) -> LiveTap | None:
    try:
        fd = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0))
    except OSError:
        return None
    try:
        if not _is_locked(fd):
            path.unlink(missing_ok=True)
            return None
        return msgspec.json.decode(os.read(fd, 1 << 20), type=LiveTap)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None
    finally:
        os.close(fd)


if sys.platform == "win32":
    import msvcrt

    _FAR = 1 << 30
    """The byte that is locked: Windows does not let others read locked bytes."""

    def _lock(fd: int) -> None:
        os.lseek(fd, _FAR, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)

    def _is_locked(fd: int) -> bool:
        os.lseek(fd, _FAR, os.SEEK_SET)
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except OSError:
            return True
        finally:
            os.lseek(fd, 0, os.SEEK_SET)
        return False

else:
    import fcntl

    def _lock(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _is_locked(fd: int) -> bool:
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared: two readers do not take each other for a recorder
        except OSError:
            return True
        return False
