"""Version 2 of the protocol: its messages and their parts, by topic, as in the specification.

Each topic begins with its differences from version 1; common types are in `v1_and_v2`.

Upserts: updates that create the thing they name, or change the fields that they contain.

In a patch field, an omitted value, `null` and a value are three things: unchanged, cleared, replaced. A list is
replaced whole, and an empty one clears like `null`. Only `_meta` is patched key by key: an omitted key stays, `null`
removes it.

| upsert | named by | patch fields |
|---|---|---|
| `UserMessage`, `AgentMessage`, `AgentThought` | `messageId` | `content`, `_meta` |
| `ToolCallUpdate` | `toolCallId` | `title`, `kind`, `status`, `content`, `locations`, `rawInput`, `rawOutput`, `name`, `capabilities`, `_meta` |
| `TerminalUpdate` | `terminalId` | `command`, `cwd`, `output`, `exitStatus`, `size`, `capabilities`, `_meta` |
| `CompactionUpdate` | `compactionId` | `status`, `summary`, `error`, `_meta` |
| `SubagentUpdate` | `sessionId` | `title`, `description`, `capabilities`, `state`, `cwd`, `additionalDirectories`, `_meta` |
| `SessionMessage` | `messageId` | `senderSessionId`, `recipientSessionId`, `senderMessageId`, `recipientMessageId`, `content`, `_meta` |
| `CursorUpdate` | `cursorId` | `capabilities`, `_meta` |
| `SessionInfoUpdate` | the session | `title`, `updatedAt`, `_meta` |
| `UsageUpdate` | the session | `cost` |
"""

# pyright: reportGeneralTypeIssues=false
# It imports UNSET, which is Final.

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, NewType, TypeAlias

from msgspec import UNSET, Meta, UnsetType

