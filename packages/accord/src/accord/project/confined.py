"""The roots of a session, the folders for its files and commands; opens files inside a root safely despite links.

`Roots` compares names only. `Folder` opens files and makes sure that the file system agrees, whatever links there are
and whatever changes meanwhile.

A root may be a link, or its path may lead through one (`/tmp` on macOS). Roots are resolved once, when the session
begins, and agents may use either name. Later changes of such a link have no effect on the session.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

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
        """Split an absolute path into the real path of its root, and the names below it; `..` is kept."""
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
        """Return names of Windows in one case: clients and agents write drive letters in both."""
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


# Opens files inside a root, so that no link can lead outside, not even one that is made meanwhile.
#
# The problem: a program checks a path and then uses it, and between the two a folder of the path becomes a link.
#
# The rule: a path is never used whole. Beginning at the root, each folder is opened by its name alone, relative to the
# descriptor of the folder before, and never through a link. The file itself is used by its name in the last folder's
# descriptor. Whatever is renamed or linked meanwhile, each folder was reached from the root by real names.
#
# Links are resolved here instead of by the kernel. If a link points inside the session's roots, its names are walked in
# its place; if it leaves them, by `..` or by an absolute path, the request is refused. So `CLAUDE.md -> AGENTS.md`
# works and `build -> /etc` does not. Links in `/proc` are resolved here as ordinary links, so the kernel never follows
# them.
#
# What is written below `.git` runs as a program the next time that the user works with git: hooks, `core.fsmonitor`. So
# nothing is written there, whichever link or spelling leads to it.
#
# Platforms that cannot open a file relative to a folder (Windows) open it by its whole path and check it afterwards
# (`NamedFolder`). Every link is refused there, and so is every name that Windows reads in a special way: it removes
# dots and spaces at the end of a name, takes `NUL.txt` for a device and `notes.txt:hidden` for a second content of a
# file. The real path of an opened file is compared with the expected one, so a read never leaves the root. A write
# checks the new file the same way before it has content. One race remains: a program that exchanges folders at the
# instant in which the new file takes the old one's name.


HERE = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
"""Flags for every open: close on exec, and do not follow a link."""

QUICK = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
"""Flags for every open: do not wait for a pipe's other end, acquire no terminal, do not translate line ends."""


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
            "nothing is written to .git: git runs files there as programs; use the command git instead",
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


_DEVICE = r"(?i)(CON|PRN|AUX|NUL|CONIN\$|CONOUT\$|(COM|LPT)[0-9\u00b9\u00b2\u00b3])[ ]*([.:].*)?"

NAME_SURROGATE = 0x20000000
"""The bit of a reparse tag that marks a file as standing for another name, as links and junctions do."""


def why_refused(name: str) -> str | None:
    """Return why a file of Windows cannot safely have this name; None if it can."""
    if re.fullmatch(_DEVICE, name):
        return "names a device of Windows"
    if ":" in name:
        return "names an alternate data stream"
    if name.endswith((".", " ")):
        return "ends with a dot or a space, which Windows removes"
    if re.search(r'[<>"/\\|?*\x00-\x1f]', name):
        return "has a character that Windows does not allow in names"
    return None


def plain_path(path: str) -> str:
    r"""Return a path without the kernel's prefix: `\\?\C:\a` is `C:\a`, `\\?\UNC\s\d` is `\\s\d`."""
    if path[:8].upper() == "\\\\?\\UNC\\":
        return "\\\\" + path[8:]
    return path[4:] if re.match(r"\\\\\?\\[A-Za-z]:\\", path) else path


def is_link(attributes: int, tag: int) -> bool:
    """Whether a reparse point stands for another name. Others, such as files stored in a cloud, do not."""
    return bool(attributes & 0x400) and (tag == 0 or bool(tag & NAME_SURROGATE))


def by_name(place: RootedPath, *, make: bool) -> NamedFolder:
    """Return the folder that contains a place. With `make`, for writing: missing folders are created, `.git` is
    refused.
    """
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
        """Return the path of an open file; None if it cannot be determined."""
        try:
            return str(Path(f"/proc/self/fd/{fd}").readlink())
        except OSError:
            return None


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
        """Do nothing: the descriptor holds the folder open."""

    def rename(self, old: str, new: str) -> None:
        os.rename(old, new, src_dir_fd=self.fd, dst_dir_fd=self.fd)


@contextmanager
def folder_of(place: RootedPath, roots: Roots, *, make: bool = False) -> Generator[Folder]:
    """Return the folder that contains a place. With `make`, for writing: missing folders are created, `.git` is
    refused.
    """
    if not place.names:
        raise RequestError.invalid_params("path names a folder, not a file", path=str(place.path))
    if not DESCRIPTORS:
        yield by_name(place, make=make)
        return
    with ExitStack() as opened:
        yield _Walk(roots, opened, make=make).to(place)


@contextmanager
def opened(place: RootedPath, roots: Roots) -> Generator[tuple[Path, int | None]]:
    """Open a folder inside the roots: its real path, and its descriptor if the platform has them.

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
