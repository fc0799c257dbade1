"""Version 1 of the protocol: its messages and their parts, by topic, as in the specification.

The types of next edit suggestions, which few programs need, are in `v1_nes`, and load when one of them is first used.
"""

# pyright: reportGeneralTypeIssues=false
# It imports UNSET, which is Final.

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, NewType, TypeAlias, TypeVar, cast

from msgspec import UNSET, UnsetType, field

from accord.schema import shared_updates as updates
from accord.schema.base import (
    Int64,
    Json,
    Model,
    Notification,
    NullAsDefault,
    Open,
    Patch,
    ReadOpen,
    Request,
    Shape,
    Tolerant,
    Uint32,
    Uint64,
    Unstable,
    ValidItems,
    choice,
    needs,
    public_names,
    tagged_or,
    unknown_members,
    unstable,
    with_unknown_members,
    words,
)
from accord.schema.content import *
from accord.schema.shared_updates import (
    AgentMessageAnchor as AgentMessageAnchor,
    AgentMessageChunk as AgentMessageChunk,
    AgentThoughtAnchor as AgentThoughtAnchor,
    AgentThoughtChunk as AgentThoughtChunk,
    CompactionId as CompactionId,
    CompactionStatus as CompactionStatus,
    CompactionSummaryChunk as CompactionSummaryChunk,
    Content as Content,
    ContentChunk as ContentChunk,
    Cost as Cost,
    CurrentModeUpdate as CurrentModeUpdate,
    CursorAnchor as CursorAnchor,
    CursorAnchorPosition as CursorAnchorPosition,
    CursorCapabilities as CursorCapabilities,
    CursorCompactionAnchor as CursorCompactionAnchor,
    CursorForkCapabilities as CursorForkCapabilities,
    CursorId as CursorId,
    CursorMessageAnchor as CursorMessageAnchor,
    CursorToolCallAnchor as CursorToolCallAnchor,
    CursorUpdate as CursorUpdate,
    Error as Error,
    ErrorCode as ErrorCode,
    IdleStateUpdate as IdleStateUpdate,
    MessageId as MessageId,
    ModelId as ModelId,
    ModelInfo as ModelInfo,
    Notice as Notice,
    NoticeSeverity as NoticeSeverity,
    PlanId as PlanId,
    PlanRemoved as PlanRemoved,
    PromptSuggestion as PromptSuggestion,
    PromptSuggestionsUpdate as PromptSuggestionsUpdate,
    RequiresActionStateUpdate as RequiresActionStateUpdate,
    RunningStateUpdate as RunningStateUpdate,
    SessionCancelCapabilities as SessionCancelCapabilities,
    SessionConfigGroupId as SessionConfigGroupId,
    SessionConfigId as SessionConfigId,
    SessionConfigOptionCategory as SessionConfigOptionCategory,
    SessionConfigSelectOption as SessionConfigSelectOption,
    SessionConfigValueId as SessionConfigValueId,
    SessionId as SessionId,
    SessionMessageAnchor as SessionMessageAnchor,
    SessionMessageChunk as SessionMessageChunk,
    SessionMode as SessionMode,
    SessionModeId as SessionModeId,
    SessionReference as SessionReference,
    StateUpdate as StateUpdate,
    SubagentSessionCapabilities as SubagentSessionCapabilities,
    Terminal as Terminal,
    TerminalId as TerminalId,
    ToolCallId as ToolCallId,
    UnknownStateUpdate as UnknownStateUpdate,
    Usage as Usage,
    UserMessageAnchor as UserMessageAnchor,
    UserMessageChunk as UserMessageChunk,
)
from accord.schema.v1_and_v2 import *

_PatchT = TypeVar("_PatchT", bound=updates.ToolCallUpdate)

if TYPE_CHECKING:
    from accord.schema.v1_nes import *


# Parts of the protocol itself rather than of a topic: request ids, errors, cancelling one request.
#
# Pages: overview, cancellation, extensibility.


RequestId: TypeAlias = Annotated[Int64 | str | None, "RequestId"]
"""Identifies a call until it is answered. Type-exact: `"3"` is not `3`."""


class CancelRequestNotification(Notification, method="$/cancel_request"):
    """Cancel a request: the sender no longer needs its answer."""

    request_id: RequestId


# Slash commands that an agent offers. Page: slash-commands.


class UnstructuredCommandInput(updates.TextCommandInput, tag=False):
    """Free text after a command's name; the hint says what to type."""


AvailableCommandInput: TypeAlias = Annotated[UnstructuredCommandInput, "AvailableCommandInput"]


class AvailableCommand(updates.Command, tag=False):
    """A slash command that the agent offers; its name has no slash."""

    input: Tolerant[AvailableCommandInput | None] = None

    @classmethod
    def of(cls, name: str, description: str, hint: str | None = None) -> AvailableCommand:
        return cls(name, description, UnstructuredCommandInput(hint) if hint is not None else None)


class AvailableCommandsUpdate(updates.AvailableCommandsUpdate):
    """The commands available now; they replace the earlier list."""

    available_commands: Tolerant[ValidItems[AvailableCommand]]  # type: ignore[assignment]


# Session config options: a user's choices about a session. Page: session-config-options.


class SessionConfigSelectGroup(updates.SessionConfigSelectGroup):
    """Values of a select option under a common heading."""

    group_id: SessionConfigGroupId = field(name="group")


def _flat_or_grouped(value: Json) -> Any:
    if not isinstance(value, list):
        return None
    items = cast("list[Json]", value)
    grouped = bool(items) and all(isinstance(item, dict) and "group" in item for item in items)
    return list[SessionConfigSelectGroup] if grouped else list[SessionConfigSelectOption]


if TYPE_CHECKING:
    SessionConfigSelectOptions: TypeAlias = list[SessionConfigSelectOption] | list[SessionConfigSelectGroup]