from accord.schema import shared_updates as updates, v1
from accord.schema.base import (
    Int64,
    Json,
    Model,
    Notification,
    NullAsDefault,
    Open,
    Patch,
    Request,
    Tolerant,
    Uint32,
    Unstable,
    ValidItems,
    choice,
    every,
    public_names,
    second_tag,
    unstable,
    words,
)
from accord.schema.content import *
from accord.schema.shared_updates import (
    AbsolutePath as AbsolutePath,
    AgentMessage as AgentMessage,
    AgentMessageAnchor as AgentMessageAnchor,
    AgentThought as AgentThought,
    AgentThoughtAnchor as AgentThoughtAnchor,
    AvailableCommand as AvailableCommand,
    AvailableCommandInput as AvailableCommandInput,
    AvailableCommandsUpdate as AvailableCommandsUpdate,
    BackgroundSubagent as BackgroundSubagent,
    BackgroundTerminal as BackgroundTerminal,
    BackgroundToolCall as BackgroundToolCall,
    BackgroundWork as BackgroundWork,
    Command as Command,
    CompactionId as CompactionId,
    CompactionStatus as CompactionStatus,
    CompactionSummaryChunk as CompactionSummaryChunk,
    CompactionUpdate as CompactionUpdate,
    ConfigOptionUpdate as ConfigOptionUpdate,
    Content as Content,
    Cost as Cost,
    CursorAnchor as CursorAnchor,
    CursorAnchorPosition as CursorAnchorPosition,
    CursorCapabilities as CursorCapabilities,
    CursorCompactionAnchor as CursorCompactionAnchor,
    CursorForkCapabilities as CursorForkCapabilities,
    CursorId as CursorId,
    CursorMessageAnchor as CursorMessageAnchor,
    CursorToolCallAnchor as CursorToolCallAnchor,
    CursorUpdate as CursorUpdate,
    Diff as Diff,
    DiffAdd as DiffAdd,
    DiffChange as DiffChange,
    DiffCopy as DiffCopy,
    DiffDelete as DiffDelete,
    DiffFileType as DiffFileType,
    DiffModify as DiffModify,
    DiffMove as DiffMove,
    DiffPatch as DiffPatch,
    DiffPatchFormat as DiffPatchFormat,
    DiffPathChange as DiffPathChange,
    DiffPathPairChange as DiffPathPairChange,
    ErrorCode as ErrorCode,
    MessageId as MessageId,
    Notice as Notice,
    NoticeSeverity as NoticeSeverity,
    PlanEntry as PlanEntry,
    PlanEntryPriority as PlanEntryPriority,
    PlanEntryStatus as PlanEntryStatus,
    PlanId as PlanId,
    PlanItems as PlanItems,
    PlanMarkdown as PlanMarkdown,
    PlanRemoved as PlanRemoved,
    PlanUpdate as PlanUpdate,
    PlanUpdateContent as PlanUpdateContent,
    PromptSuggestion as PromptSuggestion,
    PromptSuggestionsUpdate as PromptSuggestionsUpdate,
    ReplayComplete as ReplayComplete,
    SessionCancelCapabilities as SessionCancelCapabilities,
    SessionConfigBoolean as SessionConfigBoolean,
    SessionConfigGroupId as SessionConfigGroupId,
    SessionConfigId as SessionConfigId,
    SessionConfigOption as SessionConfigOption,
    SessionConfigOptionCategory as SessionConfigOptionCategory,
    SessionConfigSelect as SessionConfigSelect,
    SessionConfigSelectGroup as SessionConfigSelectGroup,
    SessionConfigSelectOption as SessionConfigSelectOption,
    SessionConfigSelectOptions as SessionConfigSelectOptions,
    SessionConfigValueId as SessionConfigValueId,
    SessionId as SessionId,
    SessionInfoUpdate as SessionInfoUpdate,
    SessionMessage as SessionMessage,
    SessionMessageAnchor as SessionMessageAnchor,
    SessionMessageChunk as SessionMessageChunk,
    SessionReference as SessionReference,
    Skill as Skill,
    SubagentSessionCapabilities as SubagentSessionCapabilities,
    Terminal as Terminal,
    TerminalCancelCapabilities as TerminalCancelCapabilities,
    TerminalCapabilities as TerminalCapabilities,
    TerminalExitStatus as TerminalExitStatus,
    TerminalId as TerminalId,
    TerminalOutput as TerminalOutput,
    TerminalOutputChunk as TerminalOutputChunk,
    TerminalSize as TerminalSize,
    TerminalUpdate as TerminalUpdate,
    TextCommandInput as TextCommandInput,
    ToolCallCancelCapabilities as ToolCallCancelCapabilities,
    ToolCallCapabilities as ToolCallCapabilities,
    ToolCallContent as ToolCallContent,
    ToolCallContentChunk as ToolCallContentChunk,
    ToolCallId as ToolCallId,
    ToolCallLocation as ToolCallLocation,
    ToolCallProgress as ToolCallProgress,
    ToolCallStatus as ToolCallStatus,
    ToolCallUpdate as ToolCallUpdate,
    ToolKind as ToolKind,
    Usage as Usage,
    UsageUpdate as UsageUpdate,
    UserMessage as UserMessage,
    UserMessageAnchor as UserMessageAnchor,
)
from accord.schema.v1_and_v2 import *

# Parts of the protocol itself rather than of a topic: request ids, absolute paths, errors and their data.
#
# Differs from version 1: a request id is never `null`; the data of two errors have a shape.


RequestId: TypeAlias = Annotated[Int64 | str, "RequestId"]
"""Identifies a call until it is answered. Type-exact: `"3"` is not `3`."""


class UnsupportedProtocolVersionErrorData(Model):
    """The data of error -32022: the requested version and the supported ones."""

    requested: ProtocolVersion
    supported: list[ProtocolVersion]


class SessionNotFoundErrorData(Model):
    """The data of error -32002: the session that does not exist or is not active."""

    session_id: SessionId


def _shape_of_error_data(value: Json) -> Any:
    """Return the value in a known shape, if it fits it without loss."""
    match value:
        case {"requested": requested, "supported": [*supported], **rest} if _is_meta(rest):
            return UnsupportedProtocolVersionErrorData if all(map(_is_version, [requested, *supported])) else Any
        case {"sessionId": str(), **rest} if _is_meta(rest):
            return SessionNotFoundErrorData
        case _:
            return Any


