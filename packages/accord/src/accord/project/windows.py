"""Opens files by their whole path and checks them afterwards, for platforms without `dir_fd` (Windows).

Every link is refused, and so is every name that Windows reads in a special way (`accord.windows.names`). The real path
of an opened file is compared with the expected one, so a read never leaves the root. A write checks the new file the
same way before it has content. One race remains: a program that exchanges folders at the instant in which the new file
takes the old one's name.
"""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from accord.errors import RequestError
from accord.project.folder import Folder, refuse_git
from accord.project.roots import RootedPath, outside
from accord.windows.names import is_link, plain_path, why_refused


def by_name(place: RootedPath, *, make: bool) -> NamedFolder:
    """The folder that contains a place. With `make`, to write to it: missing folders are created, `.git` is refused."""
    path = place.path
    for name in place.names:
        if problem := why_refused(name):
            raise RequestError.invalid_params(f"a name in path {problem}", name=name[:200])
        if make:
            refuse_git(name, path)
    if make:
        for depth in range(1, len(place.names)):
            *above, name = place.names[:depth]
            folder = NamedFolder(place.root.joinpath(*above), name)
            with suppress(FileExistsError):
                folder.path.mkdir()
            folder.confirm()
    return NamedFolder(path.parent, path.name)


class NamedFolder(Folder):
    """A folder known by its path alone, which is checked before and after each use."""

    def __init__(self, path: Path, name: str) -> None:
        super().__init__(path, name)
        self._folder = path
        self._identity = self._look()

    def at(self, name: str) -> tuple[str, dict[str, Any]]:
        self.confirm()
        return str(self._folder / name), {}

    def rename(self, old: str, new: str) -> None:
        self.confirm()
        os.replace(self._folder / old, self._folder / new)  # noqa: PTH105
        self.confirm()

    def open(self) -> int:
        return self._confirmed(super().open(), self.path)

    def create(self, name: str, mode: int) -> int:
        return self._confirmed(super().create(name, mode), self._folder / name)

    def _confirmed(self, fd: int, path: Path) -> int:
        """Return the descriptor if the opened file is where it should be."""
        real = _real_path(fd)
        if real is None or os.path.normcase(real) != os.path.normcase(path):
            os.close(fd)
            raise outside(path)
        return fd

    def confirm(self) -> None:
        if self._look() != self._identity:
            raise outside(self.path)

    def _look(self) -> list[tuple[int, int]]:
        seen: list[tuple[int, int]] = []
        for folder in (*reversed(self._folder.parents), self._folder):
            found = folder.lstat()
            _refuse_link(folder, found)
            seen.append((found.st_dev, found.st_ino))
        with suppress(FileNotFoundError):
            _refuse_link(self.path, self.path.lstat())
        return seen


def _refuse_link(path: Path, found: os.stat_result) -> None:
    reparse = getattr(found, "st_file_attributes", 0), getattr(found, "st_reparse_tag", 0)
    if stat.S_ISLNK(found.st_mode) or is_link(*reparse):
        raise RequestError.invalid_params(
            "path leads through a link, which cannot be followed safely on this platform", path=str(path)
        )


if sys.platform == "win32":

    def _real_path(fd: int) -> str | None:
        import ctypes
        import msvcrt

        call = ctypes.WinDLL("kernel32").GetFinalPathNameByHandleW
        call.argtypes = (ctypes.c_void_p, ctypes.c_wchar_p, ctypes.c_uint32, ctypes.c_uint32)
        room = ctypes.create_unicode_buffer(32 * 1024)
        length = call(msvcrt.get_osfhandle(fd), room, len(room), 0)
        return plain_path(room.value) if 0 < length < len(room) else None

else:

    def _real_path(fd: int) -> str | None:
        """The path of an open file; None if it cannot be determined."""
        try:
            return str(Path(f"/proc/self/fd/{fd}").readlink())
        except OSError:
            return None
