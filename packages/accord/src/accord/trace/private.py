"""Opens a file for a recording that only its owner can read.

In a folder that other users can write to, the name may be a link that one of them made, so that we overwrite a file of
our own or fill a file of theirs. So the opened descriptor is checked, not the name, and emptied only then.
"""

from __future__ import annotations

import os
import stat
import sys
from typing import IO, TYPE_CHECKING

from accord.errors import AccordError

if TYPE_CHECKING:
    from pathlib import Path


def open_private(path: str | Path) -> IO[bytes]:
    """Open a file for a recording that only this user can read."""
    # Not blocking: opening a named pipe without a reader is an error, and does not stop the program.
    flags = os.O_WRONLY | os.O_CREAT
    flags |= sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))
    try:
        fd = os.open(path, flags, 0o600)
    except OSError as error:
        is_link = os.path.islink(path)  # noqa: PTH114
        problem = "it is a symbolic link; name the file itself" if is_link else error.strerror
        raise AccordError(f"cannot record in {path}: {problem}") from error
    file = os.fdopen(fd, "wb")
    found = os.fstat(fd)
    if problem := _not_private(found):
        file.close()
        raise AccordError(f"cannot record in {path}: {problem}")
    if sys.platform != "win32":
        os.set_blocking(fd, True)
        if stat.S_ISREG(found.st_mode):
            os.fchmod(fd, 0o600)
    if stat.S_ISREG(found.st_mode):
        os.ftruncate(fd, 0)
    return file


def _not_private(found: os.stat_result) -> str | None:
    """Why this file must not hold a trace; None if it may. A device, such as /dev/null, keeps nothing."""
    if sys.platform == "win32" or stat.S_ISCHR(found.st_mode):
        return None
    if found.st_uid != os.geteuid():
        return "it belongs to another user; choose a file of your own"
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "other users can write it; chmod go-w, or choose another file"
    if stat.S_ISREG(found.st_mode) and found.st_nlink > 1:
        return "it has a second name (a hard link); choose another file"
    return None
