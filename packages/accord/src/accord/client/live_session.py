"""`LiveSession`: an open session, as its connection and the lent services see it. The caller holds a `RemoteSession`.

    prompt ──▶ PendingTurn, appended to the turns       the agent works on the first one that it has not answered
    update ──▶ folded into `state` ──▶ that turn, or `updates()` outside of any turn

The session outlives its connection: when the agent is restarted and the session resumed, it is the same object.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, TypeVar

import msgspec
from msgspec import Raw

from accord.capabilities import AgentOffers
from accord.client.late_turns import LateTurns
from accord.client.pending_turn import Outcome, PendingTurn
from accord.client.subagents import Subagents, SubagentsAgent, SubagentSaid
from accord.client.unread import Unread
from accord.engine.interceptors import Interceptors
from accord.engine.peer import Peer, Posted
from accord.errors import CapabilityMissing, ConnectionClosed, Overflow
from accord.project.roots import Roots
from accord.schema import codec, v1
from accord.schema.base import Json, Request
from accord.services.service import Service
from accord.session import Observer, SessionState, ToolCallState

if TYPE_CHECKING:
    from accord.client.editor_server import EditorServer
    from accord.mcp.over_acp.tool_server import ToolServer

ResultT = TypeVar("ResultT")
Opened: TypeAlias = "v1.NewSessionResponse | v1.LoadSessionResponse | v1.ResumeSessionResponse | v1.ForkSessionResponse"
"""The agent's answers that open a session."""
Reopening: TypeAlias = "type[v1.LoadSessionRequest | v1.ResumeSessionRequest]"
"""The requests that open a session whose id is known."""

KEPT_OUTSIDE = 1_000
"""Updates outside of a turn that are kept for the first caller of `updates()`."""


class SessionAgent(SubagentsAgent, Protocol):
    """What a session needs of its agent."""

    @property
    def name(self) -> str: ...
    @property
    def program(self) -> str: ...
    @property
    def is_here(self) -> bool: ...
    @property
    def peer(self) -> Peer: ...
    @property
    def capabilities(self) -> AgentOffers: ...
    @property
    def services(self) -> Sequence[Service]: ...
    @property
    def is_ready(self) -> bool: ...
    async def ready(self) -> None: ...
    async def request(self, request: Request[ResultT], *, force: bool = False) -> ResultT: ...
    def post(self, request: Request[Any]) -> Posted[Any]: ...
    async def open_session(
        self,
        request: Request[Any],
        *,
        timeout: float | None = None,  # noqa: ASYNC109
        restarting: bool = False,
    ) -> Any: ...
    @property
    def interceptors(self) -> Interceptors: ...
    def on_in_session(
        self, session_id: v1.SessionId, message: Any, handler: Callable[..., Any]
    ) -> Callable[[], None]: ...
    async def restart(self, why: str) -> None: ...
    def lend(self, server: ToolServer) -> v1.McpServer: ...
    def editor_server(self) -> tuple[EditorServer, v1.McpServer] | None: ...
    def failed(self, session_id: str, error: Exception) -> None: ...


class SessionSetup(NamedTuple):
    """What the client chooses for a session when it opens it."""

    cwd: Path
    additional_directories: list[str]
    mcp_servers: list[v1.McpServer]
    system_prompt: v1.SystemPrompt | None = None
    """Sent again whenever the session is opened again: agents need not keep it."""
    meta: dict[str, Json] | None = None
    """The `_meta` of the request that opens the session."""
    editor: tuple[EditorServer, v1.McpServer] | None = None
    """Serves the client's files and terminals as tools, where the protocol has no requests for them."""