else:
    SessionConfigSelectOptions = choice(
        "SessionConfigSelectOptions",
        _flat_or_grouped,
        list[SessionConfigSelectOption],
        list[SessionConfigSelectGroup],
    )


class SessionConfigSelect(updates.SessionConfigSelect):
    """A config option with one of several values."""

    config_id: SessionConfigId = field(name="id")
    options: SessionConfigSelectOptions  # type: ignore[assignment]


class SessionConfigBoolean(updates.SessionConfigBoolean):
    """A config option that is on or off; only for clients that declared `session.configOptions.boolean`."""

    config_id: SessionConfigId = field(name="id")


SessionConfigOption: TypeAlias = Open[SessionConfigSelect | SessionConfigBoolean]


class SessionConfigOptionsCapabilities(Model):
    """The kinds of config option, besides select, that a client can show."""

    boolean: Tolerant[BooleanConfigOptionCapabilities | None] = None


class BooleanConfigOptionCapabilities(Model):
    """Declares that the client can show on-off options."""


@unstable
class InitialSessionConfigValue(Model):
    """The value that a select option has from the start of a session; the one variant without a `type`."""

    config_id: SessionConfigId
    value: SessionConfigValueId


if TYPE_CHECKING:
    InitialSessionConfigOption: TypeAlias = InitialSessionConfigValue | InitialSessionConfigBoolean
else:
    InitialSessionConfigOption = choice(
        "InitialSessionConfigOption",
        lambda value: InitialSessionConfigBoolean if _is_boolean(value) else InitialSessionConfigValue,
        InitialSessionConfigBoolean,
        InitialSessionConfigValue,
    )


def _is_boolean(value: Json) -> bool:
    return isinstance(value, dict) and cast("dict[str, Json]", value).get("type") == "boolean"


# Models as sessions named them before config options had the category `model`. Page: adapters-type-map.
#
# Many agents still offer their models this way, some in no other: `models` in the answers that open a session, and
# `session/set_model`.


@unstable
class SessionModelState(Model):
    """The models of a session, and the current one."""

    current_model_id: ModelId
    available_models: Tolerant[ValidItems[ModelInfo]]


# Session modes: how an agent goes about its work. Page: session-modes.


class SessionModeState(Model):
    """The modes of a session, and the current one."""

    current_mode_id: SessionModeId
    available_modes: Tolerant[ValidItems[SessionMode]]


# The declarations of agents and clients about next edit suggestions: every `initialize` has room for them, see `nes`.


PositionEncodingKind: TypeAlias = Annotated[str, words("utf-16", "utf-32", "utf-8")]
TextDocumentSyncKind: TypeAlias = Annotated[str, words("full", "incremental")]


# The events that an agent asks for


@unstable
class NesDocumentDidOpenCapabilities(Model):
    """Tell when a document opens."""


@unstable
class NesDocumentDidChangeCapabilities(Model):
    """Tell what changes in a document, whole or in pieces."""

    sync_kind: TextDocumentSyncKind


@unstable
class NesDocumentDidCloseCapabilities(Model):
    """Tell when a document closes."""


@unstable
class NesDocumentDidSaveCapabilities(Model):
    """Tell when a document is saved."""


@unstable
class NesDocumentDidFocusCapabilities(Model):
    """Tell when a document gets the focus."""


@unstable
class NesDocumentEventCapabilities(Model):
    """The document events that the agent wants."""

    did_open: Tolerant[NesDocumentDidOpenCapabilities | None] = None
    did_change: Tolerant[NesDocumentDidChangeCapabilities | None] = None
    did_close: Tolerant[NesDocumentDidCloseCapabilities | None] = None
    did_save: Tolerant[NesDocumentDidSaveCapabilities | None] = None
    did_focus: Tolerant[NesDocumentDidFocusCapabilities | None] = None


@unstable
class NesEventCapabilities(Model):
    """The events that the agent wants."""

    document: Tolerant[NesDocumentEventCapabilities | None] = None


@unstable
class NesRecentFilesCapabilities(Model):
    """Send recently used files along."""

    max_count: Tolerant[Uint32 | None] = None


@unstable
class NesRelatedSnippetsCapabilities(Model):
    """Send related pieces of code along."""


@unstable
class NesEditHistoryCapabilities(Model):
    """Send the last edits along."""

    max_count: Tolerant[Uint32 | None] = None


@unstable
class NesUserActionsCapabilities(Model):
    """Send the user's recent actions along."""

    max_count: Tolerant[Uint32 | None] = None


@unstable
class NesOpenFilesCapabilities(Model):
    """Send the list of open files along."""


@unstable
class NesDiagnosticsCapabilities(Model):
    """Send errors and warnings along."""


@unstable
class NesContextCapabilities(Model):
    """The context that the agent wants with each request."""

    recent_files: Tolerant[NesRecentFilesCapabilities | None] = None
    related_snippets: Tolerant[NesRelatedSnippetsCapabilities | None] = None
    edit_history: Tolerant[NesEditHistoryCapabilities | None] = None
    user_actions: Tolerant[NesUserActionsCapabilities | None] = None
    open_files: Tolerant[NesOpenFilesCapabilities | None] = None
    diagnostics: Tolerant[NesDiagnosticsCapabilities | None] = None


@unstable
class NesCapabilities(Model):
    """The agent suggests edits."""

    events: Tolerant[NesEventCapabilities | None] = None
    context: Tolerant[NesContextCapabilities | None] = None


# The kinds of suggestion that a client can show


@unstable
class NesJumpCapabilities(Model):
    """The client can offer a jump."""


@unstable
class NesRenameCapabilities(Model):
    """The client can offer a rename."""


@unstable
class NesSearchAndReplaceCapabilities(Model):
    """The client can offer a search and replace."""


