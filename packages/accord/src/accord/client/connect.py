"""`accord.connect` and `accord.open`: connect with an agent by its command, its URL or its object.

`accord.connect` returns a `ConnectionBlock`: a connection that lives as long as an `async with` block. People try `with
accord.connect(...)` and `await accord.connect(...)` first. Python's own errors name the missing methods; these name the
line to write.
"""

# ruff: noqa: A001

# The private members of an agent are private to this room.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import inspect
import os
import shlex
import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, TypeAlias, TypeVar, cast

from accord._internal.endpoint import Endpoint
from accord._internal.tasks import within
from accord.client.client import Client, definition_of
from accord.client.handshake import VERSIONS, checked_versions
from accord.client.remote_agent import RemoteAgent
from accord.client.restart import Restart
from accord.engine.connection import Limits
from accord.errors import AccordError
from accord.installation import (
    AGENTS,
    TRANSPORTS,
    PluginError,
    describe,
    load_plugin,
    plugin_for_scheme,
    plugins,
    scheme_of,
)
from accord.mistakes import wrong_type
from accord.program import OWNER
from accord.trace import Observer
from accord.transports import CommandTarget, Target, Transport
from accord.transports.memory_transport import pair

if TYPE_CHECKING:
    from accord import Agent
    from accord.engine.spans import Spans
    from accord.transports.launch import Inherit


P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

HOW = "write `async with accord.connect(...) as remote:` inside an `async def`"


class ConnectionBlock(AbstractAsyncContextManager[RemoteAgent, None]):
    """A connection for an `async with` block: it begins when the block is entered and ends when it is left."""

    def __init__(self, make: Callable[[], RemoteAgent]) -> None:
        self._make = make
        self._remote: RemoteAgent | None = None

    async def __aenter__(self) -> RemoteAgent:
        """Connect."""
        self._remote = await self._connect(in_block=True)
        return self._remote

    async def _connect(self, *, in_block: bool) -> RemoteAgent:
        remote = self._make()
        await remote._start(in_block=in_block)
        return remote

    async def __aexit__(self, *_: object) -> None:
        """End the connection."""
        if self._remote is not None:
            await self._remote.close()

    if not TYPE_CHECKING:  # type checkers find these mistakes because the methods are missing

        def __enter__(self) -> NoReturn:
            raise TypeError(f"accord.connect() cannot be used in a plain `with`; {HOW}")

        def __exit__(self, *_: object) -> None:
            """Never called, but Python looks it up before it calls `__enter__`."""

        def __await__(self) -> NoReturn:
            raise TypeError(f"accord.connect() cannot be awaited; {HOW}")

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(name)
            raise AttributeError(f"accord.connect() is not connected yet, so it has no {name!r}; {HOW}")


def with_parameters_of(function: Callable[P, object]) -> Callable[[Callable[..., T]], Callable[P, T]]:
    """Give a function the parameters of `function`, for type checkers and `help`, because it passes all of them on."""

    def decorate(passing: Callable[..., T]) -> Callable[P, T]:
        parameters = list(inspect.signature(function).parameters.values())
        vars(passing)["__signature__"] = inspect.signature(passing).replace(parameters=parameters)
        return passing

    return decorate


START_WITHIN = 60.0
"""Seconds that an agent has to answer `initialize`; wrappers such as npx may have to fetch it first."""

Where: TypeAlias = "Sequence[str] | Agent | Target"
"""A command, an agent's name, a URL, an Agent in memory, or a target. A string that is neither a name nor a URL is
split like a shell would, and never run by one.
"""