def _is_version(value: Json) -> bool:
    return type(value) is int and 0 <= value < 2**16


def _is_meta(rest: dict[Any, Json]) -> bool:
    return rest.keys() <= {"_meta"} and isinstance(rest.get("_meta", {}), dict)


if TYPE_CHECKING:
    ErrorData: TypeAlias = UnsupportedProtocolVersionErrorData | SessionNotFoundErrorData | Json
else:
    ErrorData = choice(
        "ErrorData",
        _shape_of_error_data,
        UnsupportedProtocolVersionErrorData,
        SessionNotFoundErrorData,
        Any,
    )


class Error(updates.Error):
    """The error of an answer, or of a session that stopped on it."""

    data: Tolerant[ErrorData | None] = None


class CancelRequestNotification(Notification, method="$/cancel_request"):
    """Cancel a request: the sender no longer needs its answer."""

    request_id: RequestId


# Session config options: a user's choices about a session, including its mode.
#
# Differs from version 1: options and groups are named by `configId` and `groupId`, and modes are options of the
# category `mode`.


class SetSessionConfigOptionResponse(Model):
    """All config options after the change: changing one may change others."""

    config_options: ValidItems[SessionConfigOption]


class SetSessionConfigOptionRequest(Request[SetSessionConfigOptionResponse], method="session/set_config_option"):
    """Set a config option, in one of the forms below."""

    session_id: SessionId
    config_id: SessionConfigId


class SetSessionConfigOptionId(SetSessionConfigOptionRequest, tag_field="type", tag="id"):
    """Set a select option to one of its values."""

    value: SessionConfigValueId


class SetSessionConfigOptionBoolean(SetSessionConfigOptionRequest, tag_field="type", tag="boolean"):
    """Set an on-off option."""

    value: bool


SetSessionConfigOption: TypeAlias = Annotated[
    Open[SetSessionConfigOptionId | SetSessionConfigOptionBoolean], every("sessionId", "configId")
]
SetSessionConfigOptionRequest.__params__ = SetSessionConfigOption


@unstable
class InitialSessionConfigValue(Model, tag_field="type", tag="id"):
    """The value that a select option has from the start of a session."""

    config_id: SessionConfigId
    value: SessionConfigValueId


InitialSessionConfigOption: TypeAlias = Annotated[
    Open[InitialSessionConfigValue | InitialSessionConfigBoolean], every("configId")
]


# Authentication: how a user proves who they are.
#
# Differs from version 1: the methods are `auth/login` and `auth/logout`, which every agent with authentication methods
# has; each method says its `type`, and has a `methodId`.


class AuthMethodAgent(Model, tag_field="type", tag="agent"):
    """A login method that the agent performs itself."""

    method_id: AuthMethodId
    name: str
    description: Tolerant[str | None] = None


class AuthMethodTerminal(Model, tag_field="type", tag="terminal"):
    """A login method at a terminal: the client runs the agent there with these arguments, without `auth/login`."""

    method_id: AuthMethodId
    name: str
    description: Tolerant[str | None] = None
    args: NullAsDefault[list[str]] = []
    env: NullAsDefault[list[EnvVariable]] = []


AuthMethod: TypeAlias = Annotated[Open[AuthMethodAgent | AuthMethodTerminal], every("methodId", "name")]


class LoginAuthResponse(Model):
    """The result of `auth/login`: the user is logged in."""


class LoginAuthRequest(Request[LoginAuthResponse], method="auth/login"):
    """Log in with one of the agent's methods."""

    method_id: AuthMethodId


class LogoutAuthResponse(Model):
    """The result of `auth/logout`: the user is logged out."""


class LogoutAuthRequest(Request[LogoutAuthResponse], method="auth/logout"):
    """Log out; available wherever the agent has authentication methods."""


class AgentAuthCapabilities(Model):
    """The agent's capabilities for logins, beyond login and logout."""

    status: Unstable[Tolerant[AuthStatusCapabilities | None]] = None


class TerminalAuthCapabilities(Model):
    """Declares that the client can run the agent in a terminal for a login."""


class ClientAuthCapabilities(Model):
    """The client's capabilities for logins."""

    terminal: Tolerant[TerminalAuthCapabilities | None] = None


