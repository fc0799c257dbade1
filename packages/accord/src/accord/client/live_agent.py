"""`LiveAgent`: an agent while a client is connected to it, and its restart. The caller holds the `RemoteAgent`.

session/update ──▶ `Sessions.arrived` ──▶ its LiveSession, or `UnknownSessionUpdates` until there is one
requests of the agent ──▶ the client's services, which find the session by its id

It keeps where the agent's models are, as its caller has set it (`Providers`): the protocol forbids an agent to store
credentials. They are set on every new connection before any session is opened there. If that fails, so does the
connection: a prompt must not go to other models than the caller chose.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

import msgspec

from accord._internal.endpoint import Endpoint
from accord._internal.tasks import Tasks, to_the_end
from accord.client.client import ClientDefinition
from accord.client.handshake import VERSIONS, Offer, open_link
from accord.client.remote_session import RemoteSession
from accord.client.session_table import Sessions
from accord.engine.connection import Limits
from accord.engine.handlers import Handlers, MessageT, Registrar, in_thread_if_answers
from accord.engine.interceptors import Interceptors
from accord.engine.outgoing import PendingRequest
from accord.engine.peer import Peer
from accord.errors import AccordError, CapabilityMissing, ConnectionClosed, PeerError, keep_stderr
from accord.mistakes import wrong_type
from accord.schema import codec, v1
from accord.schema.base import Json, Notification, Request
from accord.schema.capabilities import AgentOffers
from accord.services.service import Service
from accord.trace import Observer
from accord.transports import CommandTarget, Target

if TYPE_CHECKING:
    from msgspec import Raw

    from accord.client.lent_tools import EditorServer, Lending
    from accord.dialects.v2_requests import V2Agent
    from accord.engine.spans import Spans
    from accord.mcp.tool_server import ToolServer
    from accord.schema.extension import Extensions


ResultT = TypeVar("ResultT")

log = logging.getLogger("accord")


class LiveAgent:
    """The connection to one agent, which may be restarted, and its sessions."""

    def __init__(
        self,
        target: Target,
        client: ClientDefinition,
        *,
        timeout: float,
        versions: Sequence[int] = VERSIONS,
        restart: Restart | None = None,
        unstable: bool = False,
        limits: Limits | None = None,
        observers: Sequence[Observer] = (),
        spans: Spans | None = None,
        providers: Mapping[str, Endpoint] | None = None,
    ) -> None:
        self.target = target
        self.limits = limits or Limits()
        self.version = 1
        """The version of the protocol that the connection speaks."""
        self.answer = v1.InitializeResponse(1)
        """The agent's answer to `initialize`, in the words of version 1."""
        self.capabilities = AgentOffers()
        """What the agent declared."""
        self._translated: V2Agent | None = None
        """What sends the requests of version 1 on a connection of version 2."""
        self._versions = versions
        self.offered_encodings: list[str] = []
        """The position encodings that were offered to the agent."""
        self.tasks = Tasks(asyncio.get_running_loop())
        self.sessions = Sessions(self)
        self._client = client
        self._timeout = timeout
        self._unstable = unstable
        self._observers = list(observers)
        client.handlers.check_versions({1, *versions})
        self._spans = spans
        self.providers = Providers(providers)
        """Where the agent's models are, as the client wants it."""
        self._handlers = Handlers({1, *versions}, author="@remote")
        self._handlers.extensions = client.extensions
        """The handlers that the caller registered for this agent."""
        self.interceptors = Interceptors()
        """The handlers of single sessions, also after a restart."""
        self._peer: Peer | None = None
        self._closing: asyncio.Task[None] | None = None
        self.restarter = AgentRestarter(self, restart)
        """Restarts the agent when it has ended."""
        self._lending: Lending | None = None
        """The MCP servers of this program that the agent may use."""

    @property
    def name(self) -> str:
        """The agent's name, which is the same next time: what it calls itself, or its command or address."""
        info = self.answer.agent_info
        return info.name if info is not None else self.target.name

    @property
    def program(self) -> str:
        """What the agent is, however it calls itself."""
        return self.target.program

    @property
    def is_here(self) -> bool:
        """Whether the agent runs on this machine."""
        return self.target.is_here

    @property
    def services(self) -> Sequence[Service]:
        """What the client lends."""
        return self._client.services

    @property
    def extensions(self) -> Extensions:
        """The extensions that the client has."""
        return self._client.extensions

    @property
    def peer(self) -> Peer:
        """The connection; raises RuntimeError before there is one."""
        if self._peer is None:
            raise RuntimeError("not connected yet: use `async with accord.connect(...) as remote`")
        return self._peer

    @property
    def stderr(self) -> str:
        """The end of what the agent's process wrote to its standard error; empty if Accord did not start it."""
        return self.peer.connection.transport.stderr

    # Life

    async def __aenter__(self) -> Self:
        try:
            await self.open_link()
        except BaseException:
            await self.target.release()
            raise
        self.restarter.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def closed(self) -> ConnectionClosed:
        """Wait until the connection has ended for good; returns how."""
        await self.restarter.ended()
        return (await self.peer.connection.closed()).error()

    async def close(self) -> None:
        """End the connection, and the agent's process if it has one, in bounded time; works once."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(), name=f"accord closes {self.name}")
        await to_the_end(self._closing)

    async def _close(self) -> None:
        await self.restarter.stop()
        try:
            await self.peer.close()
        finally:
            if self._lending is not None:
                self._lending.close()
            await self.sessions.end_all()
            await self.tasks.end(self.limits.grace)
            await self.target.release()

    async def open_link(self) -> None:
        """Connect, and replace the connection before if there was one."""
        if self._lending is not None:
            self._lending.end_connections()
        declared = self._client.declare(terminal_login=isinstance(self.target, CommandTarget), unstable=self._unstable)
        self.offered_encodings = declared.position_encodings
        # A restarted agent is asked for the version that its sessions were opened in.
        versions = self._versions if self._peer is None else (self.version,)
        self._peer, agreed = await open_link(
            self.target,
            self._handlers_for,
            Offer(versions, self._client.info, declared, self._client.meta),
            timeout=self._timeout,
            unstable=self._unstable,
            limits=self.limits,
            observers=self._observers,
            keep_unknown=self._client.keep_unknown,
            spans=self._spans,
        )
        self.version, self.answer, declared_by_agent = agreed
        self.capabilities = AgentOffers(declared_by_agent, self.answer.agent_capabilities, self.answer.meta)
        self._translated = None
        if self.version == 2:
            from accord.dialects.v2_requests import V2Agent

            self._translated = V2Agent(self._peer, agreed.declared)
            if declared.terminal or declared.fs.read_text_file or declared.fs.write_text_file:
                log.info("%s speaks version 2, in which clients lend no files and no terminals", self.name)
        try:
            await self.providers.establish(self._translated or self._peer, self._timeout)
        except BaseException:
            await self._peer.close()
            raise

    def _arrived(self) -> Callable[[Any, bytes | Raw], None]:
        """What takes the updates: the sessions; before them, the extensions that know an update in other words."""
        arrived = self.sessions.arrived
        if not any(it.overrides("translate") for it in self.extensions):
            return arrived

        def translate(notification: Any, params: bytes | Raw) -> None:
            said = self.translated(notification.update)
            if len(said) == 1 and said[0] is notification.update:
                arrived(notification, params)
                return
            for update in said:
                changed = msgspec.structs.replace(notification, update=update)
                arrived(changed, codec.encode(changed))

        return translate

    def translated(self, update: Any) -> Sequence[Any]:
        """The updates that say the same as this one, as the client's extensions know it."""
        if not self.extensions:
            return (update,)
        from accord.schema.extension import translated

        return translated(self.extensions, update)

    def _handlers_for(self, version: int) -> Handlers:
        """The handlers of a connection that speaks this version."""
        if version == 2:
            from accord.dialects.v1_handlers_on_v2 import handlers_on_v2

            handlers = handlers_on_v2(self._handlers, "client").over(self._client.handlers_for_v2(self.sessions.find))
            # These are converted when they are registered.
            handlers.interceptors.insert(0, self.interceptors)
            from accord.schema import v2

            handlers.on_arrival(v2.UpdateSessionNotification, self._arrived())
            return handlers
        handlers = self._client.handlers_for(self.sessions.find)
        handlers.typed.update(self._handlers.typed)
        handlers.raw.update(self._handlers.raw)
        handlers.interceptors.insert(0, self.interceptors)
        handlers.on_arrival(v1.SessionNotification, self._arrived())
        return handlers

    def kill(self) -> None:
        """End the agent's process now; leaving the block that holds the connection is still needed."""
        if self._peer is not None:
            self.tasks.start(self._peer.connection.transport.close(0.0), "end at once")

    async def restart(self, why: str) -> None:
        """End the agent, start it again, and resume its sessions where it can."""
        await self.restarter.restart(why)

    async def ready(self) -> None:
        """Wait while the agent is being restarted."""
        await self.restarter.ready()

    def lend(self, server: ToolServer) -> v1.McpServer:
        """Lend an MCP server of this program to the agent, and describe it; raises TypeError for anything else."""
        from accord.client.lent_tools import Lending

        if self._lending is None:
            self._lending = Lending(self)
        return self._lending.describe(server)

    def editor_server(self) -> tuple[EditorServer, v1.McpServer] | None:
        """A server of the client's files and terminals for a new session, and how it is described to the agent."""
        if self.version == 1 or not self._client.lend_as_mcp:
            return None
        from accord.client.lent_tools import EditorServer

        editor = EditorServer(self._client.services)
        server = editor.tool_server()
        try:
            return None if server is None else (editor, self.lend(server))
        except CapabilityMissing as error:
            log.info("the agent gets no files and terminals: %s", error)
            return None

    # Messages

    async def request(
        self,
        request: Request[ResultT],
        *,
        timeout: float | None = None,  # noqa: ASYNC109
        idle_timeout: float | None = None,
        force: bool = False,
    ) -> ResultT:
        """Send a request when the agent is ready; returns its result."""
        await self.restarter.ready()
        peer = self._translated or self.peer
        try:
            return await peer.request(request, timeout=timeout, idle_timeout=idle_timeout, force=force)
        except PeerError as error:
            self.failed(getattr(request, "session_id", ""), error)
            raise

    async def open_session(
        self,
        request: Request[Any],
        *,
        timeout: float | None = None,  # noqa: ASYNC109
        restarting: bool = False,
    ) -> Any:
        """Send a request that opens a known session; the answer is in the version that the session speaks.

        While the agent is `restarting`, nothing else is sent, so nothing has to be waited for.
        """
        if not restarting and self._translated is None:
            return await self.request(request, timeout=timeout)
        if not restarting:
            await self.restarter.ready()
        if self._translated is None:
            return await self.peer.request(request, timeout=timeout)
        return await self._translated.open_session(request, timeout)

    def post(self, request: Request[Any]) -> PendingRequest[Any]:
        """Send a request now; its answer, which is in the version of the connection, is handled later."""
        return self.peer.post(request) if self._translated is None else self._translated.post(request)

    def failed(self, session_id: str, error: Exception) -> None:
        """Take note of the error that a request for this session was answered with, and say what the agent wrote."""
        if isinstance(error, PeerError):
            keep_stderr(error, self.stderr)
        self.sessions.failed(session_id, error)

    async def notify(self, notification: Notification, *, force: bool = False) -> None:
        """Send a notification when the agent is ready."""
        await self.restarter.ready()
        await (self._translated or self.peer).notify(notification, force=force)

    async def notify_raw(self, method: str, params: Json = None) -> None:
        """Send a notification in plain JSON values when the agent is ready."""
        await self.restarter.ready()
        await self.peer.notify_raw(method, params)

    async def request_raw(self, method: str, params: Json = None) -> Json:
        """Send a request in plain JSON values when the agent is ready."""
        await self.restarter.ready()
        try:
            return await self.peer.request_raw(method, params)
        except PeerError as error:
            self.failed("", error)
            raise

    def on_in_session(self, session_id: v1.SessionId, message: Any, handler: Callable[..., Any]) -> Callable[[], None]:
        """Handle this message in one session from now on; the result removes the handler."""
        handler = in_thread_if_answers(issubclass(message, Request), handler, of_client=True)
        if self.version == 2:
            from accord.dialects.v1_handlers_on_v2 import handler_on_v2

            message, handler = handler_on_v2(message, handler, "client")
        return self.interceptors.of_session(message, session_id, handler)

    def _handle_own(self) -> None:
        """Let the connection call the handlers that the caller registered for this agent."""
        if self.version == 1:
            self.peer.handle(self._handlers)
            return
        from accord.dialects.v1_handlers_on_v2 import handlers_on_v2

        self.peer.handle(handlers_on_v2(self._handlers, "client"))

    def on(self, message: type[MessageT]) -> Registrar[MessageT]:
        """Handle this message from now on, also after a restart."""
        register: Callable[[Callable[..., Any]], object] = cast("Any", self._handlers.on(message))

        def register_now(handler: Callable[..., Any]) -> None:
            register(in_thread_if_answers(issubclass(message, Request), handler, of_client=True))
            self._handle_own()

        return Registrar(register_now)

    def handle(self, handlers: Handlers) -> None:
        """Handle messages by these handlers from now on, also after a restart, unless the caller handles them."""
        self._handlers = handlers.over(self._handlers)
        self.peer.handle(self._handlers)


