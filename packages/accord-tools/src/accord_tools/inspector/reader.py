"""`TraceReader`: reads a trace file by position while it may still grow.

The file is not mapped into memory: a mapped file that another process truncates ends its reader with SIGBUS. Reading by
position is as fast. A compressed trace is unpacked into a private temporary file first.
"""

from __future__ import annotations

import gzip
import os
import shutil
import stat
import tempfile
import zlib
from pathlib import Path
from typing import IO

from accord import AccordError

MOST_UNPACKED = 4 * 1024**3
"""Bytes that a compressed trace may have when it is unpacked."""


class TraceReader:
    """An open trace file."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._file = _opened(self.path)
        self._identity = _identity(self.path)
        self._is_packed = self.path.suffix == ".gz"

    @property
    def size(self) -> int:
        """How many bytes the file has now."""
        return os.fstat(self._file.fileno()).st_size

    def read(self, offset: int, size: int) -> bytes:
        """Up to `size` bytes from this position on; fewer at the end of the file."""
        self._file.seek(offset)
        return self._file.read(size)

    def is_replaced(self, consumed: int) -> bool:
        """Whether the path names another file by now, or the file has become shorter than what was read."""
        if self._is_packed:
            return False
        now = _identity(self.path)
        return self.size < consumed or (now is not None and now != self._identity)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _opened(path: Path) -> IO[bytes]:
    try:
        # Not blocking: opening a named pipe without a writer would wait for one.
        file = os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)), "rb")
    except OSError as error:
        raise AccordError(f"cannot read the trace {path}: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise AccordError(f"cannot read the trace {path}: it is not a regular file")
    return _unpacked(path, file) if path.suffix == ".gz" else file


def _unpacked(path: Path, packed: IO[bytes]) -> IO[bytes]:
    """The content of a compressed trace, up to where a crash cut it off."""
    unpacked = tempfile.TemporaryFile()  # noqa: SIM115
    try:
        with packed, gzip.open(packed) as content:
            shutil.copyfileobj(_Bounded(content), unpacked)
    except EOFError:
        pass
    except (OSError, zlib.error) as error:
        unpacked.close()
        raise AccordError(f"cannot unpack the trace {path}: {error}") from error
    unpacked.flush()
    return unpacked


class _Bounded:
    def __init__(self, content: gzip.GzipFile) -> None:
        self._content = content
        self._left = MOST_UNPACKED

    def read(self, size: int = -1) -> bytes:
        data = self._content.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise OSError(f"more than {MOST_UNPACKED:,} bytes when it is unpacked")
        return data


def _identity(path: Path) -> tuple[int, int] | None:
    """The device and inode of a path; None if it is gone: the open file then stays what it was."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
