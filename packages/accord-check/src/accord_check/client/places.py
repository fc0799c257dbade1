"""Places: what a client's command line says for our agent, and what stands there when the client is started."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path

from accord.extras import PACKAGES
from accord_check.client.arrival import Arrival
from accord_check.client.door import door
from accord_check.passive.observer import Bench

PLACES = ("{agent}", "{url}", "{ws}")
"""The agent's command, and its address over HTTP and over WebSocket."""

VARIABLES = {"{agent}": "ACCORD_CHECK_AGENT", "{url}": "ACCORD_CHECK_URL", "{ws}": "ACCORD_CHECK_WS"}
"""The variables that have the same, for a client that is configured in another way."""


def names_address(words: Sequence[str]) -> bool:
    """Whether this command line names the agent's address."""
    return any(place in word for word in words for place in PLACES[1:])


def can_serve() -> bool:
    """Whether the extra `http` is installed."""
    return all(find_spec(package) is not None for package, extra in PACKAGES.items() if extra == "http")


@asynccontextmanager
async def places_for(
    folder: Path, arrived: Callable[[Arrival], None], judged: Callable[[Bench], None], *, is_served: bool
) -> AsyncGenerator[dict[str, str]]:
    """What stands for the places: the agent's command, and if it `is_served`, its addresses.

    `judged` is told at the end what the HTTP requests have shown.

    Raises AccordError if it is to be served without the extra `http`.
    """
    async with door(folder, arrived) as agent:
        places = {"{agent}": str(agent)}
        if not is_served:
            yield places
            return
        from accord_check.client.address import address  # only a client with a URL needs a server

        async with address(arrived) as served:
            try:
                yield {**places, "{url}": served.url, "{ws}": served.websocket}
            finally:
                judged(served.requests.bench)
