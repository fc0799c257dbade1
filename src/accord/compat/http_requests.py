"""The requests of a `RemoteStream` over HTTP: they note refusals, and may go through an `httpx.AsyncClient`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import TYPE_CHECKING

from accord.http.client.pool import Requests
from accord.http.client.socket import Broken, Response
from accord.http.client.transport import HttpTransport
from accord.transports.network_proxy import network_proxy

if TYPE_CHECKING:
    import httpx


class NotingRequests(Requests):
    """Our requests. Those that a program sends message by message can be told the status of a refused one."""

    def __init__(self, url: str) -> None:
        super().__init__(url, proxy=network_proxy(url, given=True))
        self._refused: int | None = None

    def take_refusal(self) -> int | None:
        """The status of the last message that was refused since the last call; None if all were accepted."""
        refused, self._refused = self._refused, None
        return refused

    async def request(self, method: str, headers: Sequence[tuple[str, str]], body: bytes = b"") -> Response:
        response = await self._sent(method, headers, body)
        if method == "POST" and response.status >= 400:
            self._refused = response.status
        return response

    async def _sent(self, method: str, headers: Sequence[tuple[str, str]], body: bytes) -> Response:
        return await super().request(method, headers, body)


class HttpxRequests(NotingRequests):
    """Requests through a client of the program, with its headers, authentication, proxies and limits of time.

    The program closes the client. Event streams have no limit of time for reading: they may be silent.
    """

    def __init__(self, url: str, client: httpx.AsyncClient) -> None:
        super().__init__(url)
        self._url = url
        self._client = client
        self._leaving: set[asyncio.Task[None]] = set()

    async def _sent(self, method: str, headers: Sequence[tuple[str, str]], body: bytes) -> Response:
        import httpx

        known = self._client.timeout
        patience = httpx.Timeout(connect=known.connect, write=known.write, pool=known.pool, read=None)
        timeout = patience if method == "GET" else known
        request = self._client.build_request(method, self._url, headers=list(headers), content=body, timeout=timeout)
        try:
            response = await self._client.send(request, stream=True)
        except httpx.HTTPError as error:
            unsent = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
            raise Broken(str(error) or type(error).__name__, was_sent=not isinstance(error, unsent)) from error
        given = [(name.lower(), value) for name, value in response.headers.multi_items()]
        return Response(response.status_code, given, _chunks(response), lambda: self._leave(response))

    def _leave(self, response: httpx.Response) -> None:
        leaving = asyncio.ensure_future(response.aclose())
        self._leaving.add(leaving)
        leaving.add_done_callback(self._leaving.discard)

    async def close(self) -> None:
        """Wait until the responses that are no longer read are closed; the client stays open."""
        await asyncio.gather(*self._leaving, return_exceptions=True)
        await super().close()


class NotingTransport(HttpTransport):
    """Our transport over Streamable HTTP, with these requests."""

    def __init__(self, url: str, requests: NotingRequests, headers: Mapping[str, str]) -> None:
        super().__init__(url, headers=headers)
        self._requests = requests


async def _chunks(response: httpx.Response) -> AsyncGenerator[bytes]:
    import httpx

    try:
        async for chunk in response.aiter_bytes():
            yield chunk
    except httpx.HTTPError as error:
        raise Broken(str(error) or type(error).__name__) from error
