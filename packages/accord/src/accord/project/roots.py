"""The roots of a session: the folders for its files and commands, and the root that a path belongs to.

This module compares names only. `confined` opens files and makes sure that the file system agrees, whatever links
there are and whatever changes meanwhile.

A root may be a link, or its path may lead through one (`/tmp` on macOS). Roots are resolved once, when the session
begins, and agents may use either name. Later changes of such a link have no effect on the session.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

import msgspec

from accord.errors import RequestError

LONGEST = 4096
"""Bytes of a path: the limit of Linux."""


class RootedPath(msgspec.Struct, frozen=True):
    """A path inside a root: the real path of the root, and the names below it."""

    root: Path
    names: tuple[str, ...]

    @property
    def path(self) -> Path:
        """The whole path."""
        return self.root.joinpath(*self.names)


class Roots:
    """The folders of a session, resolved when it began.

    >>> Roots(["/srv/project"]).locate("/srv/project/src/../README.md").names
    ('README.md',)
    >>> Roots(["/srv/project"]).locate("/srv/other")
    Traceback (most recent call last):
    accord.errors.RequestError: outside the session's folders [-32602]
    """

    def __init__(self, folders: Iterable[str | os.PathLike[str]]) -> None:
        found: dict[tuple[str, ...], Path] = {}
        for folder in map(Path, folders):
            if not folder.is_absolute():
                raise ValueError(f"folder must be an absolute path, got {str(folder)!r}")
            real = Path(os.path.realpath(folder))
            for name in (str(real), str(folder)):
                found.setdefault(_folded(_normal(name)), real)
        self._by_parts = found
        self._lengths = sorted({len(parts) for parts in found}, reverse=True)  # the innermost root comes first
        self.folders: tuple[Path, ...] = tuple(dict.fromkeys(found.values()))
        """The real paths of the roots."""

    def locate(self, path: str | os.PathLike[str]) -> RootedPath:
        """Find the root of a path; raises RequestError (-32602) for a path that is malformed or outside the roots."""
        return RootedPath(*self.split(Path(*_parts(os.fspath(path)))))

    def split(self, path: Path) -> tuple[Path, tuple[str, ...]]:
        """The real path of the root of an absolute path, and the names below it; `..` is kept."""
        parts = path.parts
        for length in self._lengths:
            if (root := self._by_parts.get(_folded(parts[:length]))) is not None:
                return root, parts[length:]
        raise outside(path)

    def __contains__(self, path: str | os.PathLike[str]) -> bool:
        try:
            self.locate(path)
        except RequestError:
            return False
        return True


def _parts(path: str) -> tuple[str, ...]:
    """The names of a path, with `.` and `..` resolved by name."""
    if len(path) > LONGEST or len(path.encode("utf-8", "surrogatepass")) > LONGEST:  # before the path is parsed
        raise RequestError.invalid_params(f"path is too long: at most {LONGEST} bytes are allowed", path=path[:200])
    if not path or "\0" in path or not Path(path).is_absolute() or not is_unicode(path):
        raise RequestError.invalid_params(
            "path must be absolute and valid Unicode without null bytes", path=ascii(path)[:200]
        )
    return _normal(path)


def _normal(path: str) -> tuple[str, ...]:
    normal = os.path.normpath(path)
    if os.sep == "/":  # to Linux and macOS, two leading slashes mean one; POSIX lets `normpath` keep both
        normal = "/" + normal.lstrip("/")
    return Path(normal).parts


if sys.platform == "win32":

    def _folded(parts: tuple[str, ...]) -> tuple[str, ...]:
        """Names of Windows have no case: clients and agents write drive letters in both."""
        return tuple(map(os.path.normcase, parts))

else:

    def _folded(parts: tuple[str, ...]) -> tuple[str, ...]:
        return parts


def is_unicode(path: str) -> bool:
    """Whether the path can be encoded: half a surrogate pair would become a stray byte of the file's name."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def outside(path: str | os.PathLike[str]) -> RequestError:
    """The error for a path outside the session's folders."""
    return RequestError.invalid_params("outside the session's folders", path=os.fspath(path)[:1000])
