"""What a heavy message is, and the session that it names, for those who pass it on and do not read it."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from accord.jsonrpc.chunked_decode import is_heavy
from accord.jsonrpc.line_frames import as_id
from accord.jsonrpc.wire_messages import (
    ErrorObject,
    Malformed,
    Message,
    NotificationFrame,
    RequestFrame,
    ResponseFrame,
    parse,
)


class _Body(msgspec.Struct, rename="camel", gc=False, omit_defaults=True):
    session_id: str | None = None


class _Outline(msgspec.Struct, gc=False):
    id: int | str | float | None = None
    method: str | None = None
    params: _Body | None = None
    result: _Body | None = None
    error: Raw = Raw(b"null")


def peek(frame: bytes) -> Message | Malformed:
    """What `parse` returns, where the params or the result of a heavy message have only their session.

    A heavy message is passed over once and without its values, in 20 to 80 ms for 62 MiB. To parse it takes twice as
    long.
    """
    if not is_heavy(frame):
        return parse(frame)
    try:
        seen = _decode(frame)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return parse(frame)
    request_id, is_error = as_id(seen.id), bytes(seen.error) != b"null"
    if seen.method is None:
        if request_id is not None and is_error is not (seen.result is not None):
            error = ErrorObject(0) if is_error else None
            return ResponseFrame(request_id, None if seen.result is None else _raw(seen.result), error)
    elif seen.result is None and not is_error:
        params = None if seen.params is None else _raw(seen.params)
        return (
            NotificationFrame(seen.method, params)
            if request_id is None
            else RequestFrame(request_id, seen.method, params)
        )
    return parse(frame)


def _raw(body: _Body) -> Raw:
    return Raw(msgspec.json.encode(body))


_decode: Any = msgspec.json.Decoder(_Outline).decode
