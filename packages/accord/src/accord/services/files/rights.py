"""Copies permissions to a file that replaces another, so that they are the same or narrower, never wider.

A write creates a new file in the folder of the old one, and the new file takes the old one's name (`atomic`). So
everything besides the content must be copied: owner, group, mode, access list, extended attributes. The mode alone is
not enough. With an access list, the mode's group bits are the mask of the list and not the rights of the group; and if
the owner or the group cannot be copied, other users would get the rights of the old ones.

The rule: a right that cannot be copied is removed. Where removing it is not possible either, the write is refused.
Set-uid and set-gid bits and file capabilities are always removed, as the kernel does for a file that is written to.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

ACCESS_LIST = "system.posix_acl_access"

OWNER, USER, GROUP, NAMED_GROUP, MASK, OTHER = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20
"""The tags of an access list's entries, as Linux numbers them."""

_VERSION = struct.Struct("<I")
_ENTRY = struct.Struct("<HHI")

# Checksums and capabilities belong to the old content.
_NEVER_COPIED = frozenset({"security.capability", "security.ima", "security.evm"})

_UNSUPPORTED = frozenset({errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})


class Entry(NamedTuple):
    """The rights of one user or one group."""

    tag: int
    rights: int
    identifier: int = 0xFFFFFFFF


class AccessList(tuple[Entry, ...]):
    """A POSIX access list: its entries in the kernel's order.

    >>> AccessList.of_mode(0o640).mode == 0o640
    True
    """

    __slots__ = ()

    @classmethod
    def of_mode(cls, mode: int) -> AccessList:
        return cls((Entry(OWNER, mode >> 6 & 7), Entry(GROUP, mode >> 3 & 7), Entry(OTHER, mode & 7)))

    @classmethod
    def read(cls, written: bytes) -> AccessList:
        return cls(Entry(*fields) for fields in _ENTRY.iter_unpack(written[_VERSION.size :]))

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
        """The list for a file whose owner or group could not be copied: no user gets a right they did not have.

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