@unstable
class ClientNesCapabilities(Model):
    """What the client can show besides edits."""

    jump: Tolerant[NesJumpCapabilities | None] = None
    rename: Tolerant[NesRenameCapabilities | None] = None
    search_and_replace: Tolerant[NesSearchAndReplaceCapabilities | None] = None


# Authentication: how a user proves who they are. Pages: authentication; proposals: auth-methods, logout-method.


class AuthMethodAgent(Model):
    """A login method that the agent performs itself; the one variant without a `type`."""

    id: AuthMethodId
    name: str
    description: Tolerant[str | None] = None


class AuthMethodTerminal(Model, tag_field="type", tag="terminal"):
    """A login method at a terminal: the client runs the agent there with these arguments."""

    id: AuthMethodId
    name: str
    description: Tolerant[str | None] = None
    args: NullAsDefault[list[str]] = []
    env: NullAsDefault[dict[str, str]] = {}


@unstable
class AuthEnvVar(Model):
    """An environment variable that holds a credential."""

    name: str
    label: str | None = None
    secret: bool = True
    optional: bool = False


@unstable
class AuthMethodEnvVar(Model, tag_field="type", tag="env_var"):
    """A login method by environment variables; proposed, and sent by real agents (see `legacy`)."""

    id: AuthMethodId
    name: str
    vars: list[AuthEnvVar]
    description: Tolerant[str | None] = None
    link: str | None = None

    def missing(self, environment: Mapping[str, str]) -> list[AuthEnvVar]:
        """The required variables that this environment does not set."""
        return [wanted for wanted in self.vars if not wanted.optional and not environment.get(wanted.name)]


if TYPE_CHECKING:
    AuthMethod: TypeAlias = Open[AuthMethodAgent | AuthMethodTerminal | AuthMethodEnvVar]
else:
    AuthMethod = tagged_or("AuthMethod", "type", AuthMethodAgent, AuthMethodTerminal, AuthMethodEnvVar, means="agent")


class AuthenticateResponse(Model):
    """The result of `authenticate`: the user is logged in."""


class AuthenticateRequest(Request[AuthenticateResponse], method="authenticate"):
    """Log in with one of the agent's methods."""

    method_id: AuthMethodId


class LogoutResponse(Model):
    """The result of `logout`: the user is logged out."""


class LogoutRequest(Request[LogoutResponse], method="logout", needs="auth.logout"):
    """Log out; needs `auth.logout`."""


class LogoutCapabilities(Model):
    """Declares that the agent answers `logout`."""


class AgentAuthCapabilities(Model):
    """The agent's capabilities for logins."""

    status: Unstable[Tolerant[AuthStatusCapabilities | None]] = None
    logout: Tolerant[LogoutCapabilities | None] = None


class AuthCapabilities(Model):
    """The client's capabilities for logins."""

    terminal: Tolerant[bool] = False


# The first call of a connection: versions, capabilities, names. Page: initialization.


# The client's capabilities


class FileSystemCapabilities(Model):
    """The file methods that the client answers."""

    read_text_file: Tolerant[bool] = False
    write_text_file: Tolerant[bool] = False


class NoticeCapabilities(Shape):
    """Declares that the client shows notices."""


class CompactionCapabilities(Shape):
    """Declares that the client shows compaction."""


@unstable
class SessionCursorsCapabilities(Shape):
    """Declares that the client supports the cursors of a session."""


class ClientSessionCapabilities(Model):
    """The optional parts of a session that the client shows."""

    compaction: Tolerant[CompactionCapabilities | None] = None
    config_options: Tolerant[SessionConfigOptionsCapabilities | None] = None
    notices: Tolerant[NoticeCapabilities | None] = None
    prompt_suggestions: Unstable[Tolerant[PromptSuggestionsCapabilities | None]] = None
    cursors: Unstable[Tolerant[SessionCursorsCapabilities | None]] = None


class SubagentCapabilities(Model):
    """Declares that the client shows subagents."""


class PlanCapabilities(Model):
    """Declares that the client supports several plans, updated and removed by id."""


class ClientCapabilities(Model):
    """The methods that the client answers, and the optional features that it shows."""

    fs: Tolerant[FileSystemCapabilities] = FileSystemCapabilities()
    terminal: Tolerant[bool] = False
    session: Tolerant[ClientSessionCapabilities | None] = None
    auth: Tolerant[AuthCapabilities] = AuthCapabilities()
    elicitation: Tolerant[ElicitationCapabilities | None] = None
    subagents: Tolerant[SubagentCapabilities | None] = None
    plan: Tolerant[PlanCapabilities | None] = None
    nes: Unstable[Tolerant[ClientNesCapabilities | None]] = None
    position_encodings: Unstable[Tolerant[ValidItems[PositionEncodingKind]]] = []


# The agent's capabilities


class PromptCapabilities(Model):
    """The content that a prompt may hold besides text and resource links."""

    image: Tolerant[bool] = False
    audio: Tolerant[bool] = False
    embedded_context: Tolerant[bool] = False


class McpCapabilities(Model):
    """The MCP transports that the agent supports besides stdio."""

    http: Tolerant[bool] = False
    sse: Tolerant[bool] = False
    acp: Unstable[Tolerant[bool]] = False


class SessionListCapabilities(Model):
    """Declares that the agent answers `session/list`."""


class SessionResumeCapabilities(Model):
    """Declares that the agent answers `session/resume`."""


class SessionCloseCapabilities(Model):
    """Declares that the agent answers `session/close`."""


class SessionCapabilities(Model):
    """The optional session methods that the agent answers."""

    list: Tolerant[SessionListCapabilities | None] = None
    delete: Tolerant[SessionDeleteCapabilities | None] = None
    additional_directories: Tolerant[SessionAdditionalDirectoriesCapabilities | None] = None
    resume: Tolerant[SessionResumeCapabilities | None] = None
    close: Tolerant[SessionCloseCapabilities | None] = None
    fork: Unstable[Tolerant[SessionForkCapabilities | None]] = None
    archive: Unstable[Tolerant[SessionArchiveCapabilities | None]] = None
    status: Unstable[Tolerant[SessionStatusCapabilities | None]] = None
    title: Unstable[Tolerant[SessionTitleCapabilities | None]] = None
    options: Unstable[Tolerant[SessionOptionsCapabilities | None]] = None
    system_prompt: Tolerant[SessionSystemPromptCapabilities | None] = None


