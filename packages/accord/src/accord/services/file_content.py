"""The content of files: decoded and encoded again, and replaced as a whole with the permissions of the old file.

Text is UTF-8, with or without a byte order mark, or UTF-16 with one. Everything else is refused, as is text with null
bytes: an agent that reads garbage writes garbage back. The byte order mark is not part of the text.

Writes are atomic: a reader sees the old content of a file or the new, never half of one. The new content goes into a
new file in the same folder, which then takes the old one's name. So a second name of the old file (a hard link, perhaps
outside the roots) keeps the old content, and a crash leaves at most the new file under its temporary name.

So everything besides the content must be copied: owner, group, mode, access list, extended attributes. The mode alone
is not enough. With an access list, the mode's group bits are the mask of the list and not the rights of the group; and
if the owner or the group cannot be copied, other users would get their rights.

The rule: a right that cannot be copied is removed. If removing it is not possible either, the write is refused. Set-uid
and set-gid bits and file capabilities are always removed, as the kernel does for a file that is written to.
"""

from __future__ import annotations

import codecs
import errno
import os
import stat
import struct
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

import msgspec

from accord.errors import RequestError
from accord.paths import replacement, write_all
from accord.project.confined import Folder

ACCESS_LIST = "system.posix_acl_access"

OWNER, USER, GROUP, NAMED_GROUP, MASK, OTHER = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20
"""The tags of an access list's entries, as Linux numbers them."""

_VERSION = struct.Struct("<I")
_ENTRY = struct.Struct("<HHI")

# Checksums and capabilities belong to the old content.
_NEVER_COPIED = frozenset({"security.capability", "security.ima", "security.evm"})

_UNSUPPORTED = frozenset({errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})


class AccessEntry(NamedTuple):
    """The rights of one user or one group."""

    tag: int
    rights: int
    identifier: int = 0xFFFFFFFF


class AccessList(tuple[AccessEntry, ...]):
    """A POSIX access list: its entries in the kernel's order.

    >>> AccessList.of_mode(0o640).mode == 0o640
    True
    """

    __slots__ = ()

    @classmethod
    def of_mode(cls, mode: int) -> AccessList:
        return cls((AccessEntry(OWNER, mode >> 6 & 7), AccessEntry(GROUP, mode >> 3 & 7), AccessEntry(OTHER, mode & 7)))

    @classmethod
    def read(cls, written: bytes) -> AccessList:
        return cls(AccessEntry(*fields) for fields in _ENTRY.iter_unpack(written[_VERSION.size :]))

    def written(self) -> bytes:
        return _VERSION.pack(2) + b"".join(_ENTRY.pack(*entry) for entry in self)

    @property
    def mode(self) -> int:
        """The equivalent mode bits; with a mask, the group bits are the mask."""
        group = self.rights(MASK) if any(entry.tag == MASK for entry in self) else self.rights(GROUP)
        return self.rights(OWNER) << 6 | group << 3 | self.rights(OTHER)

    def rights(self, tag: int) -> int:
        return next((entry.rights for entry in self if entry.tag == tag), 0)

    def without(self, *, owner: bool, group: bool) -> AccessList:
        """Return the list for a file whose owner or group could not be copied: no user gets a right they did not have.

        The old owner now counts as a member of a group or as another user, and members of the old group count as
        other users. Members of the new group were other users before.
        """
        limits: dict[int, int] = dict.fromkeys((USER, GROUP, NAMED_GROUP, MASK, OTHER), 7)
        if owner:
            limits = dict.fromkeys(limits, self.rights(OWNER))
        if group:
            effective = self.rights(GROUP) & self.mode >> 3
            limits[GROUP] &= effective & self.rights(OTHER)
            limits[OTHER] &= effective
        return AccessList(entry._replace(rights=entry.rights & limits.get(entry.tag, 7)) for entry in self)


def copy_rights(old: int, new: int) -> None:
    """Copy owner, group, rights and attributes between open files.

    Raises OSError if the new file would grant more than the old one.
    """
    found = os.fstat(old)
    if sys.platform == "win32":
        return
    gave_owner, gave_group = _give_to(new, found)
    lost = {"owner": not gave_owner, "group": not gave_group}
    if sys.platform == "linux":
        _copy_attributes(old, new)
        listed = _attribute(old, ACCESS_LIST)
        if listed is not None:
            os.setxattr(new, ACCESS_LIST, AccessList.read(listed).without(**lost).written())
            return
        with suppress(OSError):  # inherited from the folder, if there is one
            os.removexattr(new, ACCESS_LIST)
    elif sys.platform == "darwin":
        _copy_on_macos(old, new)
    os.fchmod(new, AccessList.of_mode(found.st_mode).without(**lost).mode | found.st_mode & stat.S_ISVTX)


def _give_to(new: int, found: os.stat_result) -> tuple[bool, bool]:
    """Copy owner and group; returns whether each was copied."""
    assert sys.platform != "win32"
    for owner in (found.st_uid, -1):  # only root may change the owner; an owner may choose among their own groups
        with suppress(OSError):
            os.fchown(new, owner, found.st_gid)
            break
    now = os.fstat(new)
    return now.st_uid == found.st_uid, now.st_gid == found.st_gid


