"""`accord.chain`: proxies and an agent, joined to one agent in this program.

    chain = accord.chain(rules, ["gemini", "--acp"])

    async with accord.connect(chain) as remote: ...     a target of a client
    chain.run()                                         an agent over standard input and output
    accord.http.serve(chain)                            an agent behind a URL

Each connection has its own components. Objects of this program are reached in memory, commands as processes.

**The conductor** is the life of a chain, from the first `initialize` to the end of its last component.

    waiting ── a valid initialize ──▶ running ── the client leaves, or a component ends ──▶ closing ──▶ ended

**Start.** Components are started when the first valid `initialize` arrives, all at once. Messages to one that is not
open yet wait for it. A component that cannot be started answers `initialize` with an error that names it.

**End.** When a component ends, each request that waits for it is answered with its failure at once, and so is each
later one. The other components have a grace period to answer the client's requests; the remaining ones then are
answered with the same failure. When the client disconnects, open requests have the same grace period. Then all
components are closed at the same time, each by the steps of its transport, which for a process are: close its input,
wait, SIGTERM, wait, SIGKILL.

An agent that cannot use the MCP servers of other components gets a bridge to them (`AgentBridge`).

No component is restarted or left out: it may be the one that protects something.

**Components** may be written as words, a JSON object or a URL (`read_component`):

| written | is |
|---|---|
| `python rules.py --strict` | a command, split into words as a shell does, and never run by one |
| `{"command": "python", "args": ["rules.py"], "env": {"LANG": "C"}}` | a command as JSON, as editors write it |
| `https://agents.example/acp` | an agent behind a URL |
| `rules.py`, `rules.py:proxy` | an agent or a proxy of a Python file |
| `gemini` | a program on PATH, or an agent with a name: with accord-tools, one that `accord agents` lists |
"""

from __future__ import annotations

import asyncio
import logging
import os
import shlex
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import msgspec

from accord._internal.tasks import LightEvent, Tasks, first_of, to_the_end
from accord.agent.agent_capabilities import initialize_in_version_1
from accord.agent_file import startable
from accord.client.connect import MemoryTarget, target_of
from accord.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    AccordError,
    ConfigurationError,
    ConnectionClosed,
    RequestError,
)
from accord.installation import mcp_is_installed, scheme_of
from accord.jsonrpc.line_frames import RequestId
from accord.mistakes import place_of, wrong_type
from accord.program import Unwritable, explain_at_a_terminal, run_until_the_end
from accord.proxy.chain_mcp import AgentBridge
from accord.proxy.link import INITIALIZE, BadVersion, ComponentFailure, Link, Port, join, offered_params
from accord.proxy.switchboard import Switchboard
from accord.schema import codec, v1
from accord.trace import Observer
from accord.transports import CommandTarget, End, Target, Transport
from accord.transports.launch import program_file
from accord.transports.stdio_transport import StdioTransport

if TYPE_CHECKING:
    from accord.agent.agent import Agent
    from accord.proxy.proxy import Proxy


class JsonCommand(msgspec.Struct, frozen=True):
    """A command in JSON, in the form of the Rust SDK's conductor."""

    command: str
    args: list[str] = []
    env: dict[str, str] | list[dict[str, Any]] = {}

    @property
    def variables(self) -> dict[str, str]:
        """Return the variables, given as an object or as a list of names and values."""
        env = self.env
        return dict(env) if isinstance(env, dict) else {str(it["name"]): str(it["value"]) for it in env}


def read_component(written: str, on_stderr: Callable[[str], object] | None = None) -> Target:
    """The target that one component names; raises ConfigurationError for one that cannot be read."""
    written = written.strip()
    if not written:
        raise ConfigurationError("a component is empty: write a command, a URL or a JSON object")
    if written.startswith("{"):
        return _from_json(written, on_stderr)
    words = [] if scheme_of(written) else _command_words(written)
    if words and program_file(words[0]) is not None:  # a program comes before an agent with its name
        return CommandTarget(words, on_stderr=on_stderr)
    return target_of(written, on_stderr=on_stderr)


def _command_words(written: str) -> list[str]:
    try:
        return shlex.split(written, posix=os.name == "posix")
    except ValueError as error:
        raise ConfigurationError(f"cannot split the component {written!r} into words: {error}") from None


def _from_json(written: str, on_stderr: Callable[[str], object] | None) -> Target:
    try:
        given = msgspec.json.decode(written, type=JsonCommand)
        env = given.variables
    except (msgspec.DecodeError, KeyError) as error:
        form = '{"command": "program", "args": ["word"], "env": {"NAME": "value"}}'
        raise ConfigurationError(f"cannot read the component {written!r}: {error}; write {form}") from None
    return CommandTarget(startable([given.command, *given.args]), env=env, on_stderr=on_stderr)