class AgentCapabilities(Model):
    """The methods and features that the agent offers."""

    load_session: Tolerant[bool] = False
    prompt_capabilities: Tolerant[PromptCapabilities] = PromptCapabilities()
    mcp_capabilities: Tolerant[McpCapabilities] = McpCapabilities()
    session_capabilities: Tolerant[SessionCapabilities] = SessionCapabilities()
    auth: Tolerant[AgentAuthCapabilities] = AgentAuthCapabilities()
    providers: Unstable[Tolerant[ProvidersCapabilities | None]] = None
    nes: Unstable[Tolerant[NesCapabilities | None]] = None
    position_encoding: Unstable[Tolerant[PositionEncodingKind | None]] = None


class InitializeResponse(Model):
    """The result of `initialize`: the negotiated protocol version, and the agent's capabilities."""

    protocol_version: ProtocolVersion
    agent_capabilities: Tolerant[AgentCapabilities] = AgentCapabilities()
    auth_methods: Tolerant[ValidItems[AuthMethod]] = []
    agent_info: Tolerant[Implementation | None] = None


class InitializeRequest(Request[InitializeResponse], method="initialize", handshake=True):
    """Open the connection: the newest protocol version of the client, and its capabilities."""

    protocol_version: ProtocolVersion
    client_capabilities: Tolerant[ClientCapabilities] = ClientCapabilities()
    client_info: Tolerant[Implementation | None] = None


# MCP servers that a client gives to a session, and MCP spoken over ACP. Pages: session-setup, mcp-over-acp.


class McpServerStdio(Model):
    """An MCP server that the agent starts as a process; every agent supports it. The one variant without a `type`."""

    name: str
    command: str
    args: NullAsDefault[list[str]]
    env: NullAsDefault[list[EnvVariable]]


@needs("mcp_capabilities.http")
class McpServerHttp(Model, tag_field="type", tag="http"):
    """An MCP server over streamable HTTP; for agents with `mcpCapabilities.http`."""

    name: str
    url: str
    headers: NullAsDefault[list[HttpHeader]]


@needs("mcp_capabilities.sse")
class McpServerSse(Model, tag_field="type", tag="sse"):
    """An MCP server over HTTP with server-sent events; for agents with `mcpCapabilities.sse`."""

    name: str
    url: str
    headers: NullAsDefault[list[HttpHeader]]


if TYPE_CHECKING:
    McpServer: TypeAlias = Open[McpServerStdio | McpServerHttp | McpServerSse | McpServerAcp]
else:
    McpServer = tagged_or("McpServer", "type", McpServerStdio, McpServerHttp, McpServerSse, McpServerAcp, means="stdio")


# MCP over ACP by connection, as the proposal's page and older SDKs have it; `mcp` has it by request. See `legacy`.
#
# The pinned schema sends `mcp/message` with a `serverId`. The page opens a connection with `mcp/connect`, sends
# `mcp/message` with its `connectionId` in both directions, and closes it with `mcp/disconnect`. Its `mcp/connect` names
# the server by `acpId`; the Rust SDK 2 names it by `serverId`, which is read too.
#
# | | by request | by connection |
# |---|---|---|
# | a request | `MessageMcpRequest` | `McpConnectionRequest` |
# | its result | `MessageMcpResponse`: a result or an error of the server | the server's result itself |
# | an error of the server | in that response | the error that answers the request |
# | a notification | `MessageMcpNotification` | `McpConnectionNotification` |
#
# A method has one handler. One that serves both forms is registered for `AnyMcpRequest` or `AnyMcpNotification`, and
# looks at the class of what it gets.


McpConnectionId = NewType("McpConnectionId", str)


@unstable
class ConnectMcpResponse(Model):
    """The result of `mcp/connect`: the id of the open connection."""

    connection_id: McpConnectionId


class ConnectMcpRequest(Request[ConnectMcpResponse], method="mcp/connect", unstable=True):
    """Open a connection to an MCP server of the other side."""

    acp_id: McpServerAcpId


@unstable
class DisconnectMcpResponse(Model):
    """The result of `mcp/disconnect`: the connection is closed."""


class DisconnectMcpRequest(Request[DisconnectMcpResponse], method="mcp/disconnect", unstable=True):
    """Close a connection to an MCP server."""

    connection_id: McpConnectionId


class McpConnectionRequest(Request[Json], method="mcp/message", unstable=True):
    """A request of MCP on an open connection; its answer is the answer of the other side's MCP."""

    connection_id: McpConnectionId
    method: str
    params: dict[str, Json] | None = None


class McpConnectionNotification(Notification, method="mcp/message", unstable=True):
    """A notification of MCP on an open connection."""

    connection_id: McpConnectionId
    method: str
    params: dict[str, Json] | None = None


class AnyMcpRequest(Request[Json], method="mcp/message", unstable=True):
    """For handlers of the request `mcp/message` in both forms: they get an instance of one of the two."""


class AnyMcpNotification(Notification, method="mcp/message", unstable=True):
    """For handlers of the notification `mcp/message` in both forms: they get an instance of one of the two."""


def _by_connection(value: Json) -> bool:
    return isinstance(value, dict) and "connectionId" in value


AnyMcpRequest.__params__ = choice(
    "AnyMcpRequest",
    lambda value: McpConnectionRequest if _by_connection(value) else MessageMcpRequest,
    McpConnectionRequest,
    MessageMcpRequest,
)
AnyMcpNotification.__params__ = choice(
    "AnyMcpNotification",
    lambda value: McpConnectionNotification if _by_connection(value) else MessageMcpNotification,
    McpConnectionNotification,
    MessageMcpNotification,
)


