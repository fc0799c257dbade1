"""`V2Methods`: the methods of version 2, for one connection.

What is the same in both versions is done by the code of version 1: its handlers get converted messages (see
`v1_handlers_on_v2`). Here is what differs: sessions are opened with their commands and their state, prompts are
inserted, and background work can be cancelled.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from accord.agent.catalogue import Catalogue
from accord.agent.commands import offered
from accord.agent.connected_client import ConnectedClient
from accord.agent.definition import AgentDefinition
from accord.agent.insertion import Insertion
from accord.agent.lifecycle import Lifecycle, asks_to_watch
from accord.agent.login import Authentication
from accord.agent.negotiation import as_declared_in_version_1
from accord.agent.subagent_updates import update_head
from accord.capabilities import Capabilities
from accord.dialects.v1_handlers_on_v2 import handlers_on_v2, in_v1, interceptors_on_v2
from accord.dialects.v2_dialect import state_of
from accord.engine.context import Context
from accord.engine.handlers import Handlers
from accord.errors import NOT_FOUND, RequestError
from accord.schema import v1, v2
from accord.schema.base import Unknown
from accord.schema.conversion import to_v2

AnswerT = TypeVar("AnswerT", v2.NewSessionResponse, v2.ResumeSessionResponse, v2.ForkSessionResponse)

WorkOn = Callable[[v1.PromptRequest, Context, Insertion], Awaitable[object]]
"""Works on a prompt; returns when the work has ended."""


class V2Methods:
    """The methods of version 2, for one connection."""

    def __init__(
        self,
        agent: AgentDefinition,
        declared: v1.AgentCapabilities,
        client: ConnectedClient,
        authentication: Authentication,
        lifecycle: Lifecycle,
        catalogue: Catalogue,
        work_on: WorkOn,
        log_out: Callable[[object, Context], Awaitable[None]],
    ) -> None:
        self._agent = agent
        self._declared = declared
        self._client = client
        self._authentication = authentication
        self._lifecycle = lifecycle
        self._catalogue = catalogue
        self._work_on = work_on
        self._log_out = log_out

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
        if self._agent.logins.ways:
            own.on(v2.LoginAuthRequest)(self._log_in)
            own.on(v2.LogoutAuthRequest)(self._log_out)
        authors = handlers_on_v2(self._agent.handlers, "agent", level=logging.INFO)
        every = self._agent.second_handlers.over(authors.over(own.over(handlers_on_v2(first, "agent"))))
        # What comes before the handlers is the same in both versions, converted; `first` has the author's as well.
        every.interceptors = [
            interceptors_on_v2(it, "agent") for it in first.interceptors if it is not self._client.interceptors
        ]
        every.interceptors.insert(0, self._client.interceptors)
        return every

    # Who is there

    def _initialize(self, request: v2.InitializeRequest, context: Context) -> v2.InitializeResponse:
        self._client.info = request.info
        context.peer.capabilities = Capabilities(as_declared_in_version_1(request.capabilities))
        context.peer.connection.let_handshake_be_repeated()
        methods = self._authentication.methods(context.peer.capabilities)
        told = [to_v2(method) for method in methods if not isinstance(method, v1.AuthMethodEnvVar)]
        declared = declared_in_version_2(self._declared)
        return v2.InitializeResponse(2, self._agent.info, declared, told, meta=self._agent.announced)

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
        return self._opened(v2.NewSessionResponse(answer.session_id), answer, answer.session_id)

    async def _fork(self, request: v2.ForkSessionRequest, context: Context) -> v2.ForkSessionResponse:
        self._check_servers(request.mcp_servers)
        answer = await self._lifecycle.fork(in_v1(request, "agent"), context)
        return self._opened(v2.ForkSessionResponse(answer.session_id), answer, answer.session_id)

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
            # The store does not tell what a session does, and an observer has nothing to wait for.
            state = self._client.dialect().plain_state("idle", None) or b""
            self._client.peer.connection.tell(b"%b%b}}" % (update_head(request.session_id), state))
            return v2.ResumeSessionResponse(to_v2(options))
        if (working := await self._lifecycle.rejoin(older, replays=replays)) is not None:
            answer: v1.LoadSessionResponse | v1.ResumeSessionResponse = v1.ResumeSessionResponse(
                meta=working.face.answer_meta or None
            )
        elif replays:
            answer = await self._lifecycle.load(older, context)
        else:
            answer = await self._lifecycle.resume(older, context)
        session = self._lifecycle.session(request.session_id)
        if not replays and session.face.title is not None:
            session.updates.report(v2.SessionInfoUpdate(title=session.face.title))
        # The schema, session/resume: the state comes before the answer, whatever it is.
        session.activity.tell()
        return self._opened(v2.ResumeSessionResponse(), answer, session.id)

    def _opened(self, bare: AnswerT, answer: Any, session_id: str) -> AnswerT:
        """The answer that opens a session: with its options, and with its first commands."""
        session = self._lifecycle.sessions[session_id]
        return replace(
            bare,
            config_options=to_v2(session.config.options()),
            available_commands=to_v2(offered(session.face.commands).available_commands),
            meta=answer.meta,
        )

    async def _status(self, request: v2.SessionStatusRequest) -> v2.SessionStatusResponse:
        answer = await self._catalogue.status(v1.SessionStatusRequest(request.session_id))
        session = self._catalogue.open_session(request.session_id)
        state = None if session is None else state_of(session.activity.now, session.activity.background)
        return v2.SessionStatusResponse(answer.status, state)

    async def _close(self, request: v2.CloseSessionRequest) -> None:
        try:
            await self._lifecycle.close(v1.CloseSessionRequest(request.session_id))
        except RequestError as error:
            if error.code != NOT_FOUND:
                raise  # the schema, session/close: closing what is not open succeeds

    def _check_servers(self, servers: Sequence[v2.McpServer]) -> None:
        """RequestError for servers of one name, and for those of a kind that the agent cannot reach."""
        names: set[str] = set()
        for server in servers:
            if isinstance(server, Unknown):
                raise RequestError.invalid_params(
                    "this agent does not support this type of MCP server", type=server.tag, path="$.mcpServers"
                )
            if not Capabilities(self._declared).allow(in_v1(server, "agent")):
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
            await session.config.set_by_client(request.config_id, request.value, answered=False)
        return v2.SetSessionConfigOptionResponse(to_v2(session.config.options()))

    # Work

    async def _prompt(self, request: v2.PromptRequest, context: Context) -> v2.PromptResponse:
        insertion = Insertion(request.prompt, context, unstable=self._agent.unstable)
        await self._work_on(_prompt_in_v1(request), context, insertion)
        if insertion.receipt is None:
            raise RequestError.cancelled()
        session = self._lifecycle.sessions.get(request.session_id)
        error = insertion.store_error
        if session is not None and error is not None and error.reason in ("taken", "gone"):
            await self._lifecycle.let_go(session)
        return insertion.receipt

    def _cancel(self, notification: v2.CancelSessionNotification) -> None:
        self._lifecycle.cancel(notification.session_id)

    def _cancel_tool_call(self, request: v2.CancelToolCallRequest) -> None:
        session = self._lifecycle.session(request.session_id)
        if not session.cancels.cancel("tool_call", request.tool_call_id):
            raise RequestError.invalid_params("this tool call cannot be cancelled", toolCallId=request.tool_call_id)

    def _cancel_terminal(self, request: v2.CancelTerminalRequest) -> None:
        session = self._lifecycle.session(request.session_id)
        if not session.cancels.cancel("terminal", request.terminal_id):
            raise RequestError.invalid_params("this terminal cannot be cancelled", terminalId=request.terminal_id)


def _prompt_in_v1(request: v2.PromptRequest) -> v1.PromptRequest:
    """A prompt in version 1. Plain text, which most prompts are, is not converted field by field."""
    blocks = [_plain_text(block) or in_v1(block, "agent") for block in request.prompt]
    return v1.PromptRequest(request.session_id, blocks, meta=request.meta)


def _plain_text(block: v2.ContentBlock) -> v1.TextContent | None:
    if isinstance(block, v2.TextContent) and block.annotations is None and block.meta is None:
        return v1.TextContent(block.text)
    return None


def declared_in_version_2(declared: v1.AgentCapabilities) -> v2.AgentCapabilities:
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
    return capabilities
