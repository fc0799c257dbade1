"""`V2Methods`: the methods of version 2, for one connection.

Common methods are handled by the code of version 1: its handlers get converted messages (see `v1_handlers_on_v2`). This
module has the differences: sessions are opened with their commands and their state, prompts are inserted, and
background work can be cancelled.

A client retries a prompt under the same idempotency key: the message is inserted once, as the record knows the keys of
its messages, and its turn runs to its end once, as the record knows the ends of such turns. A turn that was interrupted
by the death of the agent or of the connection runs again.

A prompt is answered with a receipt. Later events are reported by states, so an error of the author's function ends in
an idle state with that error:

    session/prompt ─▶ held ─▶ inserted: kept, echoed, answered with its id ─▶ running … ─▶ idle
                          └─▶ cancelled: the answer is error -32800
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from accord.agent.agent_capabilities import as_declared_in_version_1
from accord.agent.lifecycle import asks_to_watch
from accord.agent.record import encoded_update, public_store_error
from accord.agent.replay_tree import update_head
from accord.agent.session import Session
from accord.agent.session_activity import CANCELLED
from accord.agent.session_config import offered
from accord.agent.turn import Turn
from accord.dialects import ActivityEnd, Failure
from accord.dialects.v1_handlers_on_v2 import handlers_on_v2, in_v1, interceptors_on_v2
from accord.dialects.v2_dialect import state_of
from accord.engine.handlers import Handlers
from accord.engine.peer import Context
from accord.errors import NOT_FOUND, RequestError, StoreError
from accord.schema import v1, v2
from accord.schema.base import JsonObject, Unknown
from accord.schema.capabilities import Capabilities
from accord.schema.conversion import to_v2


class PromptReceipt:
    """Inserts one prompt into the conversation, answers it, and reports the end of its work."""

    def __init__(self, request: v2.PromptRequest, context: Context, *, unstable: bool) -> None:
        self.prompt: Sequence[v2.ContentBlock] = request.prompt
        """The prompt's content, as it was sent."""
        self.key: str | None = request.idempotency_key
        """The key under which the client sends it, the same for each retry; None if it has none."""
        self.interrupted: str | None = None
        """The id of its message, if an earlier attempt stored it and its turn was interrupted: it is run again."""
        self.answer: v2.PromptResponse | None = None
        """The answer, once there is one."""
        self.store_error: StoreError | None = None
        """The store's error while the work went on."""
        self._context = context
        self._unstable = unstable
        self.turn: Turn | None = None
        """The work that the prompt begins; None if it joins a running turn, which reports its own end."""
        self._is_over = False
        self._submissions: dict[str, asyncio.Future[None] | None] = {}

    async def look_for_message(self, session: Session, key: str) -> None:
        """Set `interrupted` to the id of the message that an earlier attempt with this key has inserted, if one has.

        Concurrent attempts are handled one after the other: each waits until the previous one is stored or refused. The
        first that finds no message inserts it; the next follows after `settle`.
        """
        submissions, record = session._submissions, session._record
        while key in submissions:
            other = submissions[key]
            if other is None:  # this is the first to wait
                other = submissions[key] = asyncio.get_running_loop().create_future()
            await asyncio.shield(other)
        submissions[key] = None
        self._submissions = submissions
        self.interrupted = await record.message_sent_under(key)

    def settle(self) -> None:
        """Let the next attempt with this key follow; a second time does nothing."""
        if self.key is not None and (settled := self._submissions.pop(self.key, None)) is not None:
            settled.set_result(None)
        self._submissions = {}

    def kept(self, session: Session, message_id: str, echo: bytes | None) -> None:
        """Note that the prompt is stored: echo it, answer it, and report the end of its work when that comes."""
        session._updates.peer.connection.collect()
        if echo is not None:
            session._updates.report_encoded(echo)
        self.answer = v2.PromptResponse(v2.MessageId(message_id))
        self._context.answer(self.answer)
        self.settle()
        if self.turn is not None:
            self.turn._place.at_end = functools.partial(self._ended, self.turn)

    def is_overdue(self) -> None:
        """The work was cancelled and does not end: the session is idle without it."""
        if self.answer is not None and self.turn is not None:
            self._ended(self.turn, None)

    def _ended(self, turn: Turn, error: BaseException | None) -> bool:
        """Report that the session is idle; returns whether that reports the error."""
        stop_reason = turn._place.stop_reason
        if isinstance(error, StoreError):
            self.store_error = error
            error = public_store_error(error, turn.session.id)
        if isinstance(error, asyncio.CancelledError):
            stop_reason, error = CANCELLED, None
        if not self._is_over:
            self._is_over = True
            turn.session._activity.idle(
                ActivityEnd(
                    stop_reason=stop_reason,
                    usage=turn._spent if self._unstable else None,
                    meta=turn.answer_meta or None,
                    failure=None if error is None else Failure(*turn.context.failure(error)),
                )
            )
        return error is None or isinstance(error, Exception)


