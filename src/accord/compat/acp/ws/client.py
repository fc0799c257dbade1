"""`create_websocket_stream`: a client's transport over a WebSocket."""

from __future__ import annotations

from collections.abc import Mapping

from accord.compat.acp._cookies import MemoryAcpCookieStore
from accord.compat.remote_stream import RemoteStream

__all__ = ["MemoryAcpCookieStore", "create_websocket_stream"]


async def create_websocket_stream(
    url: str, *, headers: Mapping[str, str] | None = None, cookie_store: MemoryAcpCookieStore | None = None
) -> RemoteStream:
    """Connect to the agent behind this URL, for `connect_to_agent`.

    `headers` are sent with the handshake. `cookie_store` keeps the server's cookies for the next connection. Raises
    ConnectionError if the server cannot be reached, AccordError for an invalid URL or without the extra `http`.
    """
    from accord.http.client.urls import connect_transport  # without the extra, importing this module still works

    cookies = None if cookie_store is None else cookie_store.cookies
    stream = RemoteStream(connect_transport(url, headers=headers, cookies=cookies))
    await stream.open()
    return stream