# Sessions: starting, finding, resuming, ending.
#
# Pages: session-setup, session-list, session-delete, session-modes, session-config-options; proposals: session-fork,
# session-close, session-resume, additional-directories.


class NewSessionResponse(Model):
    """The result of `session/new`: the id of the session, with its modes and options."""

    session_id: SessionId
    modes: Tolerant[SessionModeState | None] = None
    config_options: Tolerant[ValidItems[SessionConfigOption] | None] = None
    models: Unstable[Tolerant[SessionModelState | None]] = None


class NewSessionRequest(Request[NewSessionResponse], method="session/new"):
    """Start a session in a folder."""

    cwd: str
    mcp_servers: NullAsDefault[list[McpServer]]
    additional_directories: NullAsDefault[list[str]] = []
    system_prompt: SystemPrompt | None = None
    config_options: Unstable[NullAsDefault[list[InitialSessionConfigOption]]] = []


class LoadSessionResponse(Model):
    """The result of `session/load`, sent after the session's history was replayed."""

    modes: Tolerant[SessionModeState | None] = None
    config_options: Tolerant[ValidItems[SessionConfigOption] | None] = None
    models: Unstable[Tolerant[SessionModelState | None]] = None


class LoadSessionRequest(Request[LoadSessionResponse], method="session/load", needs="load_session"):
    """Reopen a session and replay its history as updates; needs `loadSession`."""

    session_id: SessionId
    cwd: str
    mcp_servers: NullAsDefault[list[McpServer]]
    additional_directories: NullAsDefault[list[str]] = []
    system_prompt: SystemPrompt | None = None
    config_options: Unstable[NullAsDefault[list[InitialSessionConfigOption]]] = []


class ResumeSessionResponse(LoadSessionResponse):
    """The result of `session/resume`: the session is open again; nothing was replayed."""


class ResumeSessionRequest(
    Request[ResumeSessionResponse], method="session/resume", needs="session_capabilities.resume"
):
    """Reopen a session without a replay; needs `sessionCapabilities.resume`."""

    session_id: SessionId
    cwd: str
    additional_directories: NullAsDefault[list[str]] = []
    mcp_servers: NullAsDefault[list[McpServer]] = []
    system_prompt: SystemPrompt | None = None
    config_options: Unstable[NullAsDefault[list[InitialSessionConfigOption]]] = []


@unstable
class ForkSessionResponse(NewSessionResponse):
    """The result of `session/fork`: the id of the copy."""


class ForkSessionRequest(
    Request[ForkSessionResponse], method="session/fork", unstable=True, needs="session_capabilities.fork"
):
    """Copy a session to try another course; needs `sessionCapabilities.fork`."""

    session_id: SessionId
    cwd: str
    additional_directories: NullAsDefault[list[str]] = []
    mcp_servers: NullAsDefault[list[McpServer]] = []
    system_prompt: SystemPrompt | None = None
    config_options: Unstable[NullAsDefault[list[InitialSessionConfigOption]]] = []
    cursor_id: Unstable[CursorId | None] = None


@unstable
class SessionOptionsResponse(Model):
    """The result of `session/options`: the modes and options with which the session would start."""

    modes: Tolerant[SessionModeState | None] = None
    config_options: Tolerant[ValidItems[SessionConfigOption] | None] = None


class SessionOptionsRequest(
    Request[SessionOptionsResponse], method="session/options", unstable=True, needs="session_capabilities.options"
):
    """Ask for the options of a session before it is opened, or reopened; needs `sessionCapabilities.options`."""

    cwd: str
    additional_directories: NullAsDefault[list[str]] = []
    session_id: SessionId | None = None


class SessionInfo(Model):
    """An entry in the list of sessions."""

    session_id: SessionId
    cwd: str
    additional_directories: Tolerant[ValidItems[str]] = []
    title: Tolerant[str | None] = None
    updated_at: Tolerant[str | None] = None  # RFC 3339
    archived: Unstable[Tolerant[bool | None]] = None


class ListSessionsResponse(Model):
    """One page of sessions; `next_cursor` fetches the next."""

    sessions: Tolerant[ValidItems[SessionInfo]]
    next_cursor: Tolerant[str | None] = None


class ListSessionsRequest(Request[ListSessionsResponse], method="session/list", needs="session_capabilities.list"):
    """List the sessions that the agent knows; needs `sessionCapabilities.list`."""

    cwd: str | None = None
    cursor: str | None = None
    archived: Unstable[SessionArchiveFilter | None] = None


@unstable
class SessionStatusResponse(Model):
    """The result of `session/status`: whether a session is open in the agent, or only saved."""

    status: SessionStatus


class SessionStatusRequest(
    Request[SessionStatusResponse], method="session/status", unstable=True, needs="session_capabilities.status"
):
    """Ask for the status of a session; needs `sessionCapabilities.status`."""

    session_id: SessionId


class SetSessionModeResponse(Model):
    """The result of `session/set_mode`: the mode is active."""


class SetSessionModeRequest(Request[SetSessionModeResponse], method="session/set_mode"):
    """Set the mode of a session."""

    session_id: SessionId
    mode_id: SessionModeId


@unstable
class SetSessionModelResponse(Model):
    """The result of `session/set_model`: the model is chosen."""


class SetSessionModelRequest(Request[SetSessionModelResponse], method="session/set_model", unstable=True):
    """Choose the model of a session among the agent's `models`."""

    session_id: SessionId
    model_id: ModelId


class SetSessionConfigOptionResponse(Model):
    """All config options after the change: changing one may change others."""

    config_options: Tolerant[ValidItems[SessionConfigOption]]