if TYPE_CHECKING:
    from accord.agent.agent_connection import AgentConnection

AnswerT = TypeVar("AnswerT", v2.NewSessionResponse, v2.ResumeSessionResponse, v2.ForkSessionResponse)


class V2Methods:
    """The methods of version 2, for one connection."""

    def __init__(self, connection: AgentConnection) -> None:
        self._agent = connection.agent
        self._client = connection.client
        self._authentication = connection.authentication
        self._lifecycle = connection._lifecycle
        self._connection = connection

    def handlers(self, first: Handlers) -> Handlers:
        """All methods of version 2; `first` handles version 1, the author's own handlers included."""
        own = Handlers()
        own.on(v2.InitializeRequest)(self._initialize)
        own.on(v2.NewSessionRequest)(self._new)
        own.on(v2.ResumeSessionRequest)(self._resume)
        own.on(v2.ForkSessionRequest)(self._fork)
        own.on(v2.CloseSessionRequest)(self._close)
        own.on(v2.SetSessionConfigOptionRequest)(self._set_config_option)
        own.on(v2.PromptRequest)(self._prompt)
        own.on(v2.CancelSessionNotification)(self._cancel)
        own.on(v2.CancelToolCallRequest)(self._cancel_tool_call)
        own.on(v2.CancelTerminalRequest)(self._cancel_terminal)
        if self._agent.unstable:
            own.on(v2.SessionStatusRequest)(self._status)
            own.on(v2.SessionOptionsRequest)(self._options)
        if self._agent.logins.ways:
            own.on(v2.LoginAuthRequest)(self._log_in)
            own.on(v2.LogoutAuthRequest)(self._connection._log_out)
        authors = handlers_on_v2(self._agent.handlers.in_threads(), "agent", level=logging.INFO)
        every = self._agent.second_handlers.in_threads().over(authors.over(own.over(handlers_on_v2(first, "agent"))))
        # The steps before the handlers are the same in both versions, converted; `first` has the author's as well.
        every.interceptors = [interceptors_on_v2(it, "agent") for it in first.interceptors]
        return every

    # Login

    def _initialize(self, request: v2.InitializeRequest, context: Context) -> v2.InitializeResponse:
        self._client.info, self._client.meta = request.info, request.meta or {}
        declared = request.capabilities
        context.peer.capabilities = Capabilities(declared, as_declared_in_version_1(declared), request.meta)
        context.peer.connection.let_handshake_be_repeated()
        methods = self._authentication.methods(context.peer.capabilities)
        offered = [to_v2(method) for method in methods if not isinstance(method, v1.AuthMethodEnvVar)]
        offers = declared_in_version_2(self._connection._declared, has_skills=self._agent.skills is not None)
        return v2.InitializeResponse(2, self._agent.info, offers, offered, meta=self._agent.announced)

    async def _log_in(self, request: v2.LoginAuthRequest, context: Context) -> None:
        if self._authentication.has_terminal_login(request.method_id):
            raise RequestError.invalid_params(
                "this login happens at a terminal: run the agent there, and do not request it",
                methodId=request.method_id,
            )
        await self._authentication.log_in(request.method_id, context)

    # Sessions

    async def _new(self, request: v2.NewSessionRequest, context: Context) -> v2.NewSessionResponse:
        self._check_servers(request.mcp_servers)
        answer = await self._lifecycle.new(in_v1(request, "agent"), context)
        return self._opened(v2.NewSessionResponse(answer.session_id), answer.meta, answer.session_id)

    async def _fork(self, request: v2.ForkSessionRequest, context: Context) -> v2.ForkSessionResponse:
        self._check_servers(request.mcp_servers)
        answer = await self._lifecycle.fork(in_v1(request, "agent"), context)
        return self._opened(v2.ForkSessionResponse(answer.session_id), answer.meta, answer.session_id)

    async def _resume(self, request: v2.ResumeSessionRequest, context: Context) -> v2.ResumeSessionResponse:
        self._check_servers(request.mcp_servers)
        if isinstance(request.replay_from, Unknown):
            raise RequestError.invalid_params(
                "a replay can only begin at the start", path="$.replayFrom", type=request.replay_from.tag
            )
        older = in_v1(request, "agent")
        replays = request.replay_from is not None
        if asks_to_watch(older):
            options, _ = await self._lifecycle.watch(older, context, replays=replays)
            # The store does not know a session's activity, and an observer has nothing to wait for.
            state = self._client.dialect().plain_state("idle", None)
            self._client.peer.connection.tell(b"%b%b}}" % (update_head(request.session_id), state))
            return v2.ResumeSessionResponse(to_v2(options))
        _, meta = await self._lifecycle.reopen(older, context, replays=replays)
        session = self._lifecycle.found(request.session_id)
        tell = self._client.peer.connection.tell
        if not replays and session.title is not None:
            tell(session._record.frame(encoded_update(v2.SessionInfoUpdate(title=session.title))))
        # The schema, session/resume: the state comes before the answer, whatever it is.
        if (join := self._lifecycle.join_of(session.id)) is not None:
            join.skip_to_present()
        if (activity := session._activity.state_in(self._client.dialect())) is not None:
            tell(session._record.frame(encoded_update(activity)))
        return self._opened(v2.ResumeSessionResponse(), meta, session.id)

    def _opened(self, bare: AnswerT, meta: JsonObject | None, session_id: str) -> AnswerT:
        """The answer that opens a session: with its options, and with its first commands."""
        session = self._lifecycle.found(session_id)
        return replace(
            bare,
            config_options=session.config._options(),
            available_commands=offered(session.commands).available_commands,
            meta=meta,
        )

    async def _options(self, request: v2.SessionOptionsRequest) -> v2.SessionOptionsResponse:
        session = await self._lifecycle.draft(in_v1(request, "agent"))
        commands = offered(session.commands).available_commands
        return v2.SessionOptionsResponse(session.config._options(), commands)

    async def _status(self, request: v2.SessionStatusRequest) -> v2.SessionStatusResponse:
        answer = await self._lifecycle.status(v1.SessionStatusRequest(request.session_id))
        session = self._lifecycle.open_session(request.session_id)
        state = None if session is None else state_of(session._activity.now, session._activity.background)
        return v2.SessionStatusResponse(answer.status, state)

    async def _close(self, request: v2.CloseSessionRequest) -> None:
        try:
            await self._lifecycle.close(v1.CloseSessionRequest(request.session_id))
        except RequestError as error:
            if error.code != NOT_FOUND:
                raise  # the schema, session/close: closing a session that is not open succeeds

    def _check_servers(self, servers: Sequence[v2.McpServer]) -> None:
        """Raise RequestError for servers of the same name, and for those of a kind that the agent cannot reach."""
        names: set[str] = set()
        for server in servers:
            if isinstance(server, Unknown):
                raise RequestError.invalid_params(
                    "this agent does not support this type of MCP server", type=server.tag, path="$.mcpServers"
                )
            if not Capabilities(self._connection._declared).allow(in_v1(server, "agent")):
                raise RequestError.invalid_params(
                    "this agent does not support this type of MCP server",
                    type=str(server.__struct_config__.tag),
                    path="$.mcpServers",
                )
            if server.name in names:
                raise RequestError.invalid_params("the names of MCP servers must differ", name=server.name)
            names.add(server.name)

    async def _set_config_option(self, request: v2.SetSessionConfigOptionRequest) -> v2.SetSessionConfigOptionResponse:
        if not isinstance(request, v2.SetSessionConfigOptionId | v2.SetSessionConfigOptionBoolean):
            raise RequestError.invalid_params("unknown type of value", path="$.type")
        session = self._lifecycle.session(request.session_id)
        async with self._lifecycle.keeping(session):
            # The update comes before the answer: other clients that show this session see it, too.
            await session.config._set_by_client(request.config_id, request.value, answered=False)
        return v2.SetSessionConfigOptionResponse(session.config._options())

    # Work

    async def _prompt(self, request: v2.PromptRequest, context: Context) -> v2.PromptResponse:
        receipt = PromptReceipt(request, context, unstable=self._agent.unstable)
        try:
            if (key := receipt.key) is not None:
                if not self._authentication.is_open:
                    await self._authentication.require()
                session = await self._session_of_retry(request.session_id, receipt, key, context)
                if receipt.interrupted is not None and not session._record.is_interrupted(receipt.interrupted):
                    if (
                        session.id in self._lifecycle.sessions
                    ):  # else its work runs, and its end is told like its states
                        context.after_response(functools.partial(self._tell_end, session))
                    return v2.PromptResponse(v2.MessageId(receipt.interrupted))
            older = v1.PromptRequest(request.session_id, request.prompt, meta=request.meta)
            await self._connection._work_on(older, context, receipt)
        finally:
            receipt.settle()
        if receipt.answer is None:
            raise RequestError.cancelled()
        taken = self._lifecycle.sessions.get(request.session_id)
        refusal = receipt.store_error
        if taken is not None and refusal is not None and refusal.reason in ("taken", "gone"):
            await self._lifecycle.let_go(taken)
        return receipt.answer

    async def _session_of_retry(self, session_id: str, receipt: PromptReceipt, key: str, context: Context) -> Session:
        """The session that says whether this prompt was sent before; `receipt` has the message's id then.

        One that works on another connection answers at once. If that work is over, or ends with its connection, only
        the session that comes over can tell of the end, or run an interrupted turn again.
        """
        while True:
            session = self._lifecycle.session(session_id)
            try:
                await receipt.look_for_message(session, key)
            except StoreError as error:
                raise public_store_error(error, session.id) from error
            runs = session._activity.now != "idle" and session._updates.peer.connection.is_open
            if runs or self._lifecycle.sessions.get(session.id) is session:
                return session
            receipt.settle()
            if not await self._lifecycle.arrived(session_id, context):
                raise RequestError.cancelled()

    def _tell_end(self, session: Session) -> None:
        """Report to a client that has sent a prompt again how its turn ended, if nothing runs now."""
        if session._activity.now == "idle":
            end = ActivityEnd(stop_reason=session._record.stop_reason or CANCELLED)
            session._updates.report(session._activity.state_in(session._updates.dialect, end))

    def _cancel(self, notification: v2.CancelSessionNotification) -> None:
        self._lifecycle.cancel(notification.session_id)

    def _cancel_tool_call(self, request: v2.CancelToolCallRequest) -> None:
        session = self._lifecycle.session(request.session_id)
        if not session._cancels.cancel("tool_call", request.tool_call_id):
            raise RequestError.invalid_params("this tool call cannot be cancelled", toolCallId=request.tool_call_id)

    def _cancel_terminal(self, request: v2.CancelTerminalRequest) -> None:
        session = self._lifecycle.session(request.session_id)
        if not session._cancels.cancel("terminal", request.terminal_id):
            raise RequestError.invalid_params("this terminal cannot be cancelled", terminalId=request.terminal_id)


def declared_in_version_2(declared: v1.AgentCapabilities, *, has_skills: bool = False) -> v2.AgentCapabilities:
    """The agent's capabilities in version 2, where every agent can load, list, resume and close sessions."""
    sessions = replace(
        declared.session_capabilities,
        list=v1.SessionListCapabilities(),
        resume=v1.SessionResumeCapabilities(),
        close=v1.SessionCloseCapabilities(),
    )
    capabilities: v2.AgentCapabilities = to_v2(
        replace(
            declared,
            load_session=True,
            session_capabilities=sessions,
            auth=replace(declared.auth, logout=None),
            nes=None,
            position_encoding=None,
        )
    )
    if has_skills and (session := capabilities.session) is not None:  # version 1 has no capability for skills
        skill = v2.PromptSkillCapabilities(v2.PromptSkillInlineCapabilities())
        prompt = replace(session.prompt or v2.PromptCapabilities(), skill=skill)
        return replace(capabilities, session=replace(session, prompt=prompt))
    return capabilities