class Providers:
    """The providers of one agent, which may be restarted."""

    def __init__(self, wanted: Mapping[str, Endpoint] | None = None) -> None:
        self._wanted: dict[str, Endpoint | None] = dict(_checked({} if wanted is None else wanted))
        """What every connection is told; None for a provider that was disabled."""
        self._listed: dict[str, v1.ProviderInfo] = {}
        """The providers as the agent listed them last."""

    async def list(
        self,
        agent: Peer | V2Agent | LiveAgent,
        seconds: float | None = None,
        meta: dict[str, Json] | None = None,
    ) -> list[v1.ProviderInfo]:
        listed = (await agent.request(v1.ListProvidersRequest(meta=meta), timeout=seconds)).providers
        self._listed = {it.provider_id: it for it in listed}
        return listed

    async def set(
        self,
        agent: Peer | V2Agent | LiveAgent,
        provider_id: str,
        endpoint: Endpoint,
        meta: dict[str, Json] | None = None,
    ) -> None:
        """Set a provider; raises ValueError for a kind of API that the agent has listed without."""
        listed = self._listed.get(provider_id)
        if listed is not None and endpoint.api_type not in listed.supported:
            raise ValueError(
                f"provider {provider_id!r} has no API of type {endpoint.api_type!r}; "
                f"it has {', '.join(listed.supported) or 'none'}"
            )
        await agent.request(_request(provider_id, endpoint, meta))
        self._wanted[provider_id] = endpoint

    async def disable(
        self, agent: Peer | V2Agent | LiveAgent, provider_id: str, meta: dict[str, Json] | None = None
    ) -> None:
        """Disable a provider; raises ValueError for one that the agent has listed as required."""
        listed = self._listed.get(provider_id)
        if listed is not None and listed.required:
            raise ValueError(f"provider {provider_id!r} cannot be disabled; the agent requires it")
        await agent.request(v1.DisableProviderRequest(v1.ProviderId(provider_id), meta=meta))
        self._wanted[provider_id] = None

    async def establish(self, agent: Peer | V2Agent | LiveAgent, seconds: float) -> None:
        """Tell a new connection what is wanted; raises AccordError if the agent cannot do that."""
        if not self._wanted:
            return
        # custom-llm-endpoint: list before setting, and set only what is listed.
        await self.list(agent, seconds)
        for provider_id, endpoint in self._wanted.items():
            if endpoint is None:
                await agent.request(v1.DisableProviderRequest(v1.ProviderId(provider_id)), timeout=seconds)
                continue
            self._must_be_listed(provider_id, endpoint)
            await agent.request(_request(provider_id, endpoint), timeout=seconds)

    def _must_be_listed(self, provider_id: str, endpoint: Endpoint) -> None:
        listed = self._listed.get(provider_id)
        if listed is None:
            known = ", ".join(self._listed) or "none"
            raise AccordError(f"connect(providers=...): the agent has no provider {provider_id!r}; it has {known}")
        if endpoint.api_type not in listed.supported:
            raise AccordError(
                f"connect(providers=...): provider {provider_id!r} has no API of type {endpoint.api_type!r}; "
                f"it has {', '.join(listed.supported) or 'none'}"
            )


