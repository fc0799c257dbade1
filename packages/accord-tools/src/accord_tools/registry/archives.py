"""Installs an agent from an archive, and unpacks it so that it can write only into its folder.

Archives are not trusted. Zip and tar go through the same steps: a reader makes `Member`s, and one writer checks and
writes them. The writer refuses what a program's archive never needs: absolute paths, `..`, devices and pipes, two
members of one name, more than `MOST_MEMBERS` members, more than `MOST_BYTES` unpacked, and more than `MOST_GROWTH`
times the archive's size. The bytes that come out count, not the sizes in a header.

Symbolic links are made last, so that nothing is written through one, and each must lead to a place inside of the
folder, after all of them exist. A hard link becomes a copy. Owners, and bits such as setuid, are not kept.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import lzma
import os
import re
import shutil
import stat
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any, Literal, cast
from urllib.parse import unquote, urlsplit

from accord.redaction import mask_urls
from accord_tools.registry import InstallError, Progress, UnsafeArchive
from accord_tools.registry.downloads import Built, InstallRequirements, download, refuse_unhashed
from accord_tools.registry.entry import INTERPRETERS, BinarySource, Platform, program_path

MOST_MEMBERS = 50_000
MOST_BYTES = 4 * 1024**3
MOST_GROWTH = 200
FREE_GROWTH = 64 * 1024**2
"""Bytes that any archive may have unpacked, however small it is."""
CHUNK = 256 * 1024
LARGEST_HEADER = 4 * 1024**2
LARGEST_DIRECTORY = 16 * 1024**2
"""Bytes of a zip file's directory: 300 for each of `MOST_MEMBERS`."""
DAMAGED = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    NotImplementedError,
)
"""The readers' errors for a damaged archive."""

TAR = re.compile(r"\.(?:tar\.gz|tgz|tar\.bz2|tbz2|tar\.xz|txz)$", re.IGNORECASE)
ZIP = re.compile(r"\.zip$", re.IGNORECASE)
REFUSED = re.compile(r"\.(?:dmg|pkg|deb|rpm|msi|appimage)$", re.IGNORECASE)
"""Installers and packages of a system, which the registry does not allow."""

Sort = Literal["file", "folder", "link", "copy", "other"]


@dataclass(frozen=True)
class Member:
    """One member of an archive."""

    name: str
    sort: Sort
    mode: int = 0o644
    target: str = ""
    """Where a link leads, or the earlier member of which this is a copy."""
    open: Callable[[], IO[bytes]] | None = None


def form_of(name: str) -> Literal["tar", "zip", "program", "refused"]:
    """Return the format of a file of this name; a name with no known ending is a bare program.

    >>> form_of("goose-x86_64.tar.bz2"), form_of("kimi"), form_of("a.dmg")
    ('tar', 'program', 'refused')
    """
    if TAR.search(name):
        return "tar"
    if ZIP.search(name):
        return "zip"
    return "refused" if REFUSED.search(name) else "program"


def unpack(archive: Path, form: Literal["tar", "zip"], folder: Path) -> None:
    """Unpack into a new folder. Raises UnsafeArchive or InstallError, and OSError if the disk does not take it."""
    folder.mkdir(parents=True)
    writer = _Writer(folder, archive.stat().st_size)
    try:
        for member in _tar(archive) if form == "tar" else _zip(archive):
            writer.add(member)
        writer.make_links()
    except DAMAGED as error:
        raise InstallError(f"the archive is damaged: {error or error.__class__.__name__}") from None
    except (RuntimeError, ValueError) as error:  # of zipfile: encrypted, or a compression that Python lacks
        raise InstallError(f"the archive cannot be read: {error}") from None
    except OSError as error:
        if error.errno is None:  # of gzip, bz2 and lzma: damaged data
            raise InstallError(f"the archive is damaged: {error}") from None
        raise