# The first call of a connection: versions, capabilities, names. Proposals: overview, required-session-methods.
#
# Differs from version 1: both sides have `capabilities` and, always, `info`; a capability is an object or absent;
# `session` covers the methods that every agent with sessions has.


@unstable
class CommandsSkillCapabilities(Model):
    """Declares that the client shows skills among the commands, and can name one in a prompt."""


@unstable
class CommandsCapabilities(Model):
    """The kinds of command that the client shows besides slash commands."""

    skill: Tolerant[CommandsSkillCapabilities | None] = None


@unstable
class ClientSessionCapabilities(Model):
    """The optional parts of a session that the client shows."""

    prompt_suggestions: Tolerant[PromptSuggestionsCapabilities | None] = None
    commands: Tolerant[CommandsCapabilities | None] = None


class ClientCapabilities(Model):
    """The optional features that the client shows."""

    auth: Tolerant[ClientAuthCapabilities | None] = None
    elicitation: Tolerant[ElicitationCapabilities | None] = None
    session: Unstable[Tolerant[ClientSessionCapabilities | None]] = None


# The agent's capabilities


class PromptImageCapabilities(Model):
    """Declares that a prompt may hold images."""


class PromptAudioCapabilities(Model):
    """Declares that a prompt may hold sounds."""


class PromptEmbeddedContextCapabilities(Model):
    """Declares that a prompt may hold resources with their contents."""


@unstable
class PromptSkillInlineCapabilities(Model):
    """Declares that a prompt may name several skills, at any place."""


@unstable
class PromptSkillCapabilities(Model):
    """Declares that a prompt may name a skill, as its first block."""

    inline: Tolerant[PromptSkillInlineCapabilities | None] = None


class PromptCapabilities(Model):
    """The content that a prompt may hold besides text and resource links."""

    image: Tolerant[PromptImageCapabilities | None] = None
    audio: Tolerant[PromptAudioCapabilities | None] = None
    embedded_context: Tolerant[PromptEmbeddedContextCapabilities | None] = None
    skill: Unstable[Tolerant[PromptSkillCapabilities | None]] = None


class McpStdioCapabilities(Model):
    """Declares that the agent can start MCP servers as processes."""


class McpHttpCapabilities(Model):
    """Declares that the agent can reach MCP servers over HTTP."""


@unstable
class McpAcpCapabilities(Model):
    """Declares that the agent can reach MCP servers of the client over this connection."""


class McpCapabilities(Model):
    """The MCP transports that the agent supports."""

    stdio: Tolerant[McpStdioCapabilities | None] = None
    http: Tolerant[McpHttpCapabilities | None] = None
    acp: Unstable[Tolerant[McpAcpCapabilities | None]] = None


class SessionCapabilities(Model):
    """The session methods that the agent answers besides the required ones."""

    prompt: Tolerant[PromptCapabilities | None] = None
    mcp: Tolerant[McpCapabilities | None] = None
    delete: Tolerant[SessionDeleteCapabilities | None] = None
    additional_directories: Tolerant[SessionAdditionalDirectoriesCapabilities | None] = None
    fork: Unstable[Tolerant[SessionForkCapabilities | None]] = None
    archive: Unstable[Tolerant[SessionArchiveCapabilities | None]] = None
    status: Unstable[Tolerant[SessionStatusCapabilities | None]] = None
    title: Unstable[Tolerant[SessionTitleCapabilities | None]] = None
    options: Unstable[Tolerant[SessionOptionsCapabilities | None]] = None
    system_prompt: Tolerant[SessionSystemPromptCapabilities | None] = None


class AgentCapabilities(Model):
    """The methods and features that the agent offers."""

    session: Tolerant[SessionCapabilities | None] = None
    auth: Tolerant[AgentAuthCapabilities | None] = None
    providers: Unstable[Tolerant[ProvidersCapabilities | None]] = None


class InitializeResponse(Model):
    """The result of `initialize`: the negotiated protocol version, the agent's name, and its capabilities."""

    protocol_version: ProtocolVersion
    info: Implementation
    capabilities: Tolerant[AgentCapabilities] = AgentCapabilities()
    auth_methods: Tolerant[ValidItems[AuthMethod]] = []


