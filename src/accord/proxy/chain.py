"""`accord.chain`: proxies and an agent, joined to one agent in this program.

    chain = accord.chain(rules, ["gemini", "--acp"])

    async with accord.connect(chain) as remote: ...     a target of a client
    chain.run()                                         an agent over standard input and output
    accord.http.serve(chain)                            an agent behind a URL

Each connection has components of its own. Objects of this program are reached in memory, commands as processes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from accord.arguments import wrong_type
from accord.client.target import Target
from accord.connecting import target_of
from accord.errors import ConnectionClosed
from accord.proxy.conductor import Conductor
from accord.proxy.failure import Failure
from accord.running import Unwritable, explain_at_a_terminal, run_until_the_end
from accord.schema import v1
from accord.trace import Observer
from accord.transports.base import Transport
from accord.transports.closing import within
from accord.transports.memory import pair
from accord.transports.stdio import StdioTransport

if TYPE_CHECKING:
    from accord.agent.agent import Agent
    from accord.proxy.proxy import Proxy

Component: TypeAlias = "Agent[Any] | Proxy[Any] | Sequence[str] | Target"
"""A proxy or an agent: an object of this program, a command, a URL, or another target, such as a chain."""


def chain(*components: Component, as_proxy: bool = False, trace: Observer | None = None, bridge: bool = True) -> Chain:
    """Join proxies and an agent to a chain, which is used like an agent.

        async with accord.connect(accord.chain(rules, redactor, ["gemini", "--acp"])) as remote:
            ...

    The last component is the agent; those before it are proxies, the first next to the client. Each is an `Agent` or a
    `Proxy` of this program, a command (a list, or a string that is split like a shell would), a URL, or a chain. With
    `as_proxy`, all are proxies, and the chain is one component of another. `trace` is shown each message between two
    components. An agent of this machine that takes no MCP servers over ACP reaches those of the client and of proxies
    over a bridge, unless `bridge` is False (extra `mcp`).

    A component that ends, or cannot be started, ends the chain: every request is answered, with the component's name.
    """
    if not components and not as_proxy:
        raise ValueError("accord.chain() needs at least one component, the agent")
    return Chain(components, as_proxy=as_proxy, trace=trace, bridge=bridge)


class Chain(Target):
    """Proxies and an agent, used like one agent; `accord.chain` makes it."""

    def __init__(
        self, components: Sequence[Component], *, as_proxy: bool, trace: Observer | None, bridge: bool = True
    ) -> None:
        self._components = list(components)
        self._targets = self._new_targets()
        self._as_proxy = as_proxy
        self._trace = trace
        self._bridge = bridge
        self.name = " | ".join(target.name for target in self._targets) or "empty chain"
        self.is_here = all(target.is_here for target in self._targets)
        self._serving: set[asyncio.Task[Any]] = set()
        self._failure: Exception | None = None

    def _new_targets(self) -> list[Target]:
        return [_target(component, place) for place, component in enumerate(self._components, 1)]

    def __repr__(self) -> str:
        return f"Chain({self.name!r})"

    @property
    def info(self) -> v1.Implementation:
        """The chain's name, as a server shows it."""
        return v1.Implementation(self.name, "0")

    @property
    def program(self) -> str:
        """What all components are, as one text: a remembered answer holds for this chain only."""
        return " | ".join(target.program for target in self._targets)

    @property
    def failure(self) -> Exception | None:
        """The component that ended the last connection; None if none has."""
        return self._failure

    async def serve(self, transport: Transport, *, owner: str = "") -> None:  # noqa: ARG002
        """Serve one client over this transport, until either side ends."""
        await self._conduct(transport)

    def run(self, *, uvloop: bool | None = None) -> None:
        """Serve the client that started this program, over standard input and output.

        `uvloop` is used if it is installed; True insists on it, False refuses it.
        """
        explain_at_a_terminal(self.name)
        run_until_the_end(self._run(), self.name, uvloop=uvloop)

    async def _run(self) -> None:
        failure = await conduct_standard_streams(
            self._new_targets(), as_proxy=self._as_proxy, observer=self._trace, bridge=self._bridge
        )
        if failure is not None:
            raise SystemExit(f"{self.name}: {failure}")

    def dial(self) -> Transport:
        here, there = pair()
        task = asyncio.create_task(self._conduct(there), name=f"accord chain {self.name}")
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)
        return here

    async def _conduct(self, transport: Transport) -> None:
        self._failure = None
        failure = await conduct(
            self._new_targets(), transport, as_proxy=self._as_proxy, observer=self._trace, bridge=self._bridge
        )
        if failure is not None:
            self._failure = ConnectionClosed("failed", str(failure))

    async def release(self) -> None:
        """Wait for the end of the chain's connections, which the end of their links has begun."""
        for task in list(self._serving):
            with suppress(Exception):
                if not await within(10.0, asyncio.shield(task)):
                    task.cancel()
                    await asyncio.wait([task], timeout=1.0)


async def conduct(
    targets: Sequence[Target],
    transport: Transport,
    *,
    as_proxy: bool = False,
    observer: Observer | None = None,
    bridge: bool = True,
) -> Failure | None:
    """Serve one client with these components; returns the failure that ended the chain, or None."""
    try:
        return await Conductor(targets, transport, as_proxy=as_proxy, observer=observer, bridge=bridge).run()
    finally:
        for target in targets:
            if not isinstance(target, Chain):  # a chain may serve other connections as well
                await target.release()


async def conduct_standard_streams(
    targets: Sequence[Target], *, as_proxy: bool = False, observer: Observer | None = None, bridge: bool = True
) -> Failure | None:
    """Serve the client that started this program with these components; returns the failure that ended it, or None."""
    transport = StdioTransport.standard()
    failure = await conduct(targets, transport, as_proxy=as_proxy, observer=observer, bridge=bridge)
    if (error := transport.output_error) is not None:
        raise Unwritable(f"cannot write to standard output: {error.strerror or error}")
    return failure


def _target(component: Component, place: int) -> Target:
    try:
        return target_of(cast("Any", component))
    except TypeError:
        takes = "an Agent, a Proxy, a command, a URL or a chain"
        raise wrong_type(f"accord.chain() as component {place}", takes, cast("object", component)) from None
