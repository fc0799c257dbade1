"""Opens files inside a root, so that no link can lead outside, not even one that is made meanwhile.

The problem: a program checks a path and then uses it, and between the two a folder of the path becomes a link.

The rule: a path is never used whole. Beginning at the root, each folder is opened by its name alone, relative to the
descriptor of the folder before, and never through a link. The file itself is used by its name in the last folder's
descriptor. Whatever is renamed or linked meanwhile, each folder was reached from the root by real names.

Links are resolved here instead of by the kernel. If a link points inside the session's roots, its names are walked in
its place; if it leaves them, by `..` or by an absolute path, the request is refused. So `CLAUDE.md -> AGENTS.md` works
and `build -> /etc` does not. Links in `/proc` are resolved here as ordinary links, so the kernel never follows them.

What is written below `.git` runs as a program the next time that the user works with git: hooks, `core.fsmonitor`. So
nothing is written there, whichever link or spelling leads to it.

Platforms that cannot open a file relative to a folder use `windows`.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from accord.errors import RequestError
from accord.project.folder import HERE, Folder, refuse_git, refuse_the_kernels_own
from accord.project.roots import RootedPath, Roots, outside
from accord.project.windows import by_name

LINKS = 40
"""Links that a path may lead through, the same number as for the kernel."""

FOLDERS = 256
"""Folders that a path may lead through: each takes a descriptor until the walk ends."""

DESCRIPTORS = {os.open, os.mkdir, os.stat, os.readlink, os.unlink, os.rename} <= os.supports_dir_fd
"""Whether the platform opens files relative to a folder's descriptor."""

# With O_PATH, the right to list the folder is not needed.
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | HERE


class OpenFolder(Folder):
    """A folder held open by its descriptor, whatever happens to its path."""

    def __init__(self, fd: int, path: Path, name: str) -> None:
        super().__init__(path, name)
        self.fd = fd

    def at(self, name: str) -> tuple[str, dict[str, Any]]:
        return name, {"dir_fd": self.fd}

    def confirm(self) -> None:
        """Nothing to check: the folder is held open by its descriptor."""

    def rename(self, old: str, new: str) -> None:
        os.rename(old, new, src_dir_fd=self.fd, dst_dir_fd=self.fd)


@contextmanager
def folder_of(place: RootedPath, roots: Roots, *, make: bool = False) -> Generator[Folder]:
    """The folder that contains a place. With `make`, to write to it: missing folders are created, `.git` is refused."""
    if not place.names:
        raise RequestError.invalid_params("path names a folder, not a file", path=str(place.path))
    if not DESCRIPTORS:
        yield by_name(place, make=make)
        return
    with ExitStack() as opened:
        yield _Walk(roots, opened, make=make).to(place)


@contextmanager
def opened(place: RootedPath, roots: Roots) -> Generator[tuple[Path, int | None]]:
    """A folder inside the roots: its real path, and its descriptor where the platform has them.

    Raises OSError if it is not a folder.
    """
    if not DESCRIPTORS:
        folder = place.root if not place.names else by_name(place, make=False).path
        if not stat.S_ISDIR(folder.lstat().st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
        yield folder, None
        return
    with ExitStack() as held:
        walk = _Walk(roots, held, make=False)
        if not place.names:
            yield place.root, walk.root(place.root)
            return
        found = walk.to(place)
        fd = os.open(found.name, _FOLDER, dir_fd=found.fd)
        held.callback(os.close, fd)
        yield found.path, fd


class _Walk:
    """One walk: the folders passed, each by its descriptor, and the names still ahead."""

    def __init__(self, roots: Roots, opened: ExitStack, *, make: bool) -> None:
        self._roots = roots
        self._opened = opened
        self._make = make
        self._links = 0
        self._entered = 0
        self._folders: list[tuple[int, Path]] = []
        self._ahead: list[str] = []

    def to(self, place: RootedPath) -> OpenFolder:
        self._start(place.root, place.names)
        while True:
            name = self._ahead.pop()
            if name == "..":
                self._back(place)
            elif name != "." and not self._replaced_link(name, place):
                if self._make:
                    refuse_git(name, place.path)
                if not self._ahead:
                    fd, path = self._folders[-1]
                    return OpenFolder(fd, path, name)
                self._enter(name)
            if not self._ahead:  # the path ended with a link to `..`
                raise RequestError.invalid_params("path names a folder, not a file", path=str(place.path))

    def _start(self, root: Path, names: Sequence[str]) -> None:
        self._folders = [(self.root(root), root)]
        self._ahead = list(reversed(names))

    def root(self, root: Path) -> int:
        """Open a root. Its real path has no links, so none is followed."""
        fd = self._close_later(os.open(root.anchor, _FOLDER))
        for name in root.parts[1:]:
            try:
                fd = self._close_later(os.open(name, _FOLDER, dir_fd=fd))
            except OSError as error:
                if error.errno in (errno.ELOOP, errno.ENOTDIR):
                    raise outside(root) from error  # a link has replaced it since the session began
                raise
        return fd

    def _enter(self, name: str) -> None:
        if self._entered == FOLDERS:
            raise RequestError.invalid_params(f"the path leads through more than {FOLDERS} folders")
        self._entered += 1
        above, path = self._folders[-1]
        try:
            fd = os.open(name, _FOLDER, dir_fd=above)
        except FileNotFoundError:
            if not self._make:
                raise
            refuse_the_kernels_own(
                os.fstat(above), path / name
            )  # creating a folder there may make a control group, for instance
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=above)
            fd = os.open(name, _FOLDER, dir_fd=above)
        self._folders.append((self._close_later(fd), path / name))

    def _back(self, place: RootedPath) -> None:
        if len(self._folders) == 1:
            raise outside(place.path)
        self._folders.pop()

    def _replaced_link(self, name: str, place: RootedPath) -> bool:
        """Whether it is a link; if so, the names of its target replace it."""
        try:
            target = os.readlink(name, dir_fd=self._folders[-1][0])
        except OSError as error:
            if error.errno in (errno.EINVAL, errno.ENOENT):
                return False
            raise
        self._links += 1
        if self._links > LINKS:
            raise RequestError.invalid_params(f"the path leads through more than {LINKS} links", path=str(place.path))
        path = Path(target)  # keeps `..`, which is relative to the folder of the link
        if path.is_absolute():
            root, names = self._roots.split(path)
            self._start(root, (*names, *reversed(self._ahead)))
        else:
            self._ahead += reversed(path.parts)
        return True

    def _close_later(self, fd: int) -> int:
        self._opened.callback(os.close, fd)
        return fd
