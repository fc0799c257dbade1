"""The answer to `initialize` as HTTP clients get it: with the id of the connection in its result. PURE."""

from __future__ import annotations

from typing import cast

from msgspec import Raw

from accord.errors import DecodeError
from accord.jsonrpc.wire_messages import Malformed, Message, ResponseFrame, encode_response
from accord.schema import codec
from accord.schema.base import Json


def with_connection_id(message: Message | Malformed, frame: bytes, connection_id: str) -> bytes:
    """This answer, with the id of its connection in its result; an answer without an object stays as it is.

    rfd-streamable-http-websocket-transport, Deviations from MCP Streamable HTTP: the body of the answer holds the
    capabilities and `connectionId`, and the header is sent as well.
    """
    if not isinstance(message, ResponseFrame) or message.id is None or message.result is None:
        return frame
    if not _has_room(message.result):
        return frame
    members = bytes(message.result).strip()[:-1].rstrip()
    comma = b"" if members == b"{" else b","
    return encode_response(message.id, b'%b%b"connectionId":%b}' % (members, comma, codec.encode(connection_id)))


def _has_room(result: Raw) -> bool:
    try:
        said = codec.loads(result)
    except DecodeError:
        return False
    return isinstance(said, dict) and "connectionId" not in cast("dict[str, Json]", said)
