"""The folders in which a user's files of Accord belong, on each platform, and a lock for a file in them."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


def config_folder() -> Path:
    """The folder for what this user sets: below XDG_CONFIG_HOME if it is set, else the platform's default."""
    given = os.environ.get("XDG_CONFIG_HOME", "")
    if Path(given).is_absolute():  # XDG Base Directory: relative paths are ignored
        return Path(given) / "accord"
    if sys.platform == "win32":
        return Path(os.environ.get("APPDATA") or Path.home() / "AppData" / "Roaming") / "accord"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "accord"
    return Path.home() / ".config" / "accord"


def data_folder() -> Path:
    """The folder for data that is worth keeping, such as sessions: below XDG_DATA_HOME, else the platform's default."""
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
    """The folder for the state of programs, such as remembered answers: below XDG_STATE_HOME, else the default."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home()) / "accord"
    given = os.environ.get("XDG_STATE_HOME", "")
    return (Path(given) if given.startswith("/") else Path.home() / ".local" / "state") / "accord"


def cache_folder() -> Path:
    """The folder for what can be fetched again: below XDG_CACHE_HOME if it is set, else the platform's default."""
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