log = logging.getLogger("accord")

ANSWERS_WITHIN = 2.0
"""Seconds that components have to answer the client's requests, before they are closed."""

GRACE = 2.0
"""Seconds that each step of closing a component may take."""


class Conductor:
    """Serves one client, or a conductor as its client, with a chain of components."""

    def __init__(
        self,
        targets: Sequence[Target] | Choose,
        client: Transport,
        *,
        as_proxy: bool = False,
        observer: Observer | None = None,
        grace: float = GRACE,
        bridge: bool = True,
    ) -> None:
        self.failure: ComponentFailure | None = None
        """The component that ended first, and why; None while all run."""
        self._choose = targets if callable(targets) else None
        """Chooses the components from the first request."""
        self.targets: list[Target] = [] if callable(targets) else list(targets)
        self._grace = grace
        self._board = Switchboard(self._link_ended, observer)
        self._client = Link(self._board, client, "the client", is_component=False, has_successor=as_proxy)
        self._links: list[Link] = []
        self._board.links.append(self._client)
        self._as_proxy = as_proxy
        self._is_bridging = bridge and not as_proxy
        self._bridge: AgentBridge | None = None
        """The MCP servers of other components that the agent reaches over a bridge."""
        self._tasks = Tasks(asyncio.get_running_loop())
        self._began = False
        self._over = LightEvent()
        self._settled = LightEvent()
        self._closing = False
        self._starts: list[asyncio.Task[None]] = []
        for port in (self._client.plain, self._client.wrapped):
            port.intercept = self._from_the_client
        self._client.plain.mate = self._client.plain  # until the components are known: nothing passes before that

    async def run(self) -> ComponentFailure | None:
        """Serve until the client leaves or a component ends; returns the failure, if that was the reason."""
        await self._client.open()
        try:
            await self._over.wait()
            await self._settle()
        finally:
            await to_the_end(asyncio.create_task(self._close(), name="close the chain"))
        return self.failure

    # Start

    def _from_the_client(self, request_id: RequestId | None, method: str, params: Any) -> bool:
        """Handle the client's messages before `initialize`, and check the version of each `initialize`."""
        if request_id is not None and method == INITIALIZE:
            self._initialize(request_id, params)
            return True
        if self._began:
            return self._bridged(request_id, method, params)
        if request_id is not None:
            problem = f"Invalid request: initialize must come before {method}"
            self._board.refuse(self._client, request_id, INVALID_REQUEST, problem)
        return True

    def _initialize(self, request_id: RequestId, params: Any) -> None:
        try:
            params = offered_params(params)
        except BadVersion as error:
            self._board.refuse(self._client, request_id, INVALID_PARAMS, f"Invalid params: {error}")
            return
        if not self._began:
            try:
                self.targets = (
                    self.targets if self._choose is None else self._choose(initialize_in_version_1(codec.loads(params)))
                )
            except RequestError as error:
                self._board.refuse(self._client, request_id, error.code, error.message)
                return
            except Exception:
                log.exception("choosing the components of the chain failed")
                self._board.refuse(self._client, request_id, INTERNAL_ERROR, "the components of the chain are unknown")
                return
            self._begin()
        if not self._bridged(request_id, INITIALIZE, params):
            self._board.pass_request(self._client.plain, request_id, INITIALIZE, params)

    def _bridged(self, request_id: RequestId | None, method: str, params: Any) -> bool:
        """Whether the bridge to the agent has taken a message of the client, if there is no proxy before the agent."""
        no_proxy = len(self._links) == 1
        return no_proxy and self._bridge is not None and self._bridge.take(request_id, method, params)

    def _begin(self) -> None:
        """Make the links of the chain, join them, and start their components."""
        self._began = True
        last = len(self.targets) - 1
        for place, target in enumerate(self.targets):
            is_proxy = self._as_proxy or place < last
            name = f"proxy {place + 1} ({target.name})" if is_proxy else f"the agent ({target.name})"
            try:
                transport = target.dial()
            except AccordError as error:
                transport = Unopened(str(error))
            self._links.append(Link(self._board, transport, name, is_proxy=is_proxy))
        self._board.links += self._links
        self._join()
        self._client.wrapped.intercept = None
        self._starts = [asyncio.create_task(self._start(link), name=f"start {link.name}") for link in self._links]

    def _join(self) -> None:
        nearer: Port = self._client.plain
        for link in self._links:
            join(nearer, link.plain)
            nearer = link.wrapped
        if self._as_proxy:
            join(nearer, self._client.wrapped)
        else:
            self._links[-1].wrapped.mate = None
            self._build_bridge()

    def _build_bridge(self) -> None:
        """Let the agent reach MCP servers of the other components, if it runs on this machine."""
        target, agent = self.targets[-1], self._links[-1]
        if self._is_bridging and target.is_here and mcp_is_installed():
            nearer = agent.plain.mate
            assert nearer is not None
            self._bridge = AgentBridge(self._board, nearer, self._tasks)
            if nearer is not self._client.plain:
                nearer.intercept = self._bridge.take

    async def _start(self, link: Link) -> None:
        try:
            await link.open()
        except AccordError as error:
            closed = error if isinstance(error, ConnectionClosed) else ConnectionClosed("broken", str(error))
            self._fail(link, closed)

    # End

    def _link_ended(self, link: Link, end: End) -> None:
        if link is self._client:
            if end.reason != "peer_closed":
                self._settled.set()  # it reads no answer either
            self._over.set()
        elif not self._closing:
            printed = (
                f"; it printed {link.printed!r}, which is not a message" if link.printed and not end.stderr else ""
            )
            self._fail(
                link, ConnectionClosed(end.reason, _words(end) + printed, exit_code=end.exit_code, stderr=end.stderr)
            )
        else:
            link.fail(
                self.failure or ComponentFailure(link.name, end.reason, "the chain has been closed", end.exit_code)
            )

    def _fail(self, link: Link, error: ConnectionClosed) -> None:
        failure = ComponentFailure.of(link.name, error)
        self.failure = self.failure or failure
        link.fail(failure)
        self._over.set()

    async def _settle(self) -> None:
        """Let the running components answer the client's requests."""
        self._client.on_settled = self._settled.set
        self._client.settled()
        await first_of(self._settled.wait(), seconds=ANSWERS_WITHIN)

    async def _close(self) -> None:
        self._closing = True
        for task in self._starts:
            task.cancel()
        await asyncio.gather(*self._starts, return_exceptions=True)
        if self._bridge is not None:
            self._bridge.close()
        await self._tasks.end(self._grace)
        await asyncio.gather(*(link.transport.close(self._grace) for link in self._links), return_exceptions=True)
        for link in self._links:
            if link.failure is None:
                link.fail(self.failure or ComponentFailure(link.name, "closed", "the chain has been closed"))
        await self._client.transport.close(self._grace)


