"""A stored session as columns of PostgreSQL, and back. PURE.

Text in PostgreSQL holds neither `\\0` nor half a surrogate pair, so JSON is stored as bytes, and an id with either is
found nowhere. An index entry has at most about 2,700 bytes and a folder's name may be longer, so indexes hold hashes;
the texts are compared as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec import UNSET

from accord.errors import StoreError
from accord.schema import codec
from accord.store.base import Changes, Json, StoredSession, microseconds, moment

CHANGING = ("title", "roots", "settings", "state", "info", "archived")
"""The columns that `Changes` may set; the position of each is its bit in a statement."""


def key(*parts: str) -> bytes:
    """The hash of these texts, by which an index finds them."""
    return blake2b(b"\0".join(part.encode() for part in parts), digest_size=16).digest()


def storable(*texts: str) -> bool:
    """Whether PostgreSQL can hold these texts."""
    try:
        return all(b"\0" not in text.encode() for text in texts)
    except UnicodeEncodeError:
        return False


def whole(text: str | None) -> str | None:
    """Text without the characters that PostgreSQL cannot hold."""
    if text is None:
        return None
    return text.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")


def columns_of(session: StoredSession) -> tuple[Any, ...]:
    """The columns of a new session, in the order of the statement that inserts it."""
    return (
        key(session.id),
        key(session.owner),
        key(session.owner, session.cwd),
        session.id,
        session.owner,
        session.cwd,
        codec.encode(session.roots),
        whole(session.title),
        microseconds(session.created),
        microseconds(session.updated),
        codec.encode(session.settings),
        codec.encode(session.state),
        codec.encode(session.info),
        session.archived,
        session.format,
    )


def changed_columns(changes: Changes) -> dict[str, Any]:
    """The columns that these changes set."""
    columns: dict[str, Any] = {}
    for name in CHANGING:
        value: Json = getattr(changes, name)
        if value is UNSET:
            continue
        if name == "title":
            value = whole(value)
        elif name != "archived":
            value = codec.encode(value)
        columns[name] = value
    return columns


def bits(columns: Mapping[str, Any]) -> int:
    """Which of the changing columns these are, as one number."""
    return sum(1 << place for place, name in enumerate(CHANGING) if name in columns)


def session_of(row: Mapping[str, Any]) -> StoredSession:
    """The session of a row; raises StoreError `damaged` if the row is nonsense."""
    try:
        fields: dict[str, Any] = {name: row[name] for name in ("id", "cwd", "owner", "title", "format", "hold")}
        for name in ("roots", "settings", "state", "info"):
            fields[name] = codec.loads(row[name])
        fields |= {"created": moment(row["created"]), "updated": moment(row["updated"]), "archived": row["archived"]}
        return msgspec.convert(fields, StoredSession)
    except _NONSENSE as error:
        raise StoreError(
            "damaged", f"the store is damaged: invalid entry of session {ascii(row['id'])[:100]} ({error})"
        ) from error


def transposed(rows: Sequence[tuple[Any, ...]], width: int) -> list[tuple[Any, ...]]:
    """Rows as one array for each column, as `unnest` takes them."""
    return list(zip(*rows, strict=True)) if rows else [()] * width


_NONSENSE = (msgspec.DecodeError, msgspec.ValidationError, ValueError, OverflowError, OSError)