@dataclass
class _Writer:
    """Writes members below a folder, after its checks."""

    folder: Path
    size: int
    """Bytes of the archive."""
    seen: set[str] = field(default_factory=set[str])
    links: list[tuple[Path, str, str]] = field(default_factory=list[tuple[Path, str, str]])
    written: int = 0
    count: int = 0

    def add(self, member: Member) -> None:
        self.count += 1
        if self.count > MOST_MEMBERS:
            raise UnsafeArchive(f"the archive has more than {MOST_MEMBERS:,} members; nothing was installed")
        parts = safe_parts(member.name)
        if not parts:
            if member.sort == "folder":
                return  # the archive's own root
            raise UnsafeArchive(f"the archive has a member without a name: {member.name!r}; nothing was installed")
        path = self.folder.joinpath(*parts)
        if member.sort == "folder":
            self._make(path)
            return
        name = "/".join(parts)
        if name in self.seen:
            raise UnsafeArchive(f"the archive has two members of the name {name!r}; nothing was installed")
        self.seen.add(name)
        self._make(path.parent)
        if member.sort == "file" and member.open is not None:
            with closing(member.open()) as source:
                self._write(path, source, member.mode)
        elif member.sort == "copy":
            self._copy(path, member.target)
        elif member.sort == "link":
            self.links.append((path, member.target, name))
        else:
            raise UnsafeArchive(f"the archive has a device or a pipe: {name!r}; nothing was installed")

    def _make(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise UnsafeArchive(f"the archive has a file and a folder of one name: {folder.name!r}") from None

    def _write(self, path: Path, source: IO[bytes], mode: int) -> None:
        try:
            file = path.open("xb")
        except FileExistsError:
            raise UnsafeArchive(f"the archive has two members of one name on this system: {path.name!r}") from None
        with file:
            while chunk := source.read(CHUNK):
                self._count(len(chunk))
                file.write(chunk)
            file.flush()
            if sys.platform != "win32":
                os.fchmod(file.fileno(), 0o600 | (mode & 0o755))

    def _count(self, more: int) -> None:
        self.written += more
        if self.written > MOST_BYTES:
            raise UnsafeArchive(f"the archive has more than {MOST_BYTES:,} bytes unpacked; nothing was installed")
        if self.written > FREE_GROWTH and self.written > MOST_GROWTH * self.size:
            raise UnsafeArchive(
                f"the archive grows to more than {MOST_GROWTH} times its {self.size:,} bytes; nothing was installed"
            )

    def _copy(self, path: Path, target: str) -> None:
        name = "/".join(safe_parts(target))
        original = self.folder / name
        if name not in self.seen or not original.is_file():
            raise UnsafeArchive(f"the archive has a hard link to what is not in it: {target!r}; nothing was installed")
        with original.open("rb") as source:
            self._write(path, source, original.stat().st_mode)

    def make_links(self) -> None:
        """Make the symbolic links, and refuse them all if one leads outside."""
        root = os.path.realpath(self.folder)
        for path, target, name in self.links:
            if not target or "\0" in target or os.path.isabs(target) or re.match(r"[A-Za-z]:|[\\/]", target):  # noqa: PTH117
                raise UnsafeArchive(f"the archive has a link {name!r} to {target!r}, which is outside of it")
            try:
                path.symlink_to(target)
            except FileExistsError:
                raise UnsafeArchive(f"the archive has two members of one name: {name!r}") from None
        for path, target, name in self.links:
            if os.path.commonpath([root, os.path.realpath(path)]) != root:
                shutil.rmtree(self.folder, ignore_errors=True)
                raise UnsafeArchive(f"the archive has a link {name!r} to {target!r}, which is outside of it")


def safe_parts(name: str) -> list[str]:
    """Return the parts of a member's path. Raises UnsafeArchive for a path that could lead outside of a folder.

    A backslash counts as a separator everywhere: some archives of Windows have it, and no program needs it in a name.
    """
    path = name.replace("\\", "/")
    parts = [part for part in path.split("/") if part not in ("", ".")]
    is_absolute = path.startswith("/") or re.match(r"[A-Za-z]:", path) is not None
    if is_absolute or ".." in parts:
        raise UnsafeArchive(f"the archive has a path outside of its folder: {name!r}; nothing was installed")
    if any(ord(letter) < 32 for letter in path):
        raise UnsafeArchive(f"the archive has a path with a control character: {name!r}; nothing was installed")
    if os.name == "nt" and any(":" in part or part.rstrip(". ") != part for part in parts):
        raise UnsafeArchive(f"the archive has a path that Windows does not have: {name!r}; nothing was installed")
    return parts


class _BoundedFile:
    """A file that returns no large part at once: tarfile reads a header as a whole into memory, zipfile a directory."""

    def __init__(self, file: Any, largest: int, part: str) -> None:
        self._file, self._largest, self._part = file, largest, part
        self.tell, self.seek = file.tell, file.seek

    def read(self, count: int = -1) -> bytes:
        if count > self._largest:
            raise UnsafeArchive(f"the archive has a {self._part} of more than {self._largest:,} bytes")
        found: bytes = self._file.read(self._largest if count < 0 else count)
        return found

    def seekable(self) -> bool:
        return True


def _tar(archive: Path) -> Iterator[Member]:
    with archive.open("rb") as raw:
        begins = raw.read(6)
        raw.seek(0)
        with (
            _decompressed(raw, begins) as plain,
            tarfile.open(fileobj=cast("Any", _BoundedFile(plain, LARGEST_HEADER, "header")), mode="r:") as tar,
        ):
            for info in tar:
                content = cast("Callable[[], IO[bytes]]", partial(tar.extractfile, info)) if info.isreg() else None
                yield Member(info.name, _sort_of(info), info.mode, info.linkname, content)


def _decompressed(raw: IO[bytes], begins: bytes) -> gzip.GzipFile | bz2.BZ2File | lzma.LZMAFile:
    """Return the contents of a compressed file, detected by its beginning; its name may be wrong."""
    if begins.startswith(b"BZh"):
        return bz2.BZ2File(raw)
    # The registry names no .tar.xz, but agents publish it.
    return lzma.LZMAFile(raw) if begins == b"\xfd7zXZ\x00" else gzip.GzipFile(fileobj=raw)


def _sort_of(info: tarfile.TarInfo) -> Sort:
    if info.isreg():
        return "file"
    if info.isdir():
        return "folder"
    return "link" if info.issym() else "copy" if info.islnk() else "other"


def _zip(archive: Path) -> Iterator[Member]:
    with (
        archive.open("rb") as raw,
        zipfile.ZipFile(cast("Any", _BoundedFile(raw, LARGEST_DIRECTORY, "directory"))) as found,
    ):
        if len(found.infolist()) > MOST_MEMBERS:
            raise UnsafeArchive(f"the archive has more than {MOST_MEMBERS:,} members; nothing was installed")
        for info in found.infolist():
            mode = info.external_attr >> 16
            # The name as the archive has it: zipfile cuts it at a null byte, and changes separators on Windows.
            name = info.orig_filename
            if info.is_dir() or name.endswith(("/", "\\")):
                yield Member(name, "folder")
            elif stat.S_ISLNK(mode):
                with found.open(info) as file:
                    yield Member(name, "link", target=file.read(4096).decode(errors="surrogateescape"))
            elif stat.S_IFMT(mode) not in (0, stat.S_IFREG):
                yield Member(name, "other")
            else:
                yield Member(name, "file", stat.S_IMODE(mode) or 0o644, open=partial(found.open, info))


INSIDE = "files"
WRONG = (
    "the checksum does not match: the registry has sha256 {wanted}, and the download has {found}. Either the registry "
    "or the publisher has made a mistake, or someone has changed the archive. Nothing was installed"
)


def install_archive(
    source: BinarySource,
    address: str,
    version: str,
    folder: Path,
    progress: Progress,
    platform: Platform,
    demands: InstallRequirements,
) -> Built:
    """Install from this address, or from this file."""
    name = unquote(urlsplit(address).path.rpartition("/")[2]) if "://" in address else Path(address).name
    form = form_of(name)
    if form == "refused":
        raise InstallError(f"{name} is an installer of a system, which the registry does not allow")
    path = program_path(source.cmd, platform)
    if demands.require_hash and source.sha256 is None:
        refuse_unhashed([name], "the registry")
    progress.step(f"Downloading {mask_urls(address)}")
    got = folder / "download"
    digest = _fetched(address, got, progress)
    if source.sha256 is not None and digest != source.sha256:
        raise InstallError(WRONG.format(wanted=source.sha256, found=digest))
    integrity = f"sha256:{digest}"
    demands.judge(version, integrity)
    files = folder / INSIDE
    if form == "program":
        place = files.joinpath(*safe_parts(path))
        place.parent.mkdir(parents=True)
        got.rename(place)
    else:
        progress.step(f"Unpacking {name}")
        unpack(got, form, files)
        got.unlink()
    argv = [source.cmd] if source.cmd in INTERPRETERS else [str(_program(files, path, platform))]
    return Built(argv, integrity, version)


def _fetched(address: str, got: Path, progress: Progress) -> str:
    """Write the archive to a file, and return its SHA-256."""
    with got.open("wb") as file:
        if "://" in address:
            return download(address, file, progress)
        try:
            with Path(address).open("rb") as source:
                shutil.copyfileobj(source, file)
        except FileNotFoundError:
            raise InstallError(f"the archive {address} does not exist") from None
    with got.open("rb") as written:
        return hashlib.file_digest(written, "sha256").hexdigest()


def _program(files: Path, path: str, platform: Platform) -> Path:
    """Return the program that `cmd` names, perhaps one folder deeper than stated."""
    place = files / path
    if not place.is_file():
        only = [it for it in files.iterdir() if it.is_dir()]
        deeper = only[0] / path if len(only) == 1 else place
        if not deeper.is_file():
            raise InstallError(f"the archive has no program {path!r}; it has {', '.join(_some(files))}")
        place = deeper
    if not platform.is_windows:
        place.chmod(place.stat().st_mode | 0o111)
    return place


def _some(files: Path) -> list[str]:
    """A few of the files of an archive, for an error."""
    found = sorted(str(it.relative_to(files)) for it in files.rglob("*") if it.is_file())
    return [*found[:8], *(["..."] if len(found) > 8 else [])] or ["nothing"]
