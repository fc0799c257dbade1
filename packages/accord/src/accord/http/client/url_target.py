"""Agents behind URLs: the transport for each scheme, and a target that connects as often as needed."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from accord.errors import AccordError
from accord.installation import missing_extra
from accord.redaction import mask_urls
from accord.transports import Target, Transport
from accord.transports.server_access import Cookies, checked_headers, network_proxy
from accord.transports.websocket_client import WebSocketTransport

SCHEMES = ("http", "https", "ws", "wss")


def connect_transport(
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    token: str | None = None,
    cookies: Cookies | None = None,
    tls: ssl.SSLContext | None = None,
    proxy: str | bool = True,
    **options: Any,
) -> Transport:
    """Create a transport to the agent behind this URL; it is not open yet.

    The schemes `http` and `https` mean Streamable HTTP, `ws` and `wss` a WebSocket.

        transport = accord.http.connect_transport("https://agents.example/acp", token="s3cret")

    `headers` are sent with every request, and `token` as a bearer token. `cookies` keeps the server's cookies. `tls`
    replaces the default TLS context. `proxy` is the URL of an HTTP or SOCKS5 proxy; without it the environment may name
    one (`HTTPS_PROXY` and the like), and False prevents that. `options` are those of `HttpTransport` or
    `WebSocketTransport`.

    Raises AccordError for an invalid URL, proxy or header, or if the extra `http` is not installed.
    """
    scheme = checked_url(url)
    given = checked_headers(headers, token)
    if scheme.startswith("ws"):
        return WebSocketTransport(url, headers=given, cookies=cookies, tls=tls, proxy=proxy, **options)
    from accord.http.client.http_transport import HttpTransport

    return HttpTransport(url, headers=given, cookies=cookies, tls=tls, proxy=proxy, **options)


def checked_url(url: str) -> str:
    """The scheme of an agent's URL; raises AccordError for an invalid URL, or without the extra `http`."""
    parts = urlsplit(url)
    if parts.scheme not in SCHEMES or not parts.hostname:
        raise AccordError(
            f"invalid agent URL {mask_urls(url)}: it must have a host and begin with "
            + ", ".join(f"{it}://" for it in SCHEMES)
        )
    if find_spec("httptools") is None or find_spec("websockets") is None:
        raise missing_extra("http", "connecting to a URL")
    return parts.scheme


def url_target(
    url: str,
    *,
    token: str | None = None,
    headers: Mapping[str, str] | None = None,
    tls: ssl.SSLContext | None = None,
    proxy: str | bool = True,
    **_: Any,
) -> UrlTarget:
    """The plug-in for our schemes: it accepts all options of `accord.connect`, and ignores those for commands."""
    return UrlTarget(url, token=token, headers=headers, tls=tls, proxy=proxy)


class UrlTarget(Target):
    """An agent behind a URL, for `accord.connect`; each connection sends the cookies of earlier ones.

    target = accord.http.UrlTarget("wss://agents.example/acp", token="s3cret")
    async with accord.connect(target) as remote: ...
    """

    is_here = False
    way_out = "end of the link"

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        proxy: str | bool = True,
        **options: Any,
    ) -> None:
        checked_url(url)
        network_proxy(url, proxy)
        checked_headers(headers, token)
        self.name = mask_urls(url)
        self._url = url
        self._token = token
        self._headers = headers
        self._proxy = proxy
        self._options = options
        # Kept across reconnects: a load balancer finds the host of the sessions by a cookie.
        self._cookies = Cookies()

    @property
    def program(self) -> str:
        """The URL's origin."""
        parts = urlsplit(self.name)
        port = parts.port or (443 if parts.scheme in ("https", "wss") else 80)
        return f"{parts.scheme}://{parts.hostname}:{port}"

    def dial(self) -> Transport:
        """Create a transport for one connection."""
        return connect_transport(
            self._url,
            token=self._token,
            headers=self._headers,
            cookies=self._cookies,
            proxy=self._proxy,
            **self._options,
        )