class LiveSession:
    """A session of an agent while it is open here; services know it as a `ServedSession`."""

    def __init__(self, remote: SessionAgent, session_id: v1.SessionId, setup: SessionSetup) -> None:
        self.remote = remote
        """The agent that the session belongs to."""
        self.id = session_id
        self.setup = setup
        self.cwd = setup.cwd
        self.roots = Roots([setup.cwd, *setup.additional_directories])
        self.state = SessionState(remote.limits.state)
        """What the session's updates amount to so far."""
        self.is_open = True
        self.meta: dict[str, Json] = {}
        """The `_meta` of the answer that opened the session."""
        self._turns: deque[PendingTurn] = deque()
        self._late = LateTurns(remote, self._send)
        self._outside: deque[tuple[v1.SessionUpdate, int]] = deque()
        self._outside_size = 0
        self._listeners: list[Unread] = []
        self._idle_waiters: list[asyncio.Future[None]] = []
        self.subagents = Subagents(self, remote)
        """The subagents that the session has started, and theirs."""

    @property
    def agent(self) -> str:
        """The name of the session's agent, which is the same next time."""
        return self.remote.name

    @property
    def program(self) -> str:
        """What the session's agent is, however it calls itself."""
        return self.remote.program

    # Turns

    def prompt(
        self,
        blocks: list[v1.ContentBlock],
        *,
        timeout: float | None = None,
        idle_timeout: float | None = None,
        wire: bool = False,
        meta: dict[str, Json] | None = None,
        subagents: bool = False,
    ) -> PendingTurn:
        """Send a prompt now, or when the agent has been restarted."""
        turn = PendingTurn(self, blocks, keeps_wire=wire, meta=meta)
        turn.keeps_subagents = subagents
        if self._late.must_wait:
            self._late.add(turn, timeout, idle_timeout)
            return turn
        self._send(turn)
        if timeout is not None or idle_timeout is not None:
            self.remote.tasks.start(turn.watch(timeout, idle_timeout), f"deadlines of {self.id}")
        return turn

    def _send(self, turn: PendingTurn) -> None:
        peer = self.remote.peer
        posted = peer.post(v1.PromptRequest(self.id, turn.prompt, meta=turn.meta))
        turn.sent(posted, Unread(peer.connection.read_pause, self.remote.limits.reply))
        self._turns.append(turn)
        if len(self._turns) == 1:
            self._begin(turn)
        posted.then(lambda result: self._answered(turn, result))

    def _begin(self, turn: PendingTurn) -> None:
        self.state.add_prompt(turn.prompt)
        turn.begin()

    def _answered(self, turn: PendingTurn, result: v1.PromptResponse | Exception) -> None:
        was_first = self._turns[0] is turn
        if was_first:
            self.state.end_turn(refused=isinstance(result, v1.PromptResponse) and result.stop_reason == "refusal")
        turn.answered(result)
        self._turns.remove(turn)
        if self._idle_waiters:
            self._settle()
        if was_first and self._turns:
            self._begin(self._turns[0])
        if isinstance(result, Exception):
            self.remote.failed(self.id, result)

    def is_turn(self, turn: PendingTurn) -> bool:
        """Whether the agent has yet to answer the turn's prompt."""
        return turn in self._turns

    @property
    def is_busy(self) -> bool:
        """Whether the agent works on a prompt, or will when it has been restarted."""
        return bool(self._turns or self._late.waiting)

    async def cancel(self, meta: dict[str, Json] | None = None) -> Outcome | None:
        """Cancel the running turn, and wait for its end; None if no turn runs."""
        first = next(iter([*self._turns, *self._late.waiting]), None)
        return None if first is None else await first.cancel(None, meta)

    answers_are_receipts = False
    """Whether the answer to a prompt says only that the agent has it, as in version 2, and not that it is done."""

    @property
    def update_type(self) -> Any:
        """The type of the session's updates on the wire."""
        return v1.SessionUpdate

    def cancel_turn(self, turn: PendingTurn, meta: dict[str, Json] | None = None) -> None:  # noqa: ARG002
        """Cancel this turn: in version 1 that is whatever the agent works on."""
        self.send_cancel(meta)

    def send_cancel(self, meta: dict[str, Json] | None = None) -> None:
        """Tell the agent to stop, and the services not to ask the user about this session any more."""
        if self.remote.peer.connection.is_open:
            self.remote.peer.tell(v1.CancelNotification(self.id, meta=meta))
        for turn in self._late.take():
            turn.answered(v1.PromptResponse("cancelled"))
        self.close_questions()
        self.state.cancel_unfinished()

    def close_questions(self) -> None:
        """Answer the open questions of this session with `cancelled`."""
        for service in self.remote.services:
            service.turn_cancelled(self)
        self.subagents.close_questions()

    async def idle(self) -> None:
        """Wait until the agent works on no prompt; raises ConnectionClosed if the session ends first."""
        while self.is_busy:
            if not self.is_open:
                raise ConnectionClosed("closed", "the session was closed")
            waiter = asyncio.get_running_loop().create_future()
            self._idle_waiters.append(waiter)
            try:
                await waiter
            finally:
                self._idle_waiters.remove(waiter)

    def _settle(self) -> None:
        """Wake those who wait until the agent is idle; they look for themselves."""
        for waiter in self._idle_waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def cancel_tool_call(self, tool_call_id: v1.ToolCallId) -> None:
        """Cancel one tool call; raises CapabilityMissing, because version 1 has no such request."""
        raise CapabilityMissing("version 2 of the protocol", f"cancelling the tool call {tool_call_id!r}")

    async def cancel_terminal(self, terminal_id: v1.TerminalId) -> None:
        """End the command of a terminal; raises CapabilityMissing, because version 1 has no such request."""
        raise CapabilityMissing("version 2 of the protocol", f"cancelling the terminal {terminal_id!r}")

    def connection_ended(self, error: Exception) -> None:
        """Take note that the connection has ended; the open requests have failed by then."""

    async def restart_agent(self, why: str) -> None:
        """End the agent and start it again, with its sessions."""
        await self.remote.restart(why)

    # Updates

    def received(self, update: v1.SessionUpdate, params: bytes | Raw) -> None:
        """Take an update of this session, with the JSON of its notification's params."""
        size = len(params) if params.__class__ is bytes else len(memoryview(params))
        self.state.add(update, size)
        if self._turns:
            turn = self._turns[0]
            try:
                turn.unread.put(wire_form(params) if turn.keeps_wire else update, size)
            except Overflow as overflow:
                turn.overflowed(overflow)
        elif self._listeners:
            self._tell_listeners(update, size)
        else:
            self._keep_outside(update, size)

    def subagent_said(self, said: SubagentSaid, size: int) -> None:
        """Give an update of a subagent to the turns whose readers want it."""
        for turn in self.current_turns():
            if turn.keeps_subagents:
                try:
                    turn.unread.put(said, size)
                except Overflow as overflow:
                    turn.overflowed(overflow)

    def current_turns(self) -> Sequence[PendingTurn]:
        """The turns that updates belong to now."""
        return list(self._turns)[:1]

    def _keep_outside(self, update: v1.SessionUpdate, size: int) -> None:
        self._outside.append((update, size))
        self._outside_size += size
        while len(self._outside) > KEPT_OUTSIDE or self._outside_size > self.remote.limits.early:
            self._outside_size -= self._outside.popleft()[1]

    def _tell_listeners(self, update: v1.SessionUpdate, size: int) -> None:
        for listener in list(self._listeners):
            try:
                listener.put(update, size)
            except Overflow:
                self._listeners.remove(listener)  # its own queue raises the error to its reader

    async def updates(self) -> AsyncIterator[v1.SessionUpdate]:
        """The updates outside of a turn, until the session is closed or its connection ends."""
        listener = Unread(None, self.remote.limits.reply)
        while self._outside:
            listener.put(*self._outside.popleft())
        self._outside_size = 0
        if not self.is_open:
            listener.finish()
        self._listeners.append(listener)
        try:
            while (update := await listener.get()) is not None:
                yield update
        finally:
            if listener in self._listeners:
                self._listeners.remove(listener)

    def on_change(self, observer: Observer) -> Callable[[], None]:
        """Call `observer` after every change of the state; call the result to stop it."""
        return self.state.on_change(observer)

    def fold(self, said: v1.ToolCallUpdate) -> ToolCallState:
        """Add what a permission request says of a tool call to `state`."""
        known = self.state.tool_calls.get(said.tool_call_id) or ToolCallState(said.tool_call_id)
        self.state.add(said)
        return known.updated(said)

    def tool_call(self, tool_call_id: v1.ToolCallId) -> ToolCallState | None:
        """The tool call with this id, as it stands."""
        return self.state.tool_calls.get(tool_call_id)

    # Life

    def reopening(self, kind: Reopening) -> Request[Any]:
        """The request of this kind that opens the session again."""
        cwd, directories, servers, system_prompt, meta, _ = self.setup
        return kind(
            session_id=self.id,
            cwd=str(cwd),
            mcp_servers=servers,
            additional_directories=directories,
            system_prompt=system_prompt,
            meta=meta,
        )

    def forget(self) -> None:
        """Forget what was said and done, before the agent replays it."""
        self.state.clear()

    def opened(self, response: Opened) -> None:
        """Take the settings that the agent opened the session with."""
        self.state.set_modes(response.modes)
        self.state.set_config(response.config_options)
        self.state.set_models(response.models)
        self.meta = response.meta or {}
        self.is_open = True

    async def ended(self) -> None:
        """End here: the session was closed, or its connection has ended for good."""
        self.is_open = False
        for turn in [*self._turns, *self._late.take()]:
            turn.answered(ConnectionClosed("closed", "the session was closed"))
        self._settle()
        for listener in list(self._listeners):
            listener.finish()
        self.remote.interceptors.forget_session(self.id)
        await self.subagents.ended()
        for service in self.remote.services:
            await service.release(self)


class _OnlyUpdate(msgspec.Struct):
    update: Raw


_only_update = msgspec.json.Decoder(_OnlyUpdate)


def wire_form(params: bytes | Raw) -> bytes:
    """The update in these params, byte for byte where msgspec can find its end."""
    try:
        return bytes(_only_update.decode(params).update)
    except codec.REFUSALS:
        # Half a surrogate pair, or invalid UTF-8: encoded again, the update means the same.
        return codec.encode(codec.loads(params)["update"])