class SetSessionConfigOptionRequest(Request[SetSessionConfigOptionResponse], method="session/set_config_option"):
    """Set a config option; `type` is `boolean` where the value is a boolean."""

    session_id: SessionId
    config_id: SessionConfigId
    value: SessionConfigValueId | bool
    type: Tolerant[Literal["boolean"] | None] = None  # any other type goes with the id of a value

    @classmethod
    def of(
        cls,
        session_id: SessionId,
        config_id: SessionConfigId,
        value: SessionConfigValueId | bool,
        meta: dict[str, Json] | None = None,
    ) -> SetSessionConfigOptionRequest:
        return cls(session_id, config_id, value, "boolean" if isinstance(value, bool) else None, meta=meta)

    def __post_init__(self) -> None:
        if (self.type == "boolean") != isinstance(self.value, bool):
            raise ValueError("type must be 'boolean' if value is a boolean, and only then")


# The prompt turn: asking, stopping, and how it ended. Pages: prompt-turn; proposal: end-turn-token-usage.


StopReason = Literal["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"]


class PromptResponse(Model):
    """The result of `session/prompt`: why the turn ended."""

    stop_reason: ReadOpen[StopReason]
    usage: Unstable[Tolerant[Usage | None]] = None


class PromptRequest(Request[PromptResponse], method="session/prompt", patient=True):
    """Send a message of the user; the answer comes when the agent has finished with it."""

    session_id: SessionId
    prompt: list[ContentBlock]

    @classmethod
    def of(cls, session_id: SessionId, *content: str | ContentBlock) -> PromptRequest:
        return cls(session_id, [as_block(block) for block in content])


class CancelNotification(Notification, method="session/cancel", immediate=True):
    """Stop the session's turn; its prompt is then answered with `cancelled`."""

    session_id: SessionId


# Plans: an agent's intentions, step by step. Page: agent-plan; proposal: plan-operations.


PlanEntryPriority = Literal["high", "medium", "low"]
PlanEntryStatus = Literal["pending", "in_progress", "completed"]


class PlanEntry(updates.PlanEntry):
    """One step of a plan."""

    priority: PlanEntryPriority
    status: PlanEntryStatus


class Plan(Model, tag_field="sessionUpdate", tag="plan"):
    """The whole plan in its present state; it replaces the one before."""

    entries: Tolerant[ValidItems[PlanEntry]]

    def as_update(self, *, is_known: bool = False) -> updates.PlanUpdate:  # noqa: ARG002
        """Return it in its public form: the steps of the plan `main`, as that plan has no id here."""
        made = updates.PlanUpdate(updates.PlanItems(updates.MAIN_PLAN, list(self.entries)), meta=self.meta)
        return with_unknown_members(made, unknown_members(self))

    @classmethod
    def of(cls, *entries: str | PlanEntry) -> Plan:
        return cls([PlanEntry.of(entry) if isinstance(entry, str) else entry for entry in entries])


class PlanItems(updates.PlanItems):
    """Return a plan as a list of steps."""

    entries: Tolerant[ValidItems[PlanEntry]]  # type: ignore[assignment]


class PlanMarkdown(updates.PlanMarkdown):
    """A plan as Markdown text; `path` is the file that holds it, if there is one."""

    path: Tolerant[str | None] = None


PlanUpdateContent: TypeAlias = Open[PlanItems | PlanMarkdown]


@needs("plan")
class PlanUpdate(updates.PlanUpdate):
    """One of several plans, in its present state; for clients that declared `plan`."""

    plan: PlanUpdateContent


# Terminals that a client lends: commands it runs for the agent. Page: terminals.


class CreateTerminalResponse(Model):
    """The result of `terminal/create`: the id of the terminal in which the command runs."""

    terminal_id: TerminalId


class CreateTerminalRequest(Request[CreateTerminalResponse], method="terminal/create", needs="terminal"):
    """Run a command; the terminal stays until it is released."""

    session_id: SessionId
    command: str
    args: NullAsDefault[list[str]] = []
    env: NullAsDefault[list[EnvVariable]] = []
    cwd: str | None = None
    output_byte_limit: Uint64 | None = None


class TerminalExitStatus(Model):
    """The exit code of a command, or the signal that ended it."""

    exit_code: Tolerant[Uint32 | None] = None
    signal: Tolerant[str | None] = None


class TerminalOutputResponse(Model):
    """The result of `terminal/output`: the output kept so far, and the exit status after the end."""

    output: str
    truncated: bool
    exit_status: Tolerant[TerminalExitStatus | None] = None


class TerminalOutputRequest(Request[TerminalOutputResponse], method="terminal/output"):
    """Read a terminal's output without waiting."""

    session_id: SessionId
    terminal_id: TerminalId


class WaitForTerminalExitResponse(TerminalExitStatus):
    """The result of `terminal/wait_for_exit`: how the command ended."""


class WaitForTerminalExitRequest(Request[WaitForTerminalExitResponse], method="terminal/wait_for_exit"):
    """Wait until a terminal's command ends."""

    session_id: SessionId
    terminal_id: TerminalId


class KillTerminalResponse(Model):
    """The result of `terminal/kill`: the command was ended; its output can still be read."""


class KillTerminalRequest(Request[KillTerminalResponse], method="terminal/kill"):
    """End a terminal's command and keep the terminal."""

    session_id: SessionId
    terminal_id: TerminalId


class ReleaseTerminalResponse(Model):
    """The result of `terminal/release`: the terminal is gone."""


class ReleaseTerminalRequest(Request[ReleaseTerminalResponse], method="terminal/release"):
    """Release a terminal, and end its command if it runs."""

    session_id: SessionId
    terminal_id: TerminalId


# Files that a client lends, as its editor sees them. Page: file-system.


class ReadTextFileResponse(Model):
    """The result of `fs/read_text_file`: the text."""

    content: str