class InitializeRequest(Request[InitializeResponse], method="initialize", handshake=True):
    """Open the connection: the newest protocol version of the client, its name, and its capabilities."""

    protocol_version: ProtocolVersion
    info: Implementation
    capabilities: Tolerant[ClientCapabilities] = ClientCapabilities()


# MCP servers that a client gives to a session.
#
# Differs from version 1: every server has a `type`, including `stdio`; server-sent events are gone.


class McpServerStdio(Model, tag_field="type", tag="stdio"):
    """An MCP server that the agent starts as a process; for agents with `session.mcp.stdio`."""

    name: str
    command: AbsolutePath
    args: NullAsDefault[list[str]] = []
    env: NullAsDefault[list[EnvVariable]] = []


class McpServerHttp(Model, tag_field="type", tag="http"):
    """An MCP server over streamable HTTP; for agents with `session.mcp.http`."""

    name: str
    url: str
    headers: NullAsDefault[list[HttpHeader]] = []


McpServer: TypeAlias = Open[McpServerStdio | McpServerHttp | McpServerAcp]


# Messages as they stream. Differs from version 1: every message has an id, which the agent chooses.


class ContentChunk(updates.ContentChunk):
    """Content to append to the message with this `message_id`."""

    message_id: MessageId


class UserMessageChunk(ContentChunk, updates.UserMessageChunk):
    """Part of a user's message."""


class AgentMessageChunk(ContentChunk, updates.AgentMessageChunk):
    """Part of a message of the agent."""


class AgentThoughtChunk(ContentChunk, updates.AgentThoughtChunk):
    """Part of a thought of the agent."""


# Terminals of an agent: a client may only ask to cancel a command, if the terminal offers that.


class CancelTerminalResponse(Model):
    """The result of `terminal/cancel`; the exit status follows when the command has ended."""


class CancelTerminalRequest(Request[CancelTerminalResponse], method="terminal/cancel"):
    """End a terminal's command; needs the terminal's `capabilities.cancel`."""

    session_id: SessionId
    terminal_id: TerminalId


# A session's activity: at work, idle, waiting for its user; and its background work. Proposal: prompt.
#
# New in version 2. An idle update ends a turn and has the reason; in version 1 the answer to the prompt does.


# In all of these, `background` is the present background work; None says nothing about it, an empty list: nothing.


class RunningStateUpdate(updates.RunningStateUpdate):
    """The session is at work, on a prompt or on its own."""

    background: Tolerant[list[BackgroundWork] | None] = None


class IdleStateUpdate(updates.IdleStateUpdate):
    """The session is idle; `stop_reason` is the reason why work ended, and `error` comes with the reason `error`.

    Other words are kept; further members that come with them are not.
    """

    error: Tolerant[Error | None] = None
    background: Tolerant[list[BackgroundWork] | None] = None


class RequiresActionStateUpdate(updates.RequiresActionStateUpdate):
    """The session cannot continue without the user."""

    background: Tolerant[list[BackgroundWork] | None] = None


class UnknownStateUpdate(updates.UnknownStateUpdate):
    """The agent does not know the session's state."""

    background: Tolerant[list[BackgroundWork] | None] = None


StateUpdate: TypeAlias = Open[RunningStateUpdate | IdleStateUpdate | RequiresActionStateUpdate | UnknownStateUpdate]
"""A snapshot: it replaces the one before."""


class SessionStateUpdate(updates.SessionStateUpdate):
    """A `StateUpdate` as a session update, all of its variants in one."""

    state: Annotated[Literal["running", "idle", "requires_action", "unknown"], second_tag(StateUpdate)]
    error: Tolerant[Error | None] = None


# Cancelling a tool call that offers it.


class CancelToolCallResponse(Model):
    """The result of `tool_call/cancel`; the status follows when the tool call has ended."""


class CancelToolCallRequest(Request[CancelToolCallResponse], method="tool_call/cancel"):
    """Cancel one tool call; needs the tool call's `capabilities.cancel`."""

    session_id: SessionId
    tool_call_id: ToolCallId


