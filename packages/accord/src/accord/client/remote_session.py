"""`RemoteSession`: one conversation with an agent, for the caller, the connection and the lent services.

    prompt ──▶ Reply, appended to the turns         the agent works on the first one that it has not answered
    update ──▶ folded into `state` ──▶ that turn, or `updates()` outside of any turn

This module has the common part of both versions, and the turns of version 1; `V2Session` has the turns of version 2.
The session outlives its connection: when the agent is restarted and the session resumed, it is the same object.
"""

# The private members of a session and a reply are private to this room.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar, cast, overload

from msgspec import Raw

from accord.client.remote_subagent import RemoteSubagent, Subagents
from accord.client.reply import Outcome, PromptsDuringRestart, Reply, SubagentSaid, UpdateBuffer, UpdateListeners
from accord.dialects.v1_dialect import V1_ONLY
from accord.engine.handlers import MessageT, Registration
from accord.errors import CapabilityMissing, ConnectionClosed, Overflow
from accord.mistakes import check_callable, check_text, meant
from accord.project.confined import Roots
from accord.schema import codec, v1
from accord.schema.base import Json, JsonObject, Request
from accord.schema.sendable import check_meta, content_block
from accord.session import Observer, SessionState, ToolCallState, choices_of, updates

if TYPE_CHECKING:
    from accord.client.budget import Budget
    from accord.client.lent_tools import EditorServer
    from accord.client.remote_agent import RemoteAgent
    from accord.client.typed_answer import TypedReply
    from accord.schema.extension import Extension, ExtensionT
    from accord.session.updates import Update


Content: TypeAlias = "str | Path | v1.ContentBlock"
"""The content of a prompt: text, files, and any block of the protocol."""

T = TypeVar("T")
ResultT = TypeVar("ResultT")

_NONE: Mapping[Any, Any] = {}
_SWITCH: Sequence[str | bool] = (True, False)


Opened: TypeAlias = "v1.NewSessionResponse | v1.LoadSessionResponse | v1.ResumeSessionResponse | v1.ForkSessionResponse"
"""The agent's answers that open a session."""
Reopening: TypeAlias = "type[v1.LoadSessionRequest | v1.ResumeSessionRequest]"
"""The requests that open a session whose id is known."""

MOST_OUTSIDE = 1_000
"""Updates outside of a turn that are buffered for the first caller of `updates()`."""


class SessionSetup(NamedTuple):
    """The client's choices for a session that it opens."""

    cwd: Path
    additional_directories: list[str]
    mcp_servers: list[v1.McpServer]
    system_prompt: v1.SystemPrompt | None = None
    """Sent again whenever the session is opened again: agents need not remember it."""
    meta: JsonObject | None = None
    """The `_meta` of the request that opens the session."""
    editor: tuple[EditorServer, v1.McpServer] | None = None
    """Serves the client's files and terminals as tools, where the protocol has no requests for them."""