class ReadTextFileRequest(Request[ReadTextFileResponse], method="fs/read_text_file", needs="fs.read_text_file"):
    """Read a file through the client, unsaved edits included."""

    session_id: SessionId
    path: str  # absolute
    line: Uint32 | None = None  # 1-based
    limit: Uint32 | None = None  # in lines


class WriteTextFileResponse(Model):
    """The result of `fs/write_text_file`: the file is written."""


class WriteTextFileRequest(Request[WriteTextFileResponse], method="fs/write_text_file", needs="fs.write_text_file"):
    """Write a file through the client, which creates it if necessary."""

    session_id: SessionId
    path: str  # absolute
    content: str


# Tool calls: an agent's actions and their results. Page: tool-calls.


ToolKind = Literal["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"]
ToolCallStatus = Literal["pending", "in_progress", "completed", "failed"]


class Diff(updates.TextDiff):
    """A changed file: its whole text before (None for a new file) and after (empty for a `deleted` file)."""


ToolCallContent: TypeAlias = Open[Content | Diff | Terminal | SessionReference]


class ToolCallLocation(updates.ToolCallLocation):
    """A place in a file that a tool works on, which an editor can follow."""

    path: str
    line: Tolerant[Uint32 | None] = None


class ToolCall(Model, tag_field="sessionUpdate", tag="tool_call"):
    """The start of a tool call."""

    tool_call_id: ToolCallId
    title: str
    kind: Tolerant[ToolKind | None] = None
    status: Tolerant[ToolCallStatus | None] = None
    content: Tolerant[ValidItems[ToolCallContent]] = []
    locations: Tolerant[ValidItems[ToolCallLocation]] = []
    raw_input: Tolerant[Json] = None
    raw_output: Tolerant[Json] = None
    name: Tolerant[str | None] = None

    def as_update(self, *, is_known: bool = False) -> updates.ToolCallProgress:
        """Return it in its public form. A call whose id `is_known` begins again: omitted fields are cleared."""
        return _patch(self, updates.ToolCallProgress, clears=is_known)

    @classmethod
    def reading(cls, tool_call_id: ToolCallId, path: str, *, title: str | None = None) -> ToolCall:
        """A file is being read."""
        return cls(tool_call_id, title or f"Read {path}", "read", "pending", locations=[ToolCallLocation(path)])

    @classmethod
    def editing(
        cls,
        tool_call_id: ToolCallId,
        path: str,
        new_text: str,
        old_text: str | None = None,
        *,
        title: str | None = None,
    ) -> ToolCall:
        """Return an update that reports a change of a file; the diff shows it."""
        diff, place = Diff(path, new_text, old_text), ToolCallLocation(path)
        return cls(tool_call_id, title or f"Edit {path}", "edit", "pending", [diff], [place])


class ToolCallUpdate(Model):
    """Changes to a tool call; an omitted field stays as it was, a list replaces the one before."""

    tool_call_id: ToolCallId
    title: Tolerant[str | None] = None
    kind: Tolerant[ToolKind | None] = None
    status: Tolerant[ToolCallStatus | None] = None
    content: Tolerant[ValidItems[ToolCallContent] | None] = None
    locations: Tolerant[ValidItems[ToolCallLocation] | None] = None
    raw_input: Tolerant[Json] = None
    raw_output: Tolerant[Json] = None
    name: Tolerant[str | None] = None

    def as_update(self, *, is_known: bool = False) -> updates.ToolCallUpdate:  # noqa: ARG002
        """Return it in its public form."""
        return _patch(self, updates.ToolCallUpdate)


def _patch(update: ToolCall | ToolCallUpdate, kind: type[_PatchT], *, clears: bool = False) -> _PatchT:
    fields = {name: getattr(update, name) for name in update.__class__.__struct_fields__}
    made = kind(**{name: value for name, value in fields.items() if clears or value is not None})
    return with_unknown_members(made, unknown_members(update))


class ToolCallProgress(ToolCallUpdate, tag_field="sessionUpdate", tag="tool_call_update"):
    """A `ToolCallUpdate` as a session update."""

    def as_update(self, *, is_known: bool = False) -> updates.ToolCallProgress:  # noqa: ARG002
        """Return it in its public form."""
        return _patch(self, updates.ToolCallProgress)


# Asking the user before doing something. Page: tool-calls, Requesting Permission.


PermissionOptionKind = Literal["allow_once", "allow_always", "reject_once", "reject_always"]

_USUAL_NAMES: dict[PermissionOptionKind, str] = {
    "allow_once": "Allow",
    "allow_always": "Always allow",
    "reject_once": "Reject",
    "reject_always": "Always reject",
}


class PermissionOption(Model):
    """One of the answers that the user can choose."""

    option_id: PermissionOptionId
    name: str
    kind: PermissionOptionKind

    @classmethod
    def of(cls, kind: PermissionOptionKind, name: str | None = None) -> PermissionOption:
        """The option of this kind, with its usual name and its kind as its id."""
        return cls(PermissionOptionId(kind), name or _USUAL_NAMES[kind], kind)


class CancelledPermissionOutcome(Shape, tag_field="outcome", tag="cancelled"):
    """The work was cancelled before the user answered."""


RequestPermissionOutcome: TypeAlias = Open[CancelledPermissionOutcome | SelectedPermissionOutcome]


class RequestPermissionResponse(Model):
    """The user's answer to a request for permission."""

    outcome: RequestPermissionOutcome

    @classmethod
    def selected(cls, option: PermissionOption | PermissionOptionId) -> RequestPermissionResponse:
        return cls(SelectedPermissionOutcome(option.option_id if isinstance(option, PermissionOption) else option))

    @classmethod
    def cancelled(cls) -> RequestPermissionResponse:
        return cls(CancelledPermissionOutcome())


class RequestPermissionRequest(Request[RequestPermissionResponse], method="session/request_permission"):
    """Ask the user for permission to do something."""

    session_id: SessionId
    tool_call: ToolCallUpdate
    options: list[PermissionOption]