def _request(provider_id: str, endpoint: Endpoint, meta: dict[str, Json] | None = None) -> v1.SetProviderRequest:
    headers = dict(endpoint.headers)
    return v1.SetProviderRequest(v1.ProviderId(provider_id), endpoint.api_type, endpoint.base_url, headers, meta=meta)


def _checked(wanted: Mapping[str, Endpoint]) -> Mapping[str, Endpoint]:
    if not isinstance(cast("object", wanted), Mapping):
        raise wrong_type("connect(providers=...)", "Endpoints by the ids of providers", wanted)
    for provider_id, endpoint in wanted.items():
        if not isinstance(cast("object", provider_id), str) or not isinstance(cast("object", endpoint), Endpoint):
            raise wrong_type("connect(providers=...)", "Endpoints by the ids of providers", endpoint)
    return wanted


# Restarting an agent that died, with its sessions.
#
#     connection ends ──▶ wait, a little longer each time ──▶ open_link ──▶ resume or load each session
#
# Requests to the dead agent have failed by then, with `ConnectionClosed`; requests made during the restart wait for it.
# Without a `Restart` policy the end of the connection is the end of its sessions.


log = logging.getLogger("accord")


@dataclass(frozen=True, slots=True)
class Restarted:
    """What happened to an agent that died or had to be restarted."""

    why: str
    """How the agent ended."""
    agent_is_back: bool
    """Whether the agent runs again; if not, all of its sessions are lost."""
    attempts: int
    """How many times the agent was started."""
    resumed: list[RemoteSession] = field(default_factory=list["RemoteSession"])
    """The sessions that the agent resumed or loaded; they go on."""
    lost: list[RemoteSession] = field(default_factory=list["RemoteSession"])
    """The sessions that the agent could not resume or load; they have ended."""