def _words(end: End) -> str:
    """Describe what happened, if the end does not show it: the texts of the agent's errors do not suit a proxy."""
    return end.detail or _ENDED.get(end.reason, "")


_ENDED = {
    "process_ended": "its process ended",
    "died_at_start": "its process ended before it answered",
    "peer_closed": "it closed the connection",
}


class Unopened(Transport):
    """A transport that could not even be made; opening it raises the reason."""

    name = "unopened"

    def __init__(self, why: str) -> None:
        self.why = why

    async def start(self, receiver: Any) -> None:  # noqa: ARG002
        raise ConnectionClosed("died_at_start", self.why)

    def send(self, frames: Any) -> None: ...

    @property
    def unsent(self) -> int:
        return 0

    async def flush(self) -> None: ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    async def close(self, grace: float = 2.0) -> End:  # noqa: ARG002
        return End("died_at_start", self.why)


Component: TypeAlias = "Agent[Any] | Proxy[Any] | Sequence[str] | Target"
"""A proxy or an agent: an object of this program, a command, a URL, or another target, such as a chain."""


Choose: TypeAlias = Callable[[v1.InitializeRequest], list[Target]]
Chooser: TypeAlias = "Callable[[v1.InitializeRequest], Sequence[Component]]"
"""Chooses the components of a connection from the client's first request."""


def chain(
    *components: Component | Chooser, as_proxy: bool = False, trace: Observer | None = None, bridge: bool = True
) -> Chain:
    """Join proxies and an agent to a chain, which is used like an agent.

        async with accord.connect(accord.chain(rules, redactor, ["gemini", "--acp"])) as remote:
            ...

    The last component is the agent; those before it are proxies, the first next to the client. Each is an `Agent` or a
    `Proxy` of this program, a command (a list, or a string that is split like a shell would), a URL, or a chain. With
    `as_proxy`, all are proxies, and the chain is one component of another. `trace` gets each message between two
    components. An agent of this machine that supports no MCP servers over ACP reaches those of the client and of
    proxies over a bridge, unless `bridge` is False (extra `mcp`).

    A function instead of the components chooses them for each connection: it takes the client's first request, a
    `v1.InitializeRequest` whichever version the client speaks, and returns a list. It may raise `RequestError` to
    refuse the client.

    A component that ends, or cannot be started, ends the chain: every request is answered, with the component's name.
    """
    if not components and not as_proxy:
        raise ValueError("accord.chain() needs at least one component, the agent")
    if any(callable(it) for it in components) and len(components) > 1:
        raise ValueError("accord.chain() takes components, or one function that chooses them, not both")
    return Chain(components, as_proxy=as_proxy, trace=trace, bridge=bridge)


