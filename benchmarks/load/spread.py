"""A client's way to several hosts, as a balancer without stickiness gives it: each request goes to the next host."""

from collections.abc import Sequence
from itertools import count

from accord.http import HttpTransport
from accord.http.client.client_socket import Broken, Response
from accord.http.client.connection_pool import ConnectionPool


class SpreadPool(ConnectionPool):
    """Connections to several hosts. A host that cannot be reached is passed over."""

    def __init__(self, urls: Sequence[str], first: int) -> None:
        super().__init__(urls[0], http2=False)
        self._ways = [ConnectionPool(url, http2=False) for url in urls]
        self._turns = count(first)

    async def request(self, method: str, headers: Sequence[tuple[str, str]], body: bytes = b"") -> Response:
        """Send a request to the next host; raises Broken."""
        refused: Broken | None = None
        for _ in self._ways:
            try:
                return await self._ways[next(self._turns) % len(self._ways)].request(method, headers, body)
            except Broken as broken:
                if broken.was_sent:
                    raise
                refused = broken
        assert refused is not None
        raise refused

    async def close(self) -> None:
        """Close all connections."""
        for way in self._ways:
            await way.close()


class SpreadTransport(HttpTransport):
    """A transport whose requests reach one host after the other. `first` says which host is the first."""

    def __init__(self, urls: Sequence[str], first: int) -> None:
        super().__init__(urls[0], http2=False)
        self._requests = SpreadPool(urls, first)

    @property
    def host(self) -> str:
        """The id of the host with the agent, which the id of the connection names."""
        return (self._connection_id or "").partition(".")[0]
