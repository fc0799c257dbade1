"""Messages as events of an event stream, and the messages of one: for programs that answer requests themselves."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Mapping
from typing import Any

import msgspec

from accord.compat.remote_stream import object_in
from accord.http.sse import EventReader
from accord.jsonrpc.frames import LIMIT

__all__ = ["parse_sse_stream", "serialize_sse_event", "serialize_sse_keepalive"]


def serialize_sse_event(message: Mapping[str, Any]) -> bytes:
    """A message as one event."""
    return b"data: " + msgspec.json.encode(message) + b"\n\n"


def serialize_sse_keepalive() -> bytes:
    """A comment, which keeps an idle stream alive."""
    return b": keepalive\n\n"


async def parse_sse_stream(chunks: AsyncIterable[bytes]) -> AsyncIterator[dict[str, Any]]:
    """The messages of an event stream that arrives in these chunks. Events that are not JSON objects are skipped."""
    events = EventReader(LIMIT)
    async for chunk in chunks:
        for message in _messages(events, chunk):
            yield message
    for message in _messages(events, b"\n\n"):  # the last event may lack its blank line
        yield message


def _messages(events: EventReader, chunk: bytes) -> list[dict[str, Any]]:
    loaded = [object_in(event.data) for event in events.feed(chunk) if isinstance(event.data, bytes)]
    return [message for message in loaded if message is not None]
