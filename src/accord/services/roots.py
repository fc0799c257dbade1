"""The folders that a session's files and commands stay in, and which of them a path belongs to.

This is about names only: it decides where a path claims to be. Whether the file system agrees, links and races
included, is seen to by whoever opens it (`confined`).

A root may itself be a link, or stand behind one (`/tmp` on macOS). It is resolved once, when the session begins, and
agents may name its files by either name. Later changes to such a link change nothing for the session.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from accord.errors import RequestError

LONGEST = 4096
"""Bytes of a path, as for Linux."""


class RootedPath(msgspec.Struct, frozen=True):
    """A path inside of a root: the root's real path, and the names from there on."""

    root: Path
    names: tuple[str, ...]

    @property
    def path(self) -> Path:
        return self.root.joinpath(*self.names)


class Roots:
    """A session's folders, as they were when it began.

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
                raise ValueError(f"a session's folder is an absolute path, {str(folder)!r} is not")
            real = Path(os.path.realpath(folder))
            for name in (str(real), str(folder)):
                found.setdefault(_normal(name), real)
        self._by_parts = found
        self._lengths = sorted({len(parts) for parts in found}, reverse=True)  # the innermost root comes first
        self.folders: tuple[Path, ...] = tuple(dict.fromkeys(found.values()))
        """The real path of each."""

    def locate(self, path: str | os.PathLike[str]) -> RootedPath:
        """Where this path claims to be; raises RequestError (-32602) when that is no place inside."""
        return RootedPath(*self.split(Path(*_parts(os.fspath(path)))))

    def split(self, path: Path) -> tuple[Path, tuple[str, ...]]:
        """The real root that an absolute path begins with, and the names behind it, `..` among them as they stand."""
        parts = path.parts
        for length in self._lengths:
            if (root := self._by_parts.get(parts[:length])) is not None:
                return root, parts[length:]
        raise outside(path)

    def __contains__(self, path: str | os.PathLike[str]) -> bool:
        try:
            self.locate(path)
        except RequestError:
            return False
        return True


def _parts(path: str) -> tuple[str, ...]:
    """Its names without `.` and `..`, as any program that joins paths would have made them."""
    if len(path) > LONGEST or len(path.encode("utf-8", "surrogatepass")) > LONGEST:  # before any look at its parts
        raise RequestError.invalid_params(f"the path is too long: at most {LONGEST} bytes", path=path[:200])
    if not path or "\0" in path or not Path(path).is_absolute() or not is_unicode(path):
        raise RequestError.invalid_params("a path is absolute, and text", path=ascii(path)[:200])
    return _normal(path)


def _normal(path: str) -> tuple[str, ...]:
    normal = os.path.normpath(path)
    if os.sep == "/":  # POSIX leaves two leading slashes to the implementation; to Linux and macOS they are one
        normal = "/" + normal.lstrip("/")
    return Path(normal).parts


def is_unicode(path: str) -> bool:
    """Whether it has no half of a surrogate pair, which would become a stray byte of the file's name."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def outside(path: str | os.PathLike[str]) -> RequestError:
    return RequestError.invalid_params("outside the session's folders", path=os.fspath(path)[:1000])
