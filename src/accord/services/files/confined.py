"""The way to a file inside of a root, that nobody can bend while we walk it.

A check of a path followed by its use can be fooled: between the two, somebody makes one of its folders a link. So a
path is never used whole. From the root on, each folder is opened by its name alone, inside of the folder before, and
never through a link; what is done at the end is done inside of the last folder, by its descriptor. Whatever others
rename or link meanwhile, each of these folders was reached from the root by real names.

Links are read instead of followed: where one points inside of the session's roots its names are walked in its place,
and where it leaves them, by `..` or by an absolute path, the request is refused. So `CLAUDE.md -> AGENTS.md` works and
`build -> /etc` does not. The links of `/proc` are read like any other, which takes their magic.

Where the platform cannot open a file inside of a folder, see `by_name`.
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
from accord.services.files.folder import HERE, Folder, refuse_the_kernels_own
from accord.services.files.windows import by_name
from accord.services.roots import RootedPath, Roots, outside

LINKS = 40
"""How many links a path may lead through, as for the kernel."""

FOLDERS = 256
"""How many folders a path may lead through: each takes a descriptor until the end of the way."""

DESCRIPTORS = {os.open, os.mkdir, os.stat, os.readlink, os.unlink, os.rename} <= os.supports_dir_fd
"""Whether files can be opened inside of a folder, by its descriptor."""

# O_PATH needs no right to list the folder, only to pass it.
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | HERE


class OpenFolder(Folder):
    """Held by its descriptor: whatever happens to its path."""

    def __init__(self, fd: int, path: Path, name: str) -> None:
        super().__init__(path, name)
        self.fd = fd

    def at(self, name: str) -> tuple[str, dict[str, Any]]:
        return name, {"dir_fd": self.fd}

    def confirm(self) -> None:
        """It cannot have been: the folder is held."""

    def rename(self, old: str, new: str) -> None:
        os.rename(old, new, src_dir_fd=self.fd, dst_dir_fd=self.fd)


@contextmanager
def folder_of(place: RootedPath, roots: Roots, *, make: bool = False) -> Generator[Folder]:
    """The folder that a place is in, its missing parts made if that is wanted."""
    if not place.names:
        raise RequestError.invalid_params("a folder, not a file", path=str(place.path))
    if not DESCRIPTORS:
        yield by_name(place, make=make)
        return
    with ExitStack() as opened:
        yield _Walk(roots, opened, make=make).to(place)


@contextmanager
def opened(place: RootedPath, roots: Roots) -> Generator[tuple[Path, int | None]]:
    """A folder inside of the roots: its real path, and its descriptor where there are any; OSError for a file."""
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
    """One walk: the folders gone through, each by its descriptor, and the names that are still to come."""

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
                if not self._ahead:
                    fd, path = self._folders[-1]
                    return OpenFolder(fd, path, name)
                self._enter(name)
            if not self._ahead:  # a link that ends in `..`
                raise RequestError.invalid_params("a folder, not a file", path=str(place.path))

    def _start(self, root: Path, names: Sequence[str]) -> None:
        self._folders = [(self.root(root), root)]
        self._ahead = list(reversed(names))

    def root(self, root: Path) -> int:
        """The root's real path has no links, so it is opened without following any."""
        fd = self._keep(os.open(root.anchor, _FOLDER))
        for name in root.parts[1:]:
            try:
                fd = self._keep(os.open(name, _FOLDER, dir_fd=fd))
            except OSError as error:
                if error.errno in (errno.ELOOP, errno.ENOTDIR):
                    raise outside(root) from error  # it was replaced by a link since the session began
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
            refuse_the_kernels_own(os.fstat(above), path / name)  # a folder there is a control group, for instance
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=above)
            fd = os.open(name, _FOLDER, dir_fd=above)
        self._folders.append((self._keep(fd), path / name))

    def _back(self, place: RootedPath) -> None:
        if len(self._folders) == 1:
            raise outside(place.path)
        self._folders.pop()

    def _replaced_link(self, name: str, place: RootedPath) -> bool:
        """Whether it is a link: then its own names come in its place."""
        try:
            target = os.readlink(name, dir_fd=self._folders[-1][0])
        except OSError as error:
            if error.errno in (errno.EINVAL, errno.ENOENT):
                return False
            raise
        self._links += 1
        if self._links > LINKS:
            raise RequestError.invalid_params("too many links", path=str(place.path))
        path = Path(target)  # keeps `..`, which counts from where the link stands
        if path.is_absolute():
            root, names = self._roots.split(path)
            self._start(root, (*names, *reversed(self._ahead)))
        else:
            self._ahead += reversed(path.parts)
        return True

    def _keep(self, fd: int) -> int:
        self._opened.callback(os.close, fd)
        return fd
