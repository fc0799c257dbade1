"""Entries of a session's record: updates as JSON, each with the version of the protocol that it was made in.

An update of version 1 is kept as it is: `{"sessionUpdate": ...}`. One of another version is kept in an array after the
version: `[2, {"sessionUpdate": ...}]`. So records from before version 2 are valid as they are, and a record may hold
updates of both versions, because a session may be continued by a client that speaks the other one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from accord.errors import DecodeError, StoreError
from accord.schema import codec, v1
from accord.state.values import Update

Version: TypeAlias = Literal[1, 2]
"""A version of the protocol."""

_MARKED = b"["


def marked(update: bytes, version: int) -> bytes:
    """The entry for an update of this version, given as JSON."""
    return update if version == 1 else b"[%d,%b]" % (version, update)


def marking(version: int) -> Callable[[bytes], bytes] | None:
    """`marked` for one version, as a function that costs a stream little; None for version 1, which marks nothing."""
    return None if version == 1 else (b"[%d,%%b]" % version).__mod__


def update_in(entry: bytes) -> tuple[int, bytes]:
    """The version of an entry, and its update as JSON."""
    if entry[:1] != _MARKED:
        return 1, entry
    version, comma, rest = entry[1:].partition(b",")
    if not comma or not version.strip().isdigit() or rest[-1:] != b"]":
        raise damaged("an entry has no version")
    return int(version), rest[:-1]


def read(entry: bytes) -> Update:
    """The update of an entry; raises StoreError if it is malformed, or of a version that Accord does not know."""
    version, update = update_in(entry)
    try:
        found: Update = _reader(version)(update)
    except DecodeError as error:
        raise damaged(str(error)) from error
    return found


def _reader(version: int) -> Callable[[bytes], Any]:
    if version == 1:
        return _read_first
    if version == 2:
        return _read_second
    raise StoreError(
        "newer_format", f"the session has updates of protocol version {version}, and this Accord knows 1 and 2"
    )


def _read_first(update: bytes) -> Any:
    return codec.decode(update, v1.SessionUpdate)


def _read_second(update: bytes) -> Any:
    from accord.schema import v2

    return codec.decode(update, v2.SessionUpdate)


def damaged(why: str) -> StoreError:
    """The error for a record that cannot be read."""
    return StoreError("damaged", f"the store contains a malformed update: {why}")
