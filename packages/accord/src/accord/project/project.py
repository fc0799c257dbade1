"""`Project`: opens and lists files of a folder with untrusted contents.

The problem: an archive, a shared disk or a clone can contain anything. A link leads to a key of the user, a pipe is
never written to, a device never ends, a sparse file claims 10 GB, folders are nested thousands deep. A path that was
checked may be something else when it is opened.

The rule: every file is opened by `confined`, from descriptor to descriptor, so no link leads out of the folder. Its
kind and its size are those of the open descriptor. The caller chooses the number of bytes, and no more are read. A
listing does not follow links, and is limited in entries and levels.

A path outside of the folder that the user wrote is the user's own choice: `read_named` follows its links, and still
refuses anything but an ordinary file.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from pathlib import Path

from accord.errors import RequestError
from accord.project.confined import HERE, QUICK, Roots, folder_of, is_kernels_own, is_link, opened

CHUNK = 256 * 1024
"""Bytes that are read at a time."""

DEEPEST = 64
"""Levels of folders that a listing enters: each holds a descriptor."""

MOST_ENTRIES = 500_000
"""Entries of folders that a listing examines, in all."""

SKIPPED = frozenset((
    ".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", ".mypy_cache", ".ruff_cache", ".pytest_cache",
))  # fmt: skip
"""Folders that a listing skips: they hold downloaded, built or recorded files."""


class Project:
    """The files of a session's folders.

    >>> Project(["/srv/project"]).size("/etc/passwd") is None
    True
    """

    def __init__(self, folders: Roots | Collection[str | os.PathLike[str]]) -> None:
        self.roots = folders if isinstance(folders, Roots) else Roots(folders)

    def __contains__(self, path: str | os.PathLike[str]) -> bool:
        """Whether a path is below the folders, by its name."""
        return path in self.roots

    @contextmanager
    def open(self, path: str | os.PathLike[str]) -> Generator[int]:
        """Open a file for reading; returns a descriptor.

        Raises ValueError if it is outside of the folders or not a regular file, OSError if it cannot be opened.
        """
        with ExitStack() as held:
            try:
                fd = held.enter_context(folder_of(self.roots.locate(path), self.roots)).open()
            except RequestError as error:
                raise ValueError(f"{os.fspath(path)}: {error.message}") from error
            held.callback(os.close, fd)
            yield fd

    @contextmanager
    def enter(self, folder: str | os.PathLike[str]) -> Generator[tuple[Path, int | None]]:
        """Open a folder: its real path, and its descriptor where the platform has them. Raises as `open` does."""
        with ExitStack() as held:
            try:
                found = held.enter_context(opened(self.roots.locate(folder), self.roots))
            except RequestError as error:
                raise ValueError(f"{os.fspath(folder)}: {error.message}") from error
            yield found

    def read(self, path: str | os.PathLike[str], most: int, *, cut: bool = False) -> bytes:
        """A file's bytes. One with more than `most` is refused with ValueError, or cut."""
        with self.open(path) as fd:
            return _read(fd, path, most, cut=cut)

    def size(self, path: str | os.PathLike[str]) -> int | None:
        """Return the size of a file; None if `open` refuses it, or it does not exist."""
        with suppress(OSError, ValueError), self.open(path) as fd:
            return os.fstat(fd).st_size
        return None

    def walk(
        self,
        folder: str | os.PathLike[str],
        *,
        skip: Callable[[str], bool] = SKIPPED.__contains__,
        links: bool = False,
        most: int = MOST_ENTRIES,
        stopped: Callable[[], bool] = bool,
    ) -> Iterator[str]:
        """Yield the files below a folder, as relative paths with `/`, in order; `links` includes links, without
        following.

        `skip` has the names of folders to leave out. Once `stopped` returns true, the walk ends.
        """
        with self.enter(folder) as (path, fd):
            listing = _Listing(skip, stopped, links=links, left=most)
            if fd is None:
                yield from listing.below(path, "", 0)
                return
            own = os.open(".", _LISTED, dir_fd=fd)  # a descriptor that only names a folder cannot list it
            try:
                yield from listing.below(own, "", 0)
            finally:
                os.close(own)


def read_named(path: Path, most: int, *, cut: bool = False) -> bytes:
    """Read a file that the user named, anywhere: its links are followed, pipes and devices refused.

    A file of more than `most` bytes is refused with ValueError, or cut.
    """
    _must_be_file(path, path.stat())  # opening a device may do something
    fd = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | QUICK)
    try:
        found = os.fstat(fd)
        _must_be_file(path, found)
        if is_kernels_own(found.st_dev):
            raise ValueError(f"{path} is an interface of the kernel, not a file")
        return _read(fd, path, most, cut=cut)
    finally:
        os.close(fd)


def _must_be_file(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise ValueError(f"{path} is not a regular file")


def _read(fd: int, path: str | os.PathLike[str], most: int, *, cut: bool) -> bytes:
    size = os.fstat(fd).st_size
    data = bytearray()
    # One byte more than is allowed shows that the file is longer, whatever its size claims.
    while (size <= most or cut) and len(data) <= most:
        if not (chunk := os.read(fd, min(CHUNK, most + 1 - len(data)))):
            break
        data += chunk
    if (size > most or len(data) > most) and not cut:
        raise ValueError(f"{os.fspath(path)} is larger than {most:,} bytes")
    return bytes(data[:most])


_LISTED = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | HERE | QUICK


class _Listing:
    """One walk through folders, with its remaining limits."""

    def __init__(self, skip: Callable[[str], bool], stopped: Callable[[], bool], *, links: bool, left: int) -> None:
        self._skip = skip
        self._stopped = stopped
        self._links = links
        self._left = left

    def below(self, folder: int | Path, before: str, depth: int) -> Iterator[str]:
        files, folders = self._entries(folder)
        yield from (before + name for name in files)
        for name in folders if depth < DEEPEST else ():
            if self._stopped() or self._left <= 0:
                return
            with suppress(OSError), _entered(folder, name) as inner:
                yield from self.below(inner, f"{before}{name}/", depth + 1)

    def _entries(self, folder: int | Path) -> tuple[list[str], list[str]]:
        files: list[str] = []
        folders: list[str] = []
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in islice(entries, self._left):
                self._left -= 1
                if self._stopped():
                    return [], []
                with suppress(OSError):
                    if _is_link(entry):
                        files += [entry.name] if self._links else []
                    elif entry.is_file(follow_symlinks=False):
                        files.append(entry.name)
                    elif entry.is_dir(follow_symlinks=False) and not self._skip(entry.name):
                        folders.append(entry.name)
        return sorted(files), sorted(folders)


def _is_link(entry: os.DirEntry[str]) -> bool:
    if os.name != "nt":
        return entry.is_symlink()
    found = entry.stat(follow_symlinks=False)
    return is_link(getattr(found, "st_file_attributes", 0), getattr(found, "st_reparse_tag", 0))


@contextmanager
def _entered(folder: int | Path, name: str) -> Generator[int | Path]:
    if isinstance(folder, Path):
        yield folder / name
        return
    fd = os.open(name, _LISTED, dir_fd=folder)
    try:
        yield fd
    finally:
        os.close(fd)
