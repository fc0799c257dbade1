"""Operations on a file whose folder is known. `confined` finds the folder."""

from __future__ import annotations

import errno
import os
import stat
import sys
from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path
from typing import Any

from accord.errors import RequestError

HERE = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
"""Flags for every open: close on exec, and do not follow a link."""

QUICK = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
"""Flags for every open: do not wait for a pipe's other end, take no terminal over, do not translate line ends."""


class Folder(ABC):
    """A folder inside a root, and a name in it that is not a link."""

    def __init__(self, path: Path, name: str) -> None:
        self.path = path / name
        """The real path of the name: to display, and to compare."""
        self.name = name

    @abstractmethod
    def at(self, name: str) -> tuple[str, dict[str, Any]]:
        """The path and keywords that functions of `os` take for a name in this folder."""

    @abstractmethod
    def confirm(self) -> None:
        """Raise RequestError if the folder may no longer be where it was."""

    @abstractmethod
    def rename(self, old: str, new: str) -> None:
        """Rename a file of this folder, replacing another."""

    def stat(self) -> os.stat_result | None:
        """The status of the named file, without following a link; None if it does not exist."""
        where, inside = self.at(self.name)
        try:
            return os.stat(where, follow_symlinks=False, **inside)  # noqa: PTH116
        except FileNotFoundError:
            return None

    def open(self) -> int:
        """Open the named file for reading.

        Raises RequestError if it is not a regular file, without waiting for it or reading from it.
        """
        found = self.stat()
        if found is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self.path))
        self._must_be_ordinary(found)
        where, inside = self.at(self.name)
        fd = os.open(where, os.O_RDONLY | HERE | QUICK, **inside)
        try:
            again = os.fstat(fd)  # another file may have replaced it meanwhile
            self._must_be_ordinary(again, known=again.st_dev == found.st_dev)
            self.confirm()
        except BaseException:
            os.close(fd)
            raise
        return fd

    def create(self, name: str, mode: int) -> int:
        """Create a new file for writing."""
        where, inside = self.at(name)
        return os.open(where, os.O_WRONLY | os.O_CREAT | os.O_EXCL | HERE | QUICK, mode, **inside)

    def remove(self, name: str) -> None:
        """Remove a file of this folder."""
        where, inside = self.at(name)
        os.unlink(where, **inside)

    def is_writable(self) -> bool:
        """Whether the permissions of the named file let us write to it."""
        where, inside = self.at(self.name)
        effective = {"effective_ids": True} if os.access in os.supports_effective_ids else {}
        return os.access(where, os.W_OK, **effective, **(inside if os.access in os.supports_dir_fd else {}))

    def _must_be_ordinary(self, found: os.stat_result, *, known: bool = False) -> None:
        if not stat.S_ISREG(found.st_mode):
            raise RequestError.invalid_params(f"path names {_kind(found.st_mode)}, not a file", path=str(self.path))
        if not known:
            refuse_the_kernels_own(found, self.path)


# fmt: off
KERNELS_OWN = frozenset((
    "autofs", "bdev", "binder", "binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "cpuset", "debugfs",
    "devpts", "devtmpfs", "efivarfs", "functionfs", "fuse.lxcfs", "fusectl", "hugetlbfs", "mqueue", "nfsd",
    "nsfs", "pipefs", "proc", "pstore", "resctrl", "rpc_pipefs", "securityfs", "selinuxfs", "smackfs", "sockfs",
    "sysfs", "tracefs",
))
# fmt: on
"""Types of file systems whose files are interfaces of the kernel, so they cannot be project files."""


def refuse_the_kernels_own(found: os.stat_result, path: Path) -> None:
    """Raise RequestError for a file of such a file system."""
    if is_kernels_own(found.st_dev):
        raise RequestError.invalid_params(
            "path names a kernel interface (as in /proc or /sys), not a project file", path=str(path)
        )


# Characters that HFS+ leaves out of names: to macOS, `.g\u200cit` is `.git`.
_IGNORED = dict.fromkeys((*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF))


def refuse_git(name: str, path: Path) -> None:
    """Raise RequestError if some file system takes this name for `.git`."""
    plain = name.translate(_IGNORED).partition(":")[0].rstrip(". ").casefold()
    if plain in (".git", "git~1"):
        raise RequestError.invalid_params(
            "nothing is written to .git: what stands there runs as a program when the user works with git; "
            "use the command git instead",
            path=str(path),
        )


def is_kernels_own(device: int) -> bool:
    """Whether this device is such a file system.

    Such a file system has no disk, so its device has the major number 0; the table of mounts is read only for those.
    The answer is not cached, because file systems are mounted at any time.
    """
    if sys.platform == "win32" or os.major(device) != 0:
        return False
    with suppress(OSError, UnicodeDecodeError, ValueError):
        wanted = f"{os.major(device)}:{os.minor(device)}"
        for line in Path("/proc/self/mountinfo").read_text("utf-8", "surrogateescape").splitlines():
            fields, _, source = line.partition(" - ")
            if fields.split(" ", 3)[2] == wanted:
                return source.split(" ", 1)[0] in KERNELS_OWN
    return False


_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISLNK, "a link"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def _kind(mode: int) -> str:
    return next((name for test, name in _KINDS if test(mode)), "something")
