"""Atomic writes: a reader sees the old content of a file or the new, never half of one.

The new content goes into a new file in the same folder, which then takes the old one's name. So a second name of the
old file (a hard link, perhaps outside the roots) keeps the old content, and a crash leaves at most the new file under
its temporary name. The new file grants no right that the old one did not grant (`rights`).
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from accord.errors import RequestError
from accord.project.folder import Folder
from accord.services.files.rights import copy_rights

PRIVATE = 0o600
USUAL = 0o666  # less what the process's umask takes away


def replace(folder: Folder, data: bytes, *, sync: bool = False) -> None:
    """Give the file that `folder` names this content.

    The file keeps its rights. A new file gets those of the process's umask.
    """
    old = folder.stat()
    if old is not None:
        _must_be_replaceable(folder, old)
    mode = USUAL if old is None else PRIVATE
    with _taking_the_place(
        lambda name: folder.create(name, mode), lambda name: folder.rename(name, folder.name), folder.remove
    ) as fd:
        if old is not None:
            _make_like(folder, fd)
        write_all(fd, data)
        if sync:
            os.fsync(fd)


def replace_own(path: Path, data: bytes) -> None:
    """Give a file of our own, which only its owner may read, this content."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    with _taking_the_place(
        lambda name: os.open(path.with_name(name), flags, PRIVATE),
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
def _taking_the_place(
    create: Callable[[str], int], rename: Callable[[str], object], remove: Callable[[str], object]
) -> Generator[int]:
    """A new file to write to, renamed at the end, or removed if that failed."""
    name = f".accord-{secrets.token_hex(8)}"
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


def _must_be_replaceable(folder: Folder, old: os.stat_result) -> None:
    if not stat.S_ISREG(old.st_mode):
        raise RequestError.invalid_params("not a regular file, so it cannot be written", path=str(folder.path))
    if not folder.is_writable():
        # A user who may write to the folder could still replace the file; the user's intention counts.
        raise RequestError.invalid_params("the file is read-only; make it writable to change it", path=str(folder.path))


def _make_like(folder: Folder, new: int) -> None:
    old = folder.open()
    try:
        copy_rights(old, new)
    except OSError as error:
        raise RequestError.invalid_params(
            f"the file was not written, because its permissions cannot be kept: {error.strerror}; "
            "change its owner, access list or label, or edit it yourself",
            path=str(folder.path),
        ) from error
    finally:
        os.close(old)