# Sessions: starting, finding, resuming, ending. Proposals: required-session-methods, session-resume-replay.
#
# Differs from version 1: `session/load` is `session/resume` with `replay_from`; there are no modes, but config
# options; answers may include the first commands.


SessionListCursor = NewType("SessionListCursor", str)


class NewSessionResponse(Model):
    """The result of `session/new`: the id of the session, which is idle."""

    session_id: SessionId
    config_options: Tolerant[ValidItems[SessionConfigOption]] = []
    available_commands: Tolerant[ValidItems[AvailableCommand]] = []


class NewSessionRequest(Request[NewSessionResponse], method="session/new"):
    """Start a session in a folder."""

    cwd: AbsolutePath
    mcp_servers: NullAsDefault[list[McpServer]] = []
    additional_directories: NullAsDefault[list[AbsolutePath]] = []
    system_prompt: SystemPrompt | None = None
    config_options: Unstable[NullAsDefault[list[InitialSessionConfigOption]]] = []


class ReplayFromStart(Model, tag_field="type", tag="start"):
    """Replay the whole history that the agent keeps."""


ReplayFrom: TypeAlias = Open[ReplayFromStart]
"""Where a replay begins, that place included."""


class ResumeSessionResponse(Model):
    """The result of `session/resume`, sent after the requested replay and a state update."""

    config_options: Tolerant[ValidItems[SessionConfigOption]] = []
    available_commands: Tolerant[ValidItems[AvailableCommand]] = []


class ResumeSessionRequest(Request[ResumeSessionResponse], method="session/resume"):
    """Reopen a session, with or without a replay of its history as updates."""

    session_id: SessionId
    cwd: AbsolutePath
    additional_directories: NullAsDefault[list[AbsolutePath]] = []
    mcp_servers: NullAsDefault[list[McpServer]] = []
    replay_from: ReplayFrom | None = None
    system_prompt: SystemPrompt | None = None
    config_options: Unstable[NullAsDefault[list[InitialSessionConfigOption]]] = []


@unstable
class ForkSessionResponse(NewSessionResponse):
    """The result of `session/fork`: the id of the copy."""


class ForkSessionRequest(Request[ForkSessionResponse], method="session/fork", unstable=True):
    """Copy a session to try another course; needs `session.fork`."""

    session_id: SessionId
    cwd: AbsolutePath
    additional_directories: NullAsDefault[list[AbsolutePath]] = []
    mcp_servers: NullAsDefault[list[McpServer]] = []
    system_prompt: SystemPrompt | None = None
    config_options: Unstable[NullAsDefault[list[InitialSessionConfigOption]]] = []
    cursor_id: Unstable[CursorId | None] = None


@unstable
class SessionOptionsResponse(ResumeSessionResponse):
    """The result of `session/options`: the options and commands with which the session would start."""


class SessionOptionsRequest(Request[SessionOptionsResponse], method="session/options", unstable=True):
    """Ask for the options of a session before it is opened, or reopened; needs `session.options`."""

    cwd: AbsolutePath
    additional_directories: NullAsDefault[list[AbsolutePath]] = []
    session_id: SessionId | None = None


class SessionInfo(Model):
    """An entry in the list of sessions."""

    session_id: SessionId
    cwd: AbsolutePath
    additional_directories: NullAsDefault[list[AbsolutePath]] = []
    title: Tolerant[str | None] = None
    updated_at: Tolerant[str | None] = None  # RFC 3339
    archived: Unstable[Tolerant[bool | None]] = None


class ListSessionsResponse(Model):
    """One page of sessions; `next_cursor`, even an empty one, fetches the next."""

    sessions: Tolerant[ValidItems[SessionInfo]]
    next_cursor: SessionListCursor | None = None


class ListSessionsRequest(Request[ListSessionsResponse], method="session/list"):
    """List the sessions that the agent knows."""

    cwd: AbsolutePath | None = None
    cursor: SessionListCursor | None = None
    archived: Unstable[SessionArchiveFilter | None] = None


@unstable
class SessionStatusResponse(Model):
    """The result of `session/status`: whether a session is open or only saved, and its state."""

    status: SessionStatus
    state: Tolerant[StateUpdate | None] = None