if sys.platform == "linux":

    def _attribute(fd: int, name: str) -> bytes | None:
        try:
            return os.getxattr(fd, name)
        except OSError as error:
            if error.errno in _UNSUPPORTED or error.errno == errno.ENODATA:
                return None
            raise

    def _copy_attributes(old: int, new: int) -> None:
        for name in _names(old):
            value = _attribute(old, name)
            if value is None or value == _attribute(new, name):
                continue
            try:
                os.setxattr(new, name, value)
            except OSError as error:
                # Losing a user attribute grants no rights; losing a security label may.
                if name.startswith(("security.", "system.")) or error.errno in (errno.ENOSPC, errno.EDQUOT):
                    raise

    def _names(fd: int) -> Iterable[str]:
        try:
            found = os.listxattr(fd)
        except OSError as error:
            if error.errno in _UNSUPPORTED:
                return ()
            raise
        return [name for name in found if name != ACCESS_LIST and name not in _NEVER_COPIED]

else:

    def _copy_on_macos(old: int, new: int) -> None:
        import ctypes

        access_list, attributes = 1 << 0, 1 << 2
        system = ctypes.CDLL(None, use_errno=True)
        if system.fcopyfile(old, new, None, access_list | attributes) != 0:
            error = ctypes.get_errno()
            if error not in _UNSUPPORTED:
                raise OSError(error, os.strerror(error))


PRIVATE = 0o600
USUAL = 0o666  # minus the bits of the process's umask


def replace(folder: Folder, data: bytes, *, sync: bool = False) -> None:
    """Replace the content of the file that `folder` names.

    The file keeps its permissions. A new file gets those of the process's umask.
    """
    old = folder.stat()
    if old is not None:
        _must_be_replaceable(folder, old)
    mode = USUAL if old is None else PRIVATE
    with replacement(
        lambda name: folder.create(name, mode), lambda name: folder.rename(name, folder.name), folder.remove
    ) as fd:
        if old is not None:
            _make_like(folder, fd)
        write_all(fd, data)
        if sync:
            os.fsync(fd)


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


_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_WIDER = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)


class NotText(ValueError):
    """The bytes are not in a supported text encoding."""


class Encoding(msgspec.Struct, frozen=True):
    """The encoding of a file: the byte order mark, if any, and the codec of the text."""

    name: str = "utf-8"
    mark: bytes = b""

    @classmethod
    def of(cls, beginning: bytes) -> Encoding:
        """Return the encoding that the first bytes of a file show; raises NotText for UTF-32."""
        if beginning.startswith(_WIDER):
            raise NotText("UTF-32 is not supported")
        return next((cls(name, mark) for mark, name in _MARKS if beginning.startswith(mark)), cls())

    def encode(self, text: str) -> bytes:
        """Encode text, with the byte order mark."""
        try:
            return self.mark + text.removeprefix("\ufeff" if self.mark else "").encode(self.name)
        except UnicodeEncodeError as error:
            raise RequestError.invalid_params(
                "content contains half a surrogate pair, so it cannot be encoded", at=error.start
            ) from error


def texts(chunks: Iterable[bytes]) -> Iterable[str]:
    """Decode a file that is read in chunks; raises NotText."""
    decoder: codecs.IncrementalDecoder | None = None
    for chunk in chunks:
        data = chunk
        if decoder is None:  # the first chunk has the whole mark: only a file that ends there is shorter
            encoding = Encoding.of(data)
            decoder = codecs.getincrementaldecoder(encoding.name)()
            data = data.removeprefix(encoding.mark)
        yield _checked(decoder, data)
    if decoder is not None:
        yield _checked(decoder, b"", final=True)


def _checked(decoder: codecs.IncrementalDecoder, data: bytes, *, final: bool = False) -> str:
    try:
        text = decoder.decode(data, final)
    except UnicodeDecodeError as error:
        raise NotText("it is neither UTF-8 nor UTF-16 with a byte order mark") from error
    if "\0" in text:
        raise NotText("it contains zero bytes")
    return text


def decode(data: bytes) -> str:
    """Decode a whole file; raises NotText."""
    return "".join(texts((data,)))


def encode_like(old: bytes | None, text: str) -> bytes:
    """Encode `text` with the encoding and the line ends of the file's old content, None for a new file."""
    if old is None:
        return Encoding().encode(text)
    try:
        before = decode(old)
    except NotText:
        return Encoding().encode(text)
    return Encoding.of(old).encode(_ends_like(before, text))


def _ends_like(before: str, text: str) -> str:
    """Use `\\r\\n` if all old lines ended so and the new text has no `\\r` at all."""
    lines = before.count("\n")
    if lines and before.count("\r\n") == lines and "\r" not in text:
        return text.replace("\n", "\r\n")
    return text


class LineRange:
    """Extracts a range of lines from text that arrives in chunks.

    >>> wanted = LineRange(first=2, count=1)
    >>> wanted.add("one\\ntw"), wanted.add("o\\nthree\\n"), wanted.text
    (False, True, 'two\\n')
    """

    def __init__(self, first: int = 1, count: int | None = None) -> None:
        self._skip = max(first, 1) - 1
        self._left = count
        self._chosen: list[str] = []
        self.length = 0
        """Number of characters kept."""

    @property
    def text(self) -> str:
        """The lines found so far."""
        return "".join(self._chosen)

    def add(self, chunk: str) -> bool:
        """Add a chunk; returns whether all wanted lines are complete."""
        rest = self._after_skipped(chunk)
        if self._left is not None:
            rest = self._limited(rest)
        self._chosen.append(rest)
        self.length += len(rest)
        return self._left == 0

    def _after_skipped(self, chunk: str) -> str:
        start = 0
        while self._skip:
            end = chunk.find("\n", start)
            if end < 0:
                return ""
            self._skip -= 1
            start = end + 1
        return chunk[start:]

    def _limited(self, chunk: str) -> str:
        end = 0
        while self._left:
            found = chunk.find("\n", end)
            if found < 0:
                return chunk
            self._left -= 1
            end = found + 1
        return chunk[:end]
