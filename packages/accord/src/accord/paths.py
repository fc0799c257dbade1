r"""Paths: the folders of a user's files of Accord, on each platform, a lock for a file, and the path of a `file:` URI.

| URI | POSIX | Windows |
|---|---|---|
| `file:///w/a%20b.py`, `file://localhost/w/a%20b.py` | `/w/a b.py` | `\w\a b.py` |
| `file:///C:/a.py`, `file:///C%3A/a.py`, `file:/C|/a.py` | `C:/a.py` | `C:\a.py` |
| `file://server/share/a.py` | none: it is on another machine | `\\server\share\a.py` |
| `file:////server/share/a.py` | `//server/share/a.py` | `\\server\share\a.py` |
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path, PureWindowsPath
from urllib.parse import unquote, urlsplit


def config_folder() -> Path:
    """Return the folder for the user's settings: below XDG_CONFIG_HOME if it is set, else the platform's default."""
    given = os.environ.get("XDG_CONFIG_HOME", "")
    if Path(given).is_absolute():  # XDG Base Directory: relative paths are ignored
        return Path(given) / "accord"
    if sys.platform == "win32":
        return Path(os.environ.get("APPDATA") or Path.home() / "AppData" / "Roaming") / "accord"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "accord"
    return Path.home() / ".config" / "accord"


def data_folder() -> Path:
    """Return the folder for data worth keeping, such as sessions: below XDG_DATA_HOME, else the platform's default."""
    given = os.environ.get("XDG_DATA_HOME", "")
    if given and Path(given).is_absolute():  # XDG Base Directory: relative paths are ignored
        return Path(given) / "accord"
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA", "")
        return Path(local) / "accord" if local else Path.home() / "AppData" / "Local" / "accord"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "accord"
    return Path.home() / ".local" / "share" / "accord"


def state_folder() -> Path:
    """Return the folder for the state of programs, such as remembered answers: below XDG_STATE_HOME, else the
    default.
    """
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home()) / "accord"
    given = os.environ.get("XDG_STATE_HOME", "")
    return (Path(given) if given.startswith("/") else Path.home() / ".local" / "state") / "accord"


def cache_folder() -> Path:
    """Return the folder for data that can be fetched again: below XDG_CACHE_HOME if it is set, else the platform's
    default.
    """
    given = os.environ.get("XDG_CACHE_HOME", "")
    if given and Path(given).is_absolute():  # XDG Base Directory: relative paths are ignored
        return Path(given) / "accord"
    if sys.platform == "win32":
        return data_folder() / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "accord"
    return Path.home() / ".cache" / "accord"


@contextmanager
def locked(path: Path) -> Generator[None]:
    """Hold the lock file beside this file; its folder is created if it is missing."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _lock(lock)
        yield
    finally:
        os.close(lock)  # releases the lock


if sys.platform == "win32":

    def _lock(fd: int) -> None:
        import msvcrt

        os.lseek(fd, 0, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_LOCK, 1)

else:

    def _lock(fd: int) -> None:
        import fcntl

        fcntl.flock(fd, fcntl.LOCK_EX)


def replace_file(path: Path, data: bytes) -> None:
    """Replace the content of a file of our own, which only its owner may read."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    with replacement(
        lambda name: os.open(path.with_name(name), flags, 0o600),
        lambda name: path.with_name(name).replace(path),
        lambda name: path.with_name(name).unlink(),
    ) as fd:
        write_all(fd, data)


def write_all(fd: int, data: bytes) -> None:
    """Write all of the data: `os.write` may write less."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


@contextmanager
def replacement(
    create: Callable[[str], int], rename: Callable[[str], object], remove: Callable[[str], object]
) -> Generator[int]:
    """A new file to write to, renamed at the end, or removed if that failed."""
    name = f".accord-{os.urandom(8).hex()}"
    fd = create(name)
    try:
        try:
            yield fd
        finally:
            os.close(fd)
        rename(name)
    except BaseException:
        with suppress(OSError):
            remove(name)
        raise


_DRIVE = re.compile(r"/?([a-zA-Z])[:|](?=/|$)")


def is_file_uri(text: str) -> bool:
    """Whether this is a `file:` URI."""
    return text[:5].lower() == "file:"


def path_of_uri(uri: str) -> Path | None:
    """Return the path of a `file:` URI on this machine; None for another URI, and for a path on another machine.

    >>> str(path_of_uri("file:///w/a%20b.py")).replace("\\\\", "/")
    '/w/a b.py'
    """
    text = path_text(uri, windows=sys.platform == "win32")
    return None if text is None else Path(text)


def path_text(uri: str, *, windows: bool) -> str | None:
    """Return the path of a `file:` URI as text, on Windows or on another system; None if it has none there."""
    if not is_file_uri(uri):
        return None
    parts = urlsplit(uri)
    plain = unquote(parts.path)
    if "\0" in plain:
        return None
    host = "" if parts.netloc.lower() == "localhost" else unquote(parts.netloc)
    if _DRIVE.fullmatch(host):  # file://C:/a.py, which some programs write
        plain, host = f"/{host}{plain}", ""
    if drive := _DRIVE.match(plain):
        plain = f"{drive[1]}:{plain[drive.end() :]}"
        return str(PureWindowsPath(plain)) if windows else plain
    if windows:
        return str(PureWindowsPath(f"//{host}{plain}" if host else plain))
    return None if host else plain