class SessionStatusRequest(Request[SessionStatusResponse], method="session/status", unstable=True):
    """Ask for the status of a session; needs `session.status`."""

    session_id: SessionId


# Prompting and cancelling. Proposal: prompt.
#
# Differs from version 1: the answer comes when the message has its place in the conversation, not when the work is
# done; an idle `StateUpdate` reports that.


IdempotencyKey: TypeAlias = Annotated[Annotated[str, Meta(min_length=1, max_length=255)], "IdempotencyKey"]
"""A client's key for one submission of a prompt, the same for each retry, so that the message is inserted once."""


class PromptResponse(Model):
    """The result of `session/prompt`: the id under which the user's message is in the conversation."""

    message_id: MessageId


class PromptRequest(Request[PromptResponse], method="session/prompt", patient=True):
    """Send a message of the user; the answer comes when it has its place, which may be after other work."""

    session_id: SessionId
    prompt: list[ContentBlock]
    idempotency_key: IdempotencyKey | None = None

    @classmethod
    def of(cls, session_id: SessionId, *content: str | ContentBlock) -> PromptRequest:
        return cls(session_id, [as_block(block) for block in content])


class CancelSessionNotification(Notification, method="session/cancel", immediate=True):
    """Stop the session's work and its waiting prompts; background work continues."""

    session_id: SessionId


# Asking the user before doing something. Proposal: permission-requests.
#
# Differs from version 1: the question has its own title, and its subject is an open union, or omitted.


PermissionOptionKind: TypeAlias = Annotated[str, words("allow_once", "allow_always", "reject_once", "reject_always")]


class PermissionOption(Model):
    """One of the answers that the user can choose."""

    option_id: PermissionOptionId
    name: str
    kind: PermissionOptionKind

    @classmethod
    def of(cls, kind: v1.PermissionOptionKind, name: str | None = None) -> PermissionOption:
        """The option of this kind, with its usual name and its kind as its id."""
        usual = v1.PermissionOption.of(kind, name)
        return cls(usual.option_id, usual.name, kind)


class CancelledPermissionOutcome(Model, tag_field="outcome", tag="cancelled"):
    """The work was cancelled before the user answered."""


RequestPermissionOutcome: TypeAlias = Open[CancelledPermissionOutcome | SelectedPermissionOutcome]
"""An unknown outcome is not an approval."""


class RequestPermissionResponse(Model):
    """The user's answer to a request for permission."""

    outcome: RequestPermissionOutcome

    @classmethod
    def selected(cls, option: PermissionOption | PermissionOptionId) -> RequestPermissionResponse:
        return cls(SelectedPermissionOutcome(option.option_id if isinstance(option, PermissionOption) else option))

    @classmethod
    def cancelled(cls) -> RequestPermissionResponse:
        return cls(CancelledPermissionOutcome())


class ToolCallPermissionSubject(Model, tag_field="type", tag="tool_call"):
    """A question about a tool call, which the client applies like any of its updates."""

    tool_call: ToolCallUpdate


class CommandPermissionSubject(Model, tag_field="type", tag="command"):
    """A question about a command that the agent wants to run."""

    command: str
    cwd: AbsolutePath
    tool_call_id: Tolerant[ToolCallId | None] = None
    terminal_id: Tolerant[TerminalId | None] = None


RequestPermissionSubject: TypeAlias = Open[ToolCallPermissionSubject | CommandPermissionSubject]


class RequestPermissionRequest(Request[RequestPermissionResponse], method="session/request_permission"):
    """Ask the user for permission to do something."""

    session_id: SessionId
    title: str
    options: list[PermissionOption]
    description: Tolerant[str | None] = None
    subject: RequestPermissionSubject | None = None


# Elicitation: asking the user for values in a form, or to visit a URL.
#
# Differs from version 1: formats and values are open, a form always has properties, a request id is never `null`.


StringFormat: TypeAlias = Annotated[str, words("email", "uri", "date", "date-time")]


