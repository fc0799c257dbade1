"""Writing a file as a whole: whoever reads it sees the old text or the new, never half of one.

The new text goes into a file beside the old one, which then takes its name. So a second name of the old file (a hard
link, perhaps outside of the roots) keeps the old text, and what a crash leaves is at most the file beside it. The new
file gives nobody a right that the old one did not give (`rights`).
"""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress

from accord.errors import RequestError
from accord.services.files.folder import Folder
from accord.services.files.rights import copy_rights

PRIVATE = 0o600
USUAL = 0o666  # less what the process's umask takes away


def replace(folder: Folder, data: bytes, *, sync: bool = False) -> None:
    """Give what `folder` names this content; it keeps its rights, or gets the usual ones if it is new."""
    old = folder.stat()
    if old is not None:
        _must_be_replaceable(folder, old)
    beside = f".accord-{secrets.token_hex(8)}"
    fd = folder.create(beside, USUAL if old is None else PRIVATE)
    try:
        try:
            if old is not None:
                _make_like(folder, fd)
            _write_all(fd, data)
            if sync:
                os.fsync(fd)
        finally:
            os.close(fd)
        folder.rename(beside, folder.name)
    except BaseException:
        with suppress(OSError):
            folder.remove(beside)
        raise


def _must_be_replaceable(folder: Folder, old: os.stat_result) -> None:
    if not stat.S_ISREG(old.st_mode):
        raise RequestError.invalid_params("not a file: it cannot be written", path=str(folder.path))
    if not folder.is_writable():
        # Whoever may write to the folder could replace the file all the same; read-only is meant, though.
        raise RequestError.invalid_params("the file is read-only", path=str(folder.path))


def _make_like(folder: Folder, new: int) -> None:
    old = folder.open()
    try:
        copy_rights(old, new)
    except OSError as error:
        raise RequestError.invalid_params(
            "the new file cannot be given the rights of the old one, so it is not written: "
            f"{error.strerror}; change the file's owner, access list or label, or write it yourself",
            path=str(folder.path),
        ) from error
    finally:
        os.close(old)


def _write_all(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]
