"""`connected`: an agent and your client, connected in one process.

    async with connected(agent, client) as link:
        answer = await link.client.request(PromptRequest.of("s", "hello"))

Each side's `Peer` is for that side's use: `link.client` sends to the agent's handlers, `link.agent` to the client's.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

from accord.engine.connection import Limits
from accord.engine.handlers import Handlers
from accord.engine.peer import Peer
from accord.engine.spans import Spans
from accord.schema import v1
from accord.transports import HIGH_WATER, Transport
from accord.transports.memory_transport import pair

VERSION = 1


class Connected(NamedTuple):
    """Both sides of a connection."""

    agent: Peer
    """The agent's peer: it sends to the client."""
    client: Peer
    """The client's peer: it sends to the agent."""


@asynccontextmanager
async def connected(
    agent: Handlers | None = None,
    client: Handlers | None = None,
    *,
    initialize: bool = True,
    agent_capabilities: v1.AgentCapabilities | None = None,
    client_capabilities: v1.ClientCapabilities | None = None,
    unstable: bool = False,
    debug: bool = False,
    limits: Limits | None = None,
    spans: Spans | None = None,
    high_water: int = HIGH_WATER,
    through: Callable[[Transport], Transport] | None = None,
) -> AsyncGenerator[Connected]:
    """Connect these handlers in memory.

    With `initialize`, the client sends `initialize` with `client_capabilities`; if the agent has no handler for it, it
    is answered with `agent_capabilities`. `through` wraps the client's transport, as in a `FaultyTransport`;
    `high_water` is how many bytes may wait in the transport. The other options are those of both peers.
    """
    for given in (agent, client):
        _must_be_handlers(given)
    here, there = pair(high_water=high_water)
    held_by_agent = Peer(
        there,
        answering_initialize(agent or Handlers(), agent_capabilities),
        role="agent",
        unstable=unstable,
        debug=debug,
        limits=limits,
        spans=spans,
    )
    held_by_client = Peer(
        here if through is None else through(here),
        client,
        role="client",
        unstable=unstable,
        debug=debug,
        limits=limits,
        spans=spans,
    )
    async with held_by_agent, held_by_client:
        if initialize:
            await held_by_client.initialize(
                v1.InitializeRequest(VERSION, client_capabilities or v1.ClientCapabilities())
            )
        yield Connected(held_by_agent, held_by_client)


def _must_be_handlers(given: object) -> None:
    if given is not None and not isinstance(given, Handlers):
        raise TypeError(
            f"connected() takes Handlers, not {type(given).__name__}; "
            "an Agent is connected by `async with accord.connect(agent) as remote`"
        )


def answering_initialize(handlers: Handlers, capabilities: v1.AgentCapabilities | None = None) -> Handlers:
    """Return these handlers, with one for `initialize` if there is none."""
    if handlers.handles(v1.InitializeRequest):
        return handlers
    more = Handlers()
    more.by_method |= handlers.by_method
    more.others = handlers.others

    @more.on(v1.InitializeRequest)
    def initialize(_: v1.InitializeRequest) -> v1.InitializeResponse:
        return v1.InitializeResponse(VERSION, capabilities or v1.AgentCapabilities())

    return more