class RemoteSession:
    """One conversation with an agent; `RemoteAgent.new_session`, `load` and `resume` return it.

        session = await remote.new_session("/home/me/project")
        outcome = await session.prompt("Summarise the README")
        print(session.state.title, outcome.text)

    When a dead agent is restarted and the session resumed, it is still the same object.
    """

    _answers_are_receipts = False
    """Whether the answer to a prompt only acknowledges it, as in version 2."""
    _update_type: Any = updates.Update
    """The type of the session's updates on the wire."""

    def __init__(self, remote: RemoteAgent, session_id: v1.SessionId, setup: SessionSetup) -> None:
        self._remote = remote
        self._setup = setup
        self.id: v1.SessionId = session_id
        """The session's id, which the agent chose."""
        self.cwd: Path = setup.cwd
        """The folder that the session works in."""
        self.roots: Roots = Roots([setup.cwd, *setup.additional_directories])
        """The folders that the session's files should be in: `cwd` and the additional directories."""
        self.state: SessionState = SessionState(remote._limits.state)
        """The conversation so far: messages, tool calls, plan, modes, models, config options, title, usage."""
        self._meta: JsonObject = {}
        self._is_open = True
        self._turns: deque[Reply] = deque()
        self._late = PromptsDuringRestart(remote, self._send)
        self._outside: deque[tuple[updates.Update, int]] = deque()
        self._outside_size = 0
        self._listeners = UpdateListeners(remote._limits.reply)
        self._idle_waiters: list[asyncio.Future[None]] = []
        self._subagents = Subagents(self)
        """The subagents that the session has started, and theirs."""
        self._extensions: Mapping[type[Extension[Any]], Extension[Any]] = _NONE
        """The objects of the extensions that were asked for."""

    @property
    def agent(self) -> str:
        """The name of the session's agent, which is the same next time."""
        return self._remote.name

    @property
    def meta(self) -> dict[str, Json]:
        """The `_meta` of the answer that opened the session, after a restart of the latest one; empty if it had none.

        What the agent reports later about the session is in `state.meta`.
        """
        return self._meta

    @property
    def is_open(self) -> bool:
        """Whether the session can be prompted: it was not closed, and its connection has not ended for good."""
        return self._is_open

    @property
    def program(self) -> str:
        """The identity of the session's agent, whatever name it reports: its program, its URL's origin, or its
        module.
        """
        return self._remote._target.program

    def __repr__(self) -> str:
        state = "" if self.is_open else ", closed"
        return f"RemoteSession({self.id!r}, cwd={str(self.cwd)!r}{state})"

    # Turns

    @overload
    def prompt(
        self,
        *content: Content | Sequence[Content],
        timeout: float | None = None,
        idle_timeout: float | None = None,
        mentions: bool = False,
        wire: bool = False,
        meta: JsonObject | None = None,
        subagents: bool = False,
        idempotency_key: str | None = None,
        budget: Budget | None = None,
        output: None = None,
    ) -> Reply: ...
    @overload
    def prompt(
        self,
        *content: Content | Sequence[Content],
        timeout: float | None = None,
        idle_timeout: float | None = None,
        mentions: bool = False,
        wire: bool = False,
        meta: JsonObject | None = None,
        subagents: bool = False,
        idempotency_key: str | None = None,
        budget: Budget | None = None,
        output: type[T],
    ) -> TypedReply[T]: ...
    @overload
    def prompt(
        self,
        *content: Content | Sequence[Content],
        timeout: float | None = None,
        idle_timeout: float | None = None,
        mentions: bool = False,
        wire: bool = False,
        meta: JsonObject | None = None,
        subagents: bool = False,
        idempotency_key: str | None = None,
        budget: Budget | None = None,
        output: Any,
    ) -> TypedReply[Any]: ...
    def prompt(
        self,
        *content: Content | Sequence[Content],
        timeout: float | None = None,
        idle_timeout: float | None = None,
        mentions: bool = False,
        wire: bool = False,
        meta: JsonObject | None = None,
        subagents: bool = False,
        idempotency_key: str | None = None,
        budget: Budget | None = None,
        output: Any = None,
    ) -> Reply | TypedReply[Any]:
        """Send a prompt now, and return its `Reply`, which may be ignored.

        It takes texts, paths and blocks, one by one or in a list. A `Path` is sent in the best form that the agent
        accepts: as an image, as its contents, or as a link. With `mentions`, files of the session's folders that a text
        names as `@path` are sent too. A block that the agent did not declare raises `CapabilityMissing`. `timeout`
        limits the whole turn, `idle_timeout` the time without a message from the agent, both in seconds; past one of
        them the turn is cancelled and the Reply fails with `Timeout`. A `budget` cancels the turn past its limits, and
        `outcome.exceeded` names the limit. With `wire`, `reply.wire()` yields the JSON of the updates as it arrived;
        with `subagents`, `reply.with_subagents()` yields the updates of subagents too. `meta` is the prompt's `_meta`;
        the answer's is `meta` of the outcome.

        With `output`, a type such as a dataclass or `list[str]`, the agent is asked for JSON that fits, and its answer
        is a value of the type. An answer that does not fit raises `OutputError`.

        An agent of version 2 inserts prompts with the same `idempotency_key` once. To retry a prompt whose fate is not
        known, send it again with the `idempotency_key` of its reply; without one, each prompt gets a new key.
        """
        if wire and subagents:
            raise ValueError("session.prompt() takes wire=True or subagents=True, not both; the JSON names no subagent")
        if meta is not None:
            check_meta("session.prompt(meta=...)", meta)
        if idempotency_key is not None:
            check_text("session.prompt(idempotency_key=...)", idempotency_key)
            if not 1 <= len(idempotency_key) <= 255:
                raise ValueError(f"idempotency_key must have 1 to 255 characters, got {len(idempotency_key):,}")
        blocks = self._blocks(content, with_mentions=mentions)
        if output is not None:
            from accord.client.typed_answer import typed_prompt  # few programs want data

            again: dict[str, Any] = {"timeout": timeout, "idle_timeout": idle_timeout, "budget": budget}
            first = {"wire": wire, "subagents": subagents, "meta": meta, "idempotency_key": idempotency_key}
            return typed_prompt(self.prompt, blocks, output, first, again)
        reply = Reply(
            self,
            blocks,
            keeps_wire=wire,
            keeps_subagents=subagents,
            meta=meta,
            idempotency_key=idempotency_key,
        )
        if self._late.waiting or not self._remote._restarter.is_ready:
            self._late.add(reply, timeout, idle_timeout)
        else:
            self._send(reply)
            if timeout is not None or idle_timeout is not None:
                self._remote._tasks.start(reply._watch(timeout, idle_timeout), f"deadlines of {self.id}")
        if budget is not None:
            from accord.client.budget import BudgetWatch  # few prompts have one

            watch = BudgetWatch(budget, reply)  # in this step, so that it sees every update
            self._remote._tasks.start(watch.run(), f"the budget of a prompt in {self.id}")
        return reply

    def _blocks(self, content: Iterable[Content | Sequence[Content]], *, with_mentions: bool) -> list[v1.ContentBlock]:
        remote = self._remote
        blocks: list[v1.ContentBlock] = []
        parts: list[Content] = []
        for given in content:
            parts += cast("Sequence[Content]", given if isinstance(given, list | tuple) else (given,))
        for part in parts:
            if isinstance(part, Path):
                from accord.client.mentions import block_of_file

                takes = remote.capabilities.prompt
                blocks.append(block_of_file(part, self.cwd, self.roots, takes, must_exist=remote._target.is_here))
            elif isinstance(part, str):
                blocks.append(v1.TextContent(part))
                if with_mentions:
                    from accord.client.mentions import block_for, files_in

                    takes = remote.capabilities.prompt
                    blocks += [block_for(path, self.roots, takes) for path in files_in(part, self.cwd, self.roots)]
            else:
                block = content_block("session.prompt()", part)
                # initialization, Prompt capabilities: an agent that cannot read the block would refuse the prompt.
                remote.peer.capabilities.require_for(block, f"{block.__class__.__name__} in a prompt")
                blocks.append(block)
        if not blocks:
            raise ValueError("session.prompt() takes at least one text, path or block, got nothing")
        return blocks

    @property
    def is_busy(self) -> bool:
        """Whether the agent works on a prompt, or will when it has been restarted."""
        return bool(self._turns or self._late.waiting)

    async def cancel(self, *, meta: JsonObject | None = None) -> Outcome | None:
        """Cancel the running turn, and wait for its end; returns None if no turn runs.

        `meta` is the `_meta` of the cancellation.
        """
        check_meta("session.cancel(meta=...)", meta)
        first = next(iter([*self._turns, *self._late.waiting]), None)
        return None if first is None else await first.cancel(meta=meta)

    async def idle(self) -> None:
        """Wait until the agent is idle in this session: no prompt is open, and it does no foreground work of its own.

        Raises `ConnectionClosed` if the session ends before. Background work does not count.
        """
        while self.is_busy:
            if not self.is_open:
                raise ConnectionClosed("closed", "the session was closed")
            waiter = asyncio.get_running_loop().create_future()
            self._idle_waiters.append(waiter)
            try:
                await waiter
            finally:
                self._idle_waiters.remove(waiter)

    async def cancel_tool_call(self, tool_call_id: str, *, meta: JsonObject | None = None) -> JsonObject:
        """Ask the agent to cancel one tool call, including one in the background; its status follows as an update.

        Raises `CapabilityMissing` unless the agent offers it for this tool call, which needs version 2. `meta` is the
        request's `_meta`, the result that of the answer.
        """
        key = v1.ToolCallId(tool_call_id)
        self._must_offer_cancel("tool call", key, self.tool_call(key))
        from accord.schema import v2  # only an agent of version 2 offers it

        answer = await self._request("cancel_tool_call", v2.CancelToolCallRequest(self.id, key, meta=meta))
        return answer.meta or {}

    async def cancel_terminal(self, terminal_id: str, *, meta: JsonObject | None = None) -> JsonObject:
        """Ask the agent to end the command of one of its terminals; its exit status follows as an update.

        Raises `CapabilityMissing` unless the agent offers it for this terminal, which needs version 2. `meta` is the
        request's `_meta`, the result that of the answer.
        """
        key = v1.TerminalId(terminal_id)
        self._must_offer_cancel("terminal", key, self.state.terminals.get(key))
        from accord.schema import v2

        answer = await self._request("cancel_terminal", v2.CancelTerminalRequest(self.id, key, meta=meta))
        return answer.meta or {}

    def _must_offer_cancel(self, kind: str, its_id: str, known: Any) -> None:
        if self._remote.version == 1:
            raise CapabilityMissing("version 2 of the protocol", f"cancelling the {kind} {its_id!r}")
        if known is None or not known.can_cancel:
            raise CapabilityMissing(f"capabilities.cancel of the {kind}", f"cancelling {its_id!r}")

    def close_questions(self) -> None:
        """Answer this session's open questions to the user with `cancelled`: a later answer does not count."""
        for service in self._remote._services:
            service.turn_cancelled(self)
        self._subagents.close_questions()

    # Results

    async def updates(self) -> AsyncIterator[updates.Update]:
        """Iterate over the updates outside of a turn, until the session is closed or its connection ends.

        The first caller also gets the latest updates that came before, at most 1,000.
        """
        earlier, self._outside, self._outside_size = self._outside, deque(), 0
        with self._remote._used_by(self):
            async for update in self._listeners.read(earlier, is_open=self.is_open):
                yield update

    @property
    def subagents(self) -> dict[v1.SessionId, RemoteSubagent]:
        """The subagents that the session has started, by the ids of their sessions; each grows while it works."""
        return {it.id: it for it in self._subagents.of(self)}

    def on_change(self, observer: Observer) -> Callable[[], None]:
        """Call `observer` after every change of `state`, with the update or None; call the result to stop it."""
        check_callable("session.on_change()", observer)
        return self.state.on_change(observer)

    def tool_call(self, tool_call_id: v1.ToolCallId) -> ToolCallState | None:
        """Return the tool call with this id; None if the id is unknown."""
        return self.state.tool_calls.get(tool_call_id)

    def fold(self, said: v1.ToolCallUpdate) -> ToolCallState:
        """Apply a permission request's changes to a tool call, and return the tool call; for services."""
        said = self._remote._said(said)[0]
        self.state.add(cast("Any", said))  # the class of a request, which the state reads
        return self.state.tool_calls.get(said.tool_call_id) or ToolCallState(said.tool_call_id)

    def markdown(self) -> str:
        """The conversation as Markdown."""
        from accord.client.markdown import markdown

        return markdown(self.state)

    def _repr_markdown_(self) -> str:
        """Return `markdown()` without raw HTML and images, which the agent could abuse in a notebook."""
        from accord.client.markdown import safe

        return safe(self.markdown())

    def on(self, message: type[MessageT]) -> Registration[MessageT]:
        """Handle this message of the agent in this session only, until `remove` is called or the session is closed.

            asking = session.on(v1.RequestPermissionRequest)

            @asking
            def ask(request: v1.RequestPermissionRequest) -> v1.RequestPermissionResponse: ...

            asking.remove()

        It runs before the service or the handler of all sessions.
        """
        return Registration(partial(self._remote._on_in_session, self.id, message))

    def extension(self, extension: type[ExtensionT]) -> ExtensionT:
        """Return this extension in this session: its calls, and what it has collected from the session's updates.

        It is the same object each time. With `Client(extensions=...)` it collects from the session's beginning, else
        from the first call of this method.
        """
        made = self._extensions.get(extension)
        if made is None:
            made = extension(self._remote, self)
            self._extensions = {**self._extensions, extension: made}
            if extension.overrides("fold"):
                self.on_change(made.fold)
        return cast("ExtensionT", made)

    # Settings that the agent can change. Each method takes the `_meta` of its request, and returns that of the
    # answer.

    async def set_mode(self, mode: str, *, meta: JsonObject | None = None) -> JsonObject:
        """Set how the agent works to one of `state.modes`, by its id; raises ValueError for an unknown one.

        If the agent has a config option for its mode, that option is set; older agents have only modes. Returns the
        `_meta` of the answer.
        """
        _must_be_offered("mode", mode, [it.id for it in self.state.modes])
        if (option := self.state.mode_option) is not None:
            return await self.set_config(option.config_id, mode, meta=meta)
        mode_id = v1.SessionModeId(mode)
        answer = await self._request("set_mode", v1.SetSessionModeRequest(self.id, mode_id, meta=meta))
        self.state.set_mode(mode_id)
        return answer.meta or {}

    async def set_model(self, model: str, *, meta: JsonObject | None = None) -> JsonObject:
        """Set the model to one of `state.models`, by its id; raises ValueError for an unknown one.

        If the agent has a config option for its model, that option is set; older agents have only models. Returns the
        `_meta` of the answer.
        """
        _must_be_offered("model", model, [it.model_id for it in self.state.models])
        if (option := self.state.model_option) is not None:
            return await self.set_config(option.config_id, model, meta=meta)
        model_id = v1.ModelId(model)
        # The protocol has no capability for it: the list of models allows this request.
        request = v1.SetSessionModelRequest(self.id, model_id, meta=meta)
        answer = await self._request("set_model", request, force=True)
        self.state.set_model(model_id)
        return answer.meta or {}

    async def set_config(self, option: str, value: str | bool, *, meta: JsonObject | None = None) -> JsonObject:
        """Set a config option, by its id, to one of its values; afterwards `state.config` has the present values of
        all.

        Raises ValueError for an option or a value that the agent does not offer. Returns the `_meta` of the answer.
        """
        offered = self.state.option(option)
        if offered is None:
            known = ", ".join(it.config_id for it in self.state.config)
            raise ValueError(f"the agent has no config option {option!r}; it has {known or 'none'}")
        values = (
            [it.value for it in choices_of(offered)] if isinstance(offered, updates.SessionConfigSelect) else _SWITCH
        )
        allowed = [*values, offered.current_value]  # agents accept values that they do not list, such as a custom model
        if not any(value.__class__ is it.__class__ and value == it for it in allowed):
            shown = [str(it).lower() if isinstance(it, bool) else it for it in values]
            raise ValueError(f"{option!r} has no value {value!r}; it has {', '.join(shown)}")
        chosen = value if isinstance(value, bool) else v1.SessionConfigValueId(value)
        request = v1.SetSessionConfigOptionRequest.of(self.id, v1.SessionConfigId(option), chosen, meta)
        answer = await self._request("set_config", request)
        self.state.set_config(answer.config_options)
        return answer.meta or {}

    async def set_title(self, title: str, *, meta: JsonObject | None = None) -> JsonObject:
        """Set the session's title, which is then `state.title` as the agent stored it; returns the answer's `_meta`.

        Raises `CapabilityMissing` if the agent does not support it.
        """
        check_text("session.set_title()", title)
        answer = await self._request("set_title", v1.SetSessionTitleRequest(self.id, title, meta=meta))
        self.state.title = answer.title
        return answer.meta or {}

    async def fork(
        self,
        *,
        at: str | None = None,
        system_prompt: str | v1.SystemPrompt | None = None,
        config: Mapping[str, str | bool] | None = None,
        meta: JsonObject | None = None,
    ) -> RemoteSession:
        """Copy the session under a new id; raises `CapabilityMissing` if the agent does not support it.

        `at` rewinds the copy to a place in the conversation: the id of one of `state.cursors`, or that of the message
        or tool call next to one. ValueError lists the valid ones. Agents offer cursors to a client that is connected
        with `unstable=True`.

        The copy has the folders, the MCP servers and the system prompt of this session; `system_prompt` replaces the
        latter, and `config` has values of config options for it. `meta` is the request's `_meta`.
        """
        check_meta("session.fork(meta=...)", meta)
        if at is not None:
            check_text("session.fork(at=...)", at)
        cursor = None if at is None else self.state.cursor_at(at).id
        return await self._remote._sessions.fork(self, system_prompt, meta, cursor, config)

    async def close(self, *, meta: JsonObject | None = None) -> JsonObject:
        """Close the session: running turns fail, and the agent frees the session's resources, if it can.

        Returns the `_meta` of the answer.
        """
        check_meta("session.close(meta=...)", meta)
        return await self._remote._sessions.close(self, meta)

    async def _request(self, name: str, request: Request[ResultT], *, force: bool = False) -> ResultT:
        check_meta(f"session.{name}(meta=...)", request.meta)
        return await self._remote.request(request, force=force)

    # Turns of version 1

    def _send(self, turn: Reply) -> None:
        peer = self._remote.peer
        posted = peer.post(v1.PromptRequest(self.id, turn._prompt, meta=turn._meta))
        turn._sent(posted, UpdateBuffer(peer.connection.read_pause, self._remote._limits.reply))
        self._turns.append(turn)
        if len(self._turns) == 1:
            self._begin(turn)
        posted.then(partial(self._answered, turn))

    def _begin(self, turn: Reply) -> None:
        turn._begins_at = self.state.add_prompt(turn._prompt) + 1

    def _answered(self, turn: Reply, result: v1.PromptResponse | Exception) -> None:
        was_first = self._turns[0] is turn
        if was_first:
            self.state.end_turn(refused=isinstance(result, v1.PromptResponse) and result.stop_reason == "refusal")
        turn._answered(result)
        self._turns.remove(turn)
        if self._idle_waiters:
            self._settle()
        if was_first and self._turns:
            self._begin(self._turns[0])
        if isinstance(result, Exception):
            self._remote._failed(self.id, result)

    def _is_turn(self, turn: Reply) -> bool:
        """Whether the agent has yet to answer the turn's prompt."""
        return turn in self._turns

    def _cancel_turn(self, turn: Reply, meta: JsonObject | None = None) -> None:  # noqa: ARG002
        """Cancel this turn: in version 1 that is whatever the agent works on."""
        self._send_cancel(meta)

    def _send_cancel(self, meta: JsonObject | None = None) -> None:
        """Ask the agent to stop, and the services to stop asking the user about this session."""
        if self._remote.peer.connection.is_open:
            self._remote.peer.tell(v1.CancelNotification(self.id, meta=meta))
        self._late.end(v1.PromptResponse("cancelled"))
        self.close_questions()
        self.state.cancel_unfinished()

    def _settle(self) -> None:
        """Wake the tasks that wait until the agent is idle; they check for themselves."""
        for waiter in self._idle_waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _connection_ended(self, error: Exception) -> None:
        """Note that the connection has ended; the open requests have failed by then."""

    # Updates

    def _received(self, update: Update, params: bytes | Raw) -> None:
        """Take an update of this session, with the JSON of its notification's params."""
        size = len(params) if params.__class__ is bytes else len(memoryview(params))
        if update.__class__ in V1_ONLY:
            update = self.state.as_read(update)
        self.state.add(update, size)
        if turns := self._turns:
            turn = turns[0]
            try:
                turn._unread.put(codec.update_json(params) if turn._keeps_wire else update, size)
            except Overflow as overflow:
                turn._overflowed(overflow)
        else:
            self._received_outside(update, size)

    def _subagent_said(self, said: SubagentSaid, size: int) -> None:
        """Pass an update of a subagent to the turns whose readers want it."""
        for turn in self._current_turns():
            if turn._keeps_subagents:
                self._give(turn, said, size)

    def _give(self, turn: Reply, update: Any, size: int) -> None:
        try:
            turn._unread.put(update, size)
        except Overflow as overflow:
            turn._overflowed(overflow)

    def _current_turns(self) -> Sequence[Reply]:
        """The turns that updates belong to now."""
        return list(self._turns)[:1]

    def _received_outside(self, update: Update, size: int) -> None:
        """Take an update that belongs to no turn."""
        if self._listeners.buffers:
            self._listeners.put(update, size)
            return
        self._outside.append((update, size))
        self._outside_size += size
        while len(self._outside) > MOST_OUTSIDE or self._outside_size > self._remote._limits.early:
            self._outside_size -= self._outside.popleft()[1]

    # Life

    def _reopening(self, kind: Reopening, config: Sequence[v1.InitialSessionConfigOption] = ()) -> Request[Any]:
        """The request of this kind that opens the session again."""
        cwd, directories, servers, system_prompt, meta, _ = self._setup
        return kind(
            session_id=self.id,
            cwd=str(cwd),
            mcp_servers=servers,
            additional_directories=directories,
            system_prompt=system_prompt,
            config_options=list(config),
            meta=meta,
        )

    def _forget(self) -> None:
        """Forget the conversation, before the agent replays it."""
        self.state.clear()

    def _opened(self, response: Opened) -> None:
        """Take the settings that the agent opened the session with."""
        self.state.set_modes(response.modes)
        self.state.set_config(response.config_options)
        self.state.set_models(response.models)
        self._meta = response.meta or {}
        self._is_open = True

    def _replayed(self) -> None:
        """The agent has answered the request for a replay, which ends it in version 1."""
        self.state.history_length = len(self.state)

    async def _ended(self) -> None:
        """End the session here: it was closed, or its connection has ended for good."""
        self._is_open = False
        closed = ConnectionClosed("closed", "the session was closed")
        for turn in list(self._turns):
            turn._answered(closed)
        self._late.end(closed)
        self._settle()
        self._listeners.finish()
        self._remote._interceptors.forget_session(self.id)
        await self._subagents.ended()
        for service in self._remote._services:
            await service.release(self)


def _must_be_offered(kind: str, value: str, offered: Sequence[str]) -> None:
    if value not in offered:
        close, known = meant(value, offered), ", ".join(offered) or "none"
        raise ValueError(f"the agent has no {kind} {value!r}{f'{close} It' if close else '; it'} has {known}")
