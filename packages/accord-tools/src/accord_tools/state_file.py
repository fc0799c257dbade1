"""`StateFile`: a JSON file in the user's folder for state, which several programs may read and change at once; and
locks that end with their process.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from accord.paths import locked, replace_file, state_folder

ContentT = TypeVar("ContentT")


class StateFile(Generic[ContentT]):
    """A file of this name with a `kind` in it.

    It is made at import, not in a function: msgspec's first use of a class is not safe in two threads.
    """

    def __init__(self, name: str, kind: type[ContentT]) -> None:
        self._name = name
        self._kind = kind
        self._decode = msgspec.json.Decoder(kind).decode

    @property
    def path(self) -> Path:
        """Return the file's path, which the environment decides."""
        return state_folder() / self._name

    def read(self) -> ContentT:
        """The content; an empty one if the file is missing or cannot be read."""
        with suppress(OSError, msgspec.DecodeError, UnicodeDecodeError):
            return self._decode(self.path.read_bytes())
        return self._kind()

    @contextmanager
    def changed(self) -> Generator[ContentT]:
        """The content, to be changed in this context and then written; raises OSError if that fails."""
        with locked(self.path):
            content = self.read()
            yield content
            replace_file(self.path, msgspec.json.format(msgspec.json.encode(content)) + b"\n")


if sys.platform == "win32":
    import msvcrt

    _FAR = 1 << 30
    """The byte that is locked: Windows does not let others read locked bytes."""

    def try_lock(fd: int, *, shared: bool = False) -> bool:  # noqa: ARG001 - Windows has exclusive locks only
        """Lock an open file unless another process holds it; returns whether it is locked now."""
        os.lseek(fd, _FAR, os.SEEK_SET)
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        finally:
            os.lseek(fd, 0, os.SEEK_SET)
        return True

else:
    import fcntl

    def try_lock(fd: int, *, shared: bool = False) -> bool:
        """Lock an open file unless another process holds it; returns whether it is locked now."""
        try:
            fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except OSError:
            return False
        return True