def connect(
    target: Where,
    client: Client | None = None,
    *,
    cwd: str | Path | None = None,
    env: Mapping[str, str | None] | None = None,
    inherit: Inherit = True,
    token: str | None = None,
    headers: Mapping[str, str] | None = None,
    proxy: str | bool = True,
    timeout: float = START_WITHIN,
    versions: Sequence[int] = VERSIONS,
    restart: Restart | bool = False,
    unstable: bool = False,
    trace: str | Path | Observer | None = None,
    spans: Spans | None = None,
    providers: Mapping[str, Endpoint] | None = None,
    limits: Limits | None = None,
    on_stderr: Callable[[str], object] | None = None,
    owner: str = "",
) -> ConnectionBlock:
    """Connect to an agent, and end it when the block is left.

        async with accord.connect(["gemini", "--acp"]) as remote:
            session = await remote.new_session("/home/me/project")
            print((await session.prompt("What is in here?")).text)

    `target` is a command (a list, or a string that is split like a shell would), a URL, or an `Agent` of this program.
    A string of one word is first looked up as the name of an agent, by the plug-ins of `accord.agents`: one of `accord
    agents`, or an installed one of the registry, such as "gemini" or "registry:gemini". A list is always a command. A
    command is started in `cwd`, with our environment changed by `env`; `inherit` says which of our variables it gets
    (all, none, or these names). To a URL, `headers` are sent, and `token` as a bearer token; `proxy` is the URL of an
    HTTP or SOCKS5 proxy, or False for none, whatever `HTTPS_PROXY` says. `timeout` is for its start. `versions` are the
    versions of the protocol that may be spoken, of which the agent chooses: (1,), (2, 1) or (2,). `restart` restarts it
    when it dies. `trace` records the wire in a file, or passes it to a function. `spans` makes an OpenTelemetry span of
    each request, and sends the trace context along. `providers` says where the agent's models are, by the ids of its
    providers; they are set again after a restart. `unstable` enables what the protocol only proposes. `on_stderr` is
    called with each line that a command writes to its standard error, unchanged: pass it through
    `accord.printable.printable` before you print it to a terminal. `owner` is the user of your program to whom these
    sessions belong: an `Agent`, and a command written with Accord, keeps them apart from those of others. Behind a URL
    the token identifies the user.

    Raises one clear error when the agent cannot be started or does not speak the protocol.
    """

    def make() -> RemoteAgent:
        reached = target_of(
            target,
            cwd=cwd,
            env=env,
            inherit=inherit,
            token=token,
            headers=headers,
            proxy=proxy,
            on_stderr=on_stderr,
            owner=owner,
        )
        remote = RemoteAgent(
            reached,
            definition_of(Client() if client is None else client),
            timeout=timeout,
            versions=checked_versions(versions),
            restart=(Restart() if restart else None) if isinstance(restart, bool) else restart,
            unstable=unstable,
            limits=limits,
            spans=spans,
            providers=providers,
        )
        if isinstance(trace, str | Path):
            from accord.trace import TraceFile

            file = TraceFile(trace, role="client")
            remote._resources.callback(file.close)
            remote._observers.append(file)
        elif trace is not None:
            remote._observers.append(trace)
        return remote

    return ConnectionBlock(make)


@with_parameters_of(connect)
async def open(*args: Any, **kwargs: Any) -> RemoteAgent:
    """Connect to an agent until `close` is called on it: for notebooks, where a connection outlives its cell.

        remote = await accord.open(["gemini", "--acp"])
        session = await remote.new_session("/home/me/project")
        ...
        await remote.close()

    The parameters are those of `accord.connect`. An agent that was not closed is ended when nothing refers to it or its
    sessions any more, or when the program ends, with a ResourceWarning. Everywhere else use `accord.connect`, whose
    block cannot be forgotten.
    """
    return await connect(*args, **kwargs)._connect(in_block=False)