class StringPropertySchema(Model, tag_field="type", tag="string"):
    """A text field of a form; with `enum` or `one_of`, a choice of one value."""

    title: Tolerant[str | None] = None
    description: Tolerant[str | None] = None
    min_length: Uint32 | None = None
    max_length: Uint32 | None = None
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

    properties: dict[str, ElicitationPropertySchema]
    required: list[str] | None = None
    title: Tolerant[str | None] = None
    description: Tolerant[str | None] = None


ElicitationContentValue: TypeAlias = Annotated[str | Int64 | float | bool | list[str] | Json, "ElicitationContentValue"]


class ElicitationAcceptAction(Model, tag_field="action", tag="accept"):
    """The user filled in the form, or agreed to visit the URL."""

    content: dict[str, ElicitationContentValue] | None = None


CreateElicitationResponse: TypeAlias = Open[
    ElicitationAcceptAction | ElicitationDeclineAction | ElicitationCancelAction
]
"""An unknown action means the same as cancel."""


class CreateElicitationRequest(Request[CreateElicitationResponse], method="elicitation/create"):
    """Ask the user for information, in one of the modes below.

    It belongs to a session (and perhaps to one of its tool calls), or to a request that the client made.
    """

    message: str
    session_id: SessionId | None = None
    tool_call_id: Tolerant[ToolCallId | None] = None
    request_id: RequestId | UnsetType = UNSET

    def __post_init__(self) -> None:
        if (self.session_id is None) == (self.request_id is UNSET):
            raise ValueError("exactly one of sessionId and requestId is required")


class ElicitationFormMode(CreateElicitationRequest, kw_only=True, tag_field="mode", tag="form"):
    """Ask the user to fill in a form; for clients with `elicitation.form`."""

    requested_schema: ElicitationSchema


class ElicitationUrlMode(CreateElicitationRequest, kw_only=True, tag_field="mode", tag="url"):
    """Ask the user to visit a URL, so that secrets stay between the user and that site; needs `elicitation.url`."""

    elicitation_id: ElicitationId
    url: str


ElicitationMode: TypeAlias = Annotated[Open[ElicitationFormMode | ElicitationUrlMode], every("message")]
CreateElicitationRequest.__params__ = ElicitationMode


# Subagents and messages between sessions.
#
# The same as in version 1, but for the state, and that no client has to declare support.


class SubagentUpdate(updates.SubagentUpdate):
    """A subagent that this session started, or changes to it."""

    state: Tolerant[Patch[StateUpdate]] = UNSET


# Session updates: all reports of an agent, at any time.
#
# Differs from version 1: there are also whole messages, states and terminals; `tool_call`, `plan` and
# `current_mode_update` are gone.


SessionUpdate: TypeAlias = Open[
    UserMessageChunk
    | UserMessage
    | AgentMessageChunk
    | AgentMessage
    | AgentThoughtChunk
    | AgentThought
    | SessionStateUpdate
    | ToolCallProgress
    | ToolCallContentChunk
    | TerminalUpdate
    | TerminalOutputChunk
    | PlanUpdate
    | PlanRemoved
    | AvailableCommandsUpdate
    | ConfigOptionUpdate
    | SessionInfoUpdate
    | UsageUpdate
    | Notice
    | CompactionUpdate
    | CompactionSummaryChunk
    | SubagentUpdate
    | SessionMessage
    | SessionMessageChunk
    | ReplayComplete
    | CursorUpdate
    | PromptSuggestionsUpdate
]
"""One event in a session."""


class UpdateSessionNotification(Notification, method="session/update", stream=True):
    """A session update, with the id of its session."""

    session_id: SessionId
    update: SessionUpdate


# Proxies between a client and an agent: proposed (proxy-chains).
#
# Differs from version 1 only as `initialize` does.


@unstable
class InitializeProxyResponse(InitializeResponse):
    """The result of a proxy's initialization, like that of `initialize`."""


class InitializeProxyRequest(  # pyright: ignore[reportGeneralTypeIssues]: the result differs by name only
    InitializeRequest, Request[InitializeProxyResponse], method="proxy/initialize", unstable=True
):
    """Initialize a component as a proxy, like `initialize`."""


def __dir__() -> list[str]:
    return public_names(globals())
