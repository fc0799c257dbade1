"""Messages of HTTP/2 (RFC 9113, 8): reads requests, responses and trailers, and refuses malformed ones. PURE.

Their fields come from `h2_blocks`, which checks the characters.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from accord.http.h1 import Fields

_METHOD = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_PATH = re.compile(rb"/[\x21-\x7e]*|\*")
_STATUS = re.compile(rb"[1-5][0-9][0-9]")
_LENGTH = re.compile(rb"[0-9]{1,18}")

OF_A_CONNECTION = frozenset({b"connection", b"proxy-connection", b"keep-alive", b"transfer-encoding", b"upgrade"})
"""Fields that HTTP/2 has no place for (8.2.2)."""

REQUEST_NAMES = frozenset({b":method", b":scheme", b":authority", b":path"})


class Malformed(Exception):
    """A message that breaks a rule of 8.1.1: its stream ends with PROTOCOL_ERROR."""


class Head(NamedTuple):
    """The header of a request, or of a response, whose `method` and `target` are empty and `status` is not 0."""

    fields: Fields
    """Without pseudo-header fields. A request's `:authority` is the field `host`."""
    method: bytes = b""
    target: bytes = b""
    status: int = 0
    length: int | None = None
    """The value of Content-Length."""


def request_of(found: Fields) -> Head:
    """Read the header of a request; raises Malformed."""
    pseudo, fields = _split(found, REQUEST_NAMES)
    length = _check(fields)
    hosts = [value for name, value in fields if name == b"host"]
    authority = pseudo.get(b":authority")
    if len(hosts) > 1:
        raise Malformed("more than one host")
    if authority is None:
        if not hosts:
            raise Malformed("a request without :authority or host")
    elif hosts and hosts[0] != authority:
        raise Malformed(":authority and host differ")
    elif authority:
        fields = [(b"host", authority), *(fields if not hosts else [field for field in fields if field[0] != b"host"])]
    method, target = pseudo.get(b":method", b""), pseudo.get(b":path", b"")
    if _METHOD.fullmatch(method) is None:
        raise Malformed("a request without a valid :method")
    if _PATH.fullmatch(target) is None:  # CONNECT has no path, and we connect to nothing
        raise Malformed("a request without a valid :path")
    if not pseudo.get(b":scheme"):
        raise Malformed("a request without :scheme")
    return Head(_with_one_cookie(fields), method, target, length=length)


def response_of(found: Fields) -> Head:
    """Read the header of a response; raises Malformed."""
    pseudo, fields = _split(found, {b":status"})
    status = pseudo.get(b":status", b"")
    if _STATUS.fullmatch(status) is None or status == b"101":  # 8.6: no change of protocols
        raise Malformed("a response without a valid :status")
    return Head(fields, status=int(status), length=_check(fields))


def check_trailers(found: Fields) -> None:
    """Check the fields after a body; raises Malformed."""
    _check(_split(found, ())[1])


def _split(found: Fields, allowed: frozenset[bytes] | set[bytes] | tuple[()]) -> tuple[dict[bytes, bytes], Fields]:
    """The pseudo-header fields, which come first and once each (8.3), and the others."""
    pseudo: dict[bytes, bytes] = {}
    for name, value in found:
        if name[0] != 0x3A:
            break
        if name not in allowed or name in pseudo:
            raise Malformed(f"the pseudo-header field {name!r} is not allowed here, or occurs twice")
        pseudo[name] = value
    return pseudo, found[len(pseudo) :]


def _check(fields: Fields) -> int | None:
    """Check which fields occur; returns the value of Content-Length."""
    length: int | None = None
    for name, value in fields:
        if name in _SPECIAL:
            if name == b"content-length":
                if length is not None or _LENGTH.fullmatch(value) is None:
                    raise Malformed("content-length must be one number")
                length = int(value)
            elif name != b"te" or value.lower() != b"trailers":
                raise Malformed(f"the field {name!r} is not allowed in HTTP/2")
        elif name[0] == 0x3A:
            raise Malformed(f"the pseudo-header field {name!r} must come first")
    return length


_SPECIAL = OF_A_CONNECTION | {b"content-length", b"te"}


def _with_one_cookie(fields: Fields) -> Fields:
    """The fields with all cookies in one: clients may split them (8.2.3)."""
    cookies = [value for name, value in fields if name == b"cookie"]
    if len(cookies) < 2:
        return fields
    return [*(field for field in fields if field[0] != b"cookie"), (b"cookie", b"; ".join(cookies))]