def target_of(
    where: Where,
    *,
    cwd: str | Path | None = None,
    env: Mapping[str, str | None] | None = None,
    inherit: Inherit = True,
    token: str | None = None,
    headers: Mapping[str, str] | None = None,
    proxy: str | bool = True,
    on_stderr: Callable[[str], object] | None = None,
    owner: str = "",
) -> Target:
    """The target that `where` names; raises AccordError if its command cannot be split or its name means no agent."""
    if owner:
        if isinstance(where, Target) or (isinstance(where, str) and scheme_of(where)):
            raise ValueError("connect(owner=...) is for an Agent or a command; behind a URL the token says whose it is")
        env = {**(env or {}), OWNER: owner}
    if isinstance(where, Target):
        return where
    if isinstance(where, str):
        options: dict[str, Any] = {
            "cwd": cwd, "env": env, "inherit": inherit, "token": token, "headers": headers, "proxy": proxy,
            "on_stderr": on_stderr,
        }  # fmt: skip
        if scheme_of(where):
            return url_target(where, **options)
        try:
            words = shlex.split(where, posix=os.name == "posix")
        except ValueError as error:
            raise AccordError(f"cannot split the command {where!r} into words: {error}; pass a list instead") from None
        from accord.agent_file import startable

        where = startable(words)
        if where == words and len(words) == 1 and (named := find_agent(words[0], **options)) is not None:
            return named
    if isinstance(where, Sequence):
        return CommandTarget(where, cwd=cwd, env=env, inherit=inherit, on_stderr=on_stderr)
    if not hasattr(where, "serve"):
        hint = f"write [{str(where)!r}] to run it" if isinstance(cast("object", where), Path) else ""
        raise wrong_type("connect(target)", "a command, a URL or an Agent", where, hint)
    return AgentTarget(where, owner)


def url_target(url: str, **options: Any) -> Target:
    """Return the target for a URL, made by the plug-in of `accord.transports` for its scheme; raises PluginError if
    none.
    """
    target = plugin_for_scheme(TRANSPORTS, url)(url, **options)
    if not isinstance(target, Target):
        raise PluginError(f"the transport for {scheme_of(url)}:// must return a Target, got {type(target).__name__}")
    return target


def find_agent(word: str, **options: Any) -> Target | None:
    """Return the agent that a plug-in of `accord.agents` knows by this name; None for an unknown name or a path.

    A broken plug-in is skipped with a warning: the word may be a command, or known to another plug-in. An AccordError
    that it raises is about the agent that was meant.
    """
    from accord.transports.launch import program_file

    if os.sep in word and program_file(word) is not None:
        return None
    for plugin in plugins(AGENTS).values():
        try:
            find = load_plugin(plugin)
        except PluginError as error:
            warnings.warn(f"cannot ask for the agent {word!r}: {error}", stacklevel=2)
            continue
        try:
            target = find(word, **options)
        except AccordError:
            raise
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
            warnings.warn(f"cannot ask for the agent {word!r}: {describe(plugin)} failed: {problem}", stacklevel=2)
            continue
        if isinstance(target, Target):
            return target
        if target is not None:
            raise PluginError(f"{describe(plugin)} must return a Target or None, got {type(target).__name__}")
    return None


class MemoryTarget(Target):
    """An agent served by this program, reached in memory."""

    ends_within = 5.0
    """Seconds for the end of a connection."""

    def __init__(self, name: str) -> None:
        self.name = name
        """Its name in error messages."""
        self._serving: set[asyncio.Task[Any]] = set()
        self._failure: Exception | None = None

    @property
    def failure(self) -> Exception | None:
        """Return why the last connection could not be served, or ended too soon; None if neither happened."""
        return self._failure

    @abstractmethod
    async def _serve(self, transport: Transport) -> None:
        """Serve one connection."""

    def dial(self) -> Transport:
        here, there = pair()
        task = asyncio.create_task(self._serve(there), name=f"accord serves {self.name}")
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)
        return here

    async def release(self) -> None:
        """Wait for the connections to end, which the end of their links has begun; a stuck one is cancelled."""
        for task in list(self._serving):
            with suppress(Exception):
                if not await within(self.ends_within, asyncio.shield(task)):
                    task.cancel()
                    await asyncio.wait([task], timeout=1.0)


class AgentTarget(MemoryTarget):
    """An agent of this program."""

    def __init__(self, agent: Agent, owner: str = "") -> None:
        super().__init__(agent.info.name)
        self._agent = agent
        self._owner = owner

    @property
    def program(self) -> str:
        return self._agent.program

    async def _serve(self, transport: Transport) -> None:
        """Serve one connection. An agent that cannot serve must not leave its client waiting for an answer."""
        self._failure = None
        try:
            # Objects that only stand for an agent, such as a recorded one, know no owners.
            await self._agent.serve(transport, **({"owner": self._owner} if self._owner else {}))
        except Exception as error:
            self._failure = error
            await transport.close()