class Chain(MemoryTarget):
    """Proxies and an agent, used like one agent; `accord.chain` makes it."""

    ends_within = 10.0

    def __init__(
        self, components: Sequence[Component | Chooser], *, as_proxy: bool, trace: Observer | None, bridge: bool = True
    ) -> None:
        self._chooser: Any = next((it for it in components if callable(it)), None)
        self._components = [] if self._chooser is not None else cast("list[Component]", list(components))
        self._as_proxy = as_proxy
        self._trace = trace
        self._bridge = bridge
        targets = [] if self._chooser is not None else self._new_targets()
        if self._chooser is None:
            super().__init__(" | ".join(target.name for target in targets) or "empty chain")
            self._program = " | ".join(target.program for target in targets)
        else:
            super().__init__(getattr(self._chooser, "__name__", "chain").replace("_", " "))
            self._program = f"chosen by {place_of(self._chooser)}"
        self.is_here = bool(targets) and all(target.is_here for target in targets)

    def _new_targets(self) -> list[Target]:
        return [_target(component, place) for place, component in enumerate(self._components, 1)]

    def _choose(self, request: v1.InitializeRequest) -> list[Target]:
        chosen = self._chooser(request)
        if isinstance(chosen, str) or not isinstance(chosen, Sequence) or not (chosen or self._as_proxy):
            takes = "a list with the components, the agent last"
            raise wrong_type(f"{place_of(self._chooser)} for accord.chain()", takes, cast("object", chosen))
        return [_target(it, place) for place, it in enumerate(cast("Sequence[Component]", chosen), 1)]

    @property
    def _conducted(self) -> Sequence[Target] | Choose:
        """Return new targets of the components, or the function that chooses them."""
        return self._new_targets() if self._chooser is None else self._choose

    def __repr__(self) -> str:
        return f"Chain({self.name!r})"

    @property
    def info(self) -> v1.Implementation:
        """The chain's name, as a server shows it."""
        return v1.Implementation(self.name, "0")

    @property
    def program(self) -> str:
        """The identity of all components, as one text: a remembered answer applies to this chain only."""
        return self._program

    async def serve(self, transport: Transport, *, owner: str = "") -> None:  # noqa: ARG002
        """Serve one client over this transport, until either side ends."""
        await self._serve(transport)

    def run(self, *, uvloop: bool | None = None) -> None:
        """Serve the client that started this program, over standard input and output.

        `uvloop` is used if it is installed; True requires it, False forbids it.
        """
        explain_at_a_terminal(self.name)
        run_until_the_end(self._run(), self.name, uvloop=uvloop)

    async def _run(self) -> None:
        failure = await conduct_standard_streams(
            self._conducted, as_proxy=self._as_proxy, observer=self._trace, bridge=self._bridge
        )
        if failure is not None:
            raise SystemExit(f"{self.name}: {failure}")

    async def _serve(self, transport: Transport) -> None:
        self._failure = None
        failure = await conduct(
            self._conducted, transport, as_proxy=self._as_proxy, observer=self._trace, bridge=self._bridge
        )
        if failure is not None:
            self._failure = ConnectionClosed("failed", str(failure))


async def conduct(
    targets: Sequence[Target] | Choose,
    transport: Transport,
    *,
    as_proxy: bool = False,
    observer: Observer | None = None,
    bridge: bool = True,
) -> ComponentFailure | None:
    """Serve one client with these components; returns the failure that ended the chain, or None."""
    conductor = Conductor(targets, transport, as_proxy=as_proxy, observer=observer, bridge=bridge)
    try:
        return await conductor.run()
    finally:
        for target in conductor.targets:
            if not isinstance(target, Chain):  # a chain may serve other connections as well
                await target.release()


async def conduct_standard_streams(
    targets: Sequence[Target] | Choose, *, as_proxy: bool = False, observer: Observer | None = None, bridge: bool = True
) -> ComponentFailure | None:
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