# Subagents and messages between sessions. Other parts of updates are in `shared_updates`.


@needs("subagents")
class SubagentUpdate(updates.SubagentUpdate):
    """A subagent that this session started, or changes to it: an omitted field stays, `None` clears it."""

    __replaces_meta__ = True

    cwd: Patch[str] = UNSET
    additional_directories: Patch[list[str]] = UNSET


@needs("subagents")
class SessionMessage(updates.SessionMessage):
    """A message from one session to another, or changes to it: an omitted field stays, `None` clears it."""

    __replaces_meta__ = True


# Session updates: all reports of an agent while it works.
#
# Pages: prompt-turn, session-list (session info), session-usage; and those of the variants' own files.


class ConfigOptionUpdate(updates.ConfigOptionUpdate):
    """All config options of the session, with their present values."""

    config_options: Tolerant[ValidItems[SessionConfigOption]]  # type: ignore[assignment]


class SessionInfoUpdate(updates.SessionInfoUpdate):
    """Changes to the session's information: an omitted field stays, `None` clears it."""

    __replaces_meta__ = True


class UsageUpdate(updates.UsageUpdate):
    """The used part of the context."""

    cost: Tolerant[Cost | None] = None


@needs("session.compaction")
class CompactionUpdate(updates.CompactionUpdate):
    """The progress of shortening the context; needs `session.compaction`. An omitted field stays, `None` clears it."""

    __replaces_meta__ = True

    status: CompactionStatus


SessionUpdate: TypeAlias = Open[
    UserMessageChunk
    | AgentMessageChunk
    | AgentThoughtChunk
    | ToolCall
    | ToolCallProgress
    | Plan
    | PlanUpdate
    | PlanRemoved
    | AvailableCommandsUpdate
    | CurrentModeUpdate
    | ConfigOptionUpdate
    | SessionInfoUpdate
    | UsageUpdate
    | Notice
    | CompactionUpdate
    | CompactionSummaryChunk
    | SubagentUpdate
    | SessionMessage
    | SessionMessageChunk
    | CursorUpdate
    | PromptSuggestionsUpdate
]
"""One event in a session."""


class SessionNotification(Notification, method="session/update", stream=True):
    """A session update, with the id of its session."""

    session_id: SessionId
    update: SessionUpdate


# Elicitation: asking the user for values in a form, or to visit a URL. Page: elicitation.


StringFormat = Literal["email", "uri", "date", "date-time"]


class StringPropertySchema(Model, tag_field="type", tag="string"):
    """A text field of a form; with `enum` or `one_of`, a choice of one value."""

    title: Tolerant[str | None] = None
    description: Tolerant[str | None] = None
    min_length: Uint32 | None = None
    max_length: Uint32 | None = None
    pattern: str | None = None
    format: StringFormat | None = None
    default: Tolerant[str | None] = None
    enum: list[str] | None = None
    one_of: list[EnumOption] | None = None


ElicitationPropertySchema: TypeAlias = Open[
    StringPropertySchema
    | NumberPropertySchema
    | IntegerPropertySchema
    | BooleanPropertySchema
    | MultiSelectPropertySchema
]


class ElicitationSchema(Model, tag_field="type", tag="object"):
    """A flat form: named fields, each of a simple type."""

    properties: dict[str, ElicitationPropertySchema] = {}
    required: list[str] | None = None
    title: Tolerant[str | None] = None
    description: Tolerant[str | None] = None


ElicitationContentValue: TypeAlias = Annotated[str | Int64 | float | bool | list[str], "ElicitationContentValue"]


class ElicitationAcceptAction(Model, tag_field="action", tag="accept"):
    """The user filled in the form, or agreed to visit the URL."""

    content: dict[str, ElicitationContentValue] | None = None


CreateElicitationResponse: TypeAlias = Open[
    ElicitationAcceptAction | ElicitationDeclineAction | ElicitationCancelAction
]


class CreateElicitationRequest(Request[CreateElicitationResponse], method="elicitation/create"):
    """Ask the user for information, in one of the modes below.

    It belongs to a session (and perhaps to one of its tool calls), or to a request that the client made.
    """

    message: str
    session_id: SessionId | None = field(default=None)
    tool_call_id: Tolerant[ToolCallId | None] = None
    request_id: RequestId | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.session_id is None and self.request_id is UNSET:
            raise ValueError("sessionId or requestId is required")


class ElicitationFormMode(
    CreateElicitationRequest, kw_only=True, tag_field="mode", tag="form", needs="elicitation.form"
):
    """Ask the user to fill in a form; for clients with `elicitation.form`."""

    requested_schema: ElicitationSchema


class ElicitationUrlMode(CreateElicitationRequest, kw_only=True, tag_field="mode", tag="url", needs="elicitation.url"):
    """Ask the user to visit a URL, so that secrets stay between the user and that site; needs `elicitation.url`."""

    elicitation_id: ElicitationId
    url: str


ElicitationMode: TypeAlias = Open[ElicitationFormMode | ElicitationUrlMode]
CreateElicitationRequest.__params__ = ElicitationMode


# Proxies between a client and an agent: proposed (proxy-chains).


@unstable
class InitializeProxyResponse(InitializeResponse):
    """The result of a proxy's initialization, like that of `initialize`."""


class InitializeProxyRequest(  # pyright: ignore[reportGeneralTypeIssues]: the result differs by name only
    InitializeRequest, Request[InitializeProxyResponse], method="proxy/initialize", unstable=True
):
    """Initialize a component as a proxy, like `initialize`."""


# Next edit suggestions


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if not name.startswith("_"):
            from accord.schema import v1_nes

            if (found := vars(v1_nes).get(name)) is not None:
                return found
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    from accord.schema import v1_nes

    return public_names(globals(), vars(v1_nes))
