"""What a heavy message is, and the session that it names, for those who pass it on and do not read it."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from accord.jsonrpc.frames import as_id
from accord.jsonrpc.messages import Answer, Call, ErrorObject, Malformed, Message, Tell, parse
from accord.jsonrpc.slices import is_heavy


class _Body(msgspec.Struct, rename="camel", gc=False, omit_defaults=True):
    session_id: str | None = None


class _Glance(msgspec.Struct, gc=False):
    id: int | str | float | None = None
    method: str | None = None
    params: _Body | None = None
    result: _Body | None = None
    error: Raw = Raw(b"null")


def glance(frame: bytes) -> Message | Malformed:
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
            return Answer(request_id, None if seen.result is None else _raw(seen.result), error)
    elif seen.result is None and not is_error:
        params = None if seen.params is None else _raw(seen.params)
        return Tell(seen.method, params) if request_id is None else Call(request_id, seen.method, params)
    return parse(frame)


def _raw(body: _Body) -> Raw:
    return Raw(msgspec.json.encode(body))


_decode: Any = msgspec.json.Decoder(_Glance).decode
