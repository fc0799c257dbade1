"""`create_http_stream`: a client's transport over Streamable HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from accord.compat.remote_stream import AcpHttpStatusError, RemoteStream
from accord.errors import AccordError

__all__ = ["AcpHttpStatusError", "create_http_stream"]


def create_http_stream(url: str, *, client: Any = None, headers: Mapping[str, str] | None = None) -> RemoteStream:
    """A transport to the agent behind this URL, for `connect_to_agent`; it opens with the first message.

    `headers` are sent with every request. `client` is an `httpx.AsyncClient` that sends the requests; without one,
    Accord sends them itself. Raises AccordError for an invalid URL or header, or without the extra `http`.
    """
    from accord.http.client.urls import checked_url
    from accord.transports.given_headers import checked_headers  # without the extra, importing this module works

    if checked_url(url) not in ("http", "https"):
        raise AccordError("create_http_stream needs a URL with http:// or https://; use create_websocket_stream")
    given = checked_headers(headers)
    from accord.compat.http_requests import HttpxRequests, NotingRequests, NotingTransport

    if client is not None and not _is_httpx(client):
        raise TypeError(f"client must be an httpx.AsyncClient or None, got {type(client).__name__}")
    requests = NotingRequests(url) if client is None else HttpxRequests(url, client)
    return RemoteStream(NotingTransport(url, requests, given), requests.take_refusal)


def _is_httpx(client: Any) -> bool:
    if find_spec("httpx") is None:
        return False
    import httpx

    return isinstance(client, httpx.AsyncClient)