@dataclass(frozen=True, slots=True)
class Restart:
    """How a dead agent is restarted.

    connect(["my-agent"], restart=accord.Restart(on_event=print))
    """

    attempts: int = 5
    """How many times in a row the agent is started before it counts as lost."""
    first_pause: float = 0.5
    """Seconds before the first attempt; each further pause is twice as long."""
    longest_pause: float = 30.0
    """Seconds that a pause may grow to."""
    on_event: Callable[[Restarted], object] | None = None
    """Called after each restart, and when the agent could not be restarted."""


class AgentRestarter:
    """Watches the connection of one agent, and restarts the agent."""

    def __init__(self, remote: LiveAgent, policy: Restart | None) -> None:
        self._remote = remote
        self._policy = policy
        self._watching: asyncio.Task[None] | None = None
        self._is_ready = asyncio.Event()
        self._is_ready.set()
        self._changing = asyncio.Lock()

    def start(self) -> None:
        """Begin to watch."""
        self._watching = asyncio.create_task(self._watch(), name=f"accord watches {self._remote.name}")

    async def stop(self) -> None:
        """Stop watching, because the connection is closed on purpose."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait([self._watching])
        self._is_ready.set()

    async def ended(self) -> None:
        """Wait until the agent has ended and is not going to be restarted."""
        if self._watching is not None:
            await asyncio.wait([self._watching])

    @property
    def is_ready(self) -> bool:
        """Whether requests can be sent now: the agent is not being restarted, and is not about to be."""
        watching = self._watching
        will_restart = self._policy is not None and watching is not None and not watching.done()
        if will_restart and not self._remote.peer.connection.is_open:  # `_watch` has yet to notice the end
            self._is_ready.clear()  # set again when the restart has ended, however it ends
        return self._is_ready.is_set()

    async def ready(self) -> None:
        """Wait while the agent is being restarted."""
        while not self.is_ready:
            await self._is_ready.wait()

    async def restart(self, why: str) -> None:
        """End the agent now and start it again, whatever the policy."""
        async with self._changing:
            self._is_ready.clear()
            await self._remote.peer.close()
            await self._revive(why, self._policy or Restart(attempts=1, first_pause=0.0))

    async def _watch(self) -> None:
        while True:
            peer = self._remote.peer
            end = await peer.connection.closed()
            self._remote.sessions.connection_ended(end.error())
            async with self._changing:
                if self._remote.peer is not peer:
                    continue  # it was restarted on purpose
                if self._policy is None:
                    await self._remote.sessions.end_all()
                    return
                self._is_ready.clear()
                if not await self._revive(str(end.error()), self._policy):
                    return

    async def _revive(self, why: str, policy: Restart) -> bool:
        attempts = 0
        try:
            while attempts < policy.attempts:
                await asyncio.sleep(min(policy.first_pause * 2**attempts, policy.longest_pause))
                attempts += 1
                try:
                    await self._remote.open_link()
                except AccordError as error:
                    log.warning("%s could not be restarted (attempt %d): %s", self._remote.name, attempts, error)
                else:
                    break
            else:
                lost = list(self._remote.sessions.faces().values())
                await self._remote.sessions.end_all()
                self._tell(policy, Restarted(why, False, attempts, [], lost))
                return False
            resumed, lost = await self._remote.sessions.resume_all()
        finally:
            self._is_ready.set()
        self._tell(policy, Restarted(why, True, attempts, resumed, lost))
        return True

    def _tell(self, policy: Restart, event: Restarted) -> None:
        log.warning(
            "%s ended (%s) and %s",
            self._remote.name,
            event.why,
            "was restarted" if event.agent_is_back else "could not be restarted",
        )
        if policy.on_event is not None:
            try:
                policy.on_event(event)
            except Exception:
                log.exception("Restart.on_event raised an error")
