"""Values of version 1 in version 2, and back, as far as the proposals say how.

    to_v2(value)                  to_v1(value)                  all_to_v1(value)
      a value of version 1          a value of version 2          the same, as a list: a whole message is a chunk for
      in version 2                  in version 1                  each block, a diff of two files is two diffs

Pure: each value is looked at by itself. What the other version cannot say is refused with a `ConversionError` that
names it; nothing is dropped in silence. A value that is not of a version (a string, a user's own message, an
`Unknown`) is the same in both, but an `Unknown` does not take on a meaning there.

**Promised.** `to_v1(to_v2(value)) == value`, wherever `to_v2` accepts the value, but for these:

| of version 1 | comes back as |
|---|---|
| `ToolCall` | `ToolCallProgress`: version 2 has one upsert for both |
| `LoadSessionResponse` | `ResumeSessionResponse`, which is the same on the wire |
| `PlanUpdate` of the plan `main` | `Plan` |
| `modes` of a session | gone where there were config options, which are the same in newer words; else an option |
| empty `config_options` of a session | None |
| `McpCapabilities.sse`, `nes`, `position_encoding`, `auth.logout` without methods | not offered |
| `ClientCapabilities` | without files and terminals; with what every client of version 2 shows |
| a stop reason or word that nobody knew | refused |

**Needs context**, which a caller adds to the value first, or keeps:

| value | what it needs |
|---|---|
| message chunks without `message_id` | an id: version 2 names every message |
| `InitializeRequest` and its answer | `client_info`, `agent_info`; the version that is spoken there |
| `AgentCapabilities` of version 1 | all four of load, list, resume and close; and `auth.logout`, if there are auth methods |
| `RequestPermissionRequest` | the title of its tool call, if it says none |
| `SetSessionModeRequest`, `CurrentModeUpdate` | which config option is the mode, and all options |
| `PromptResponse` of version 1 | is an idle state update; the answer of version 2 went out long before, with a message id |
| state updates of version 2 | the prompt that is answered: idle is its answer (or its error), the others are not said |
| whole messages | that no chunk of the message came before: version 1 cannot replace |
| `ToolCallContentChunk` | the content so far: version 1 replaces it |
| clearing a title, a name or raw values | a whole new tool call: version 1 has no null there |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import UNSET

from accord.schema import codec, git_patch, v1, v2
from accord.schema.base import Shape
from accord.schema.carrying import Several, Way

MAIN_PLAN = v1.PlanId("main")
"""plan-variants: the id of version 1's one plan."""

MODE_OPTION = v1.SessionConfigId("mode")
"""session-config-options: the id and the category of the option that stands for modes."""


def to_v2(value: Any) -> Any:
    """This value of version 1 in version 2.

    >>> to_v2(v1.Plan.of("Read", "Write")).plan.plan_id
    'main'
    """
    return UP.one(value)


def to_v1(value: Any) -> Any:
    """This value of version 2 in version 1, where it is one value.

    >>> to_v1(v2.AgentMessage.of(v2.MessageId("m"), "Hello"))
    AgentMessageChunk(content=TextContent(text='Hello'), message_id='m')
    """
    return DOWN.one(value)


def all_to_v1(value: Any) -> list[Any]:
    """Everything that this value of version 2 is in version 1, in order."""
    return DOWN.all(value)


UP, DOWN = Way(2), Way(1)

_RENAMED: dict[type[Shape], type[Shape]] = {
    v1.AuthenticateRequest: v2.LoginAuthRequest,
    v1.AuthenticateResponse: v2.LoginAuthResponse,
    v1.LogoutRequest: v2.LogoutAuthRequest,
    v1.LogoutResponse: v2.LogoutAuthResponse,
    v1.CancelNotification: v2.CancelSessionNotification,
    v1.SessionNotification: v2.UpdateSessionNotification,
    v1.AvailableCommand: v2.Command,
    v1.UnstructuredCommandInput: v2.TextCommandInput,
}
"""Types with another name in version 2. Others of one name are paired by it."""

_INITIALIZE_REQUEST = {"capabilities": "client_capabilities", "info": "client_info"}
_INITIALIZE_RESPONSE = {"capabilities": "agent_capabilities", "info": "agent_info"}

_RENAMED_FIELDS: dict[type[Shape], dict[str, str]] = {
    v1.AuthMethodAgent: {"method_id": "id"},
    v1.AuthMethodTerminal: {"method_id": "id"},
    v1.SessionConfigSelect: {"config_id": "id"},
    v1.SessionConfigBoolean: {"config_id": "id"},
    v1.SessionConfigSelectGroup: {"group_id": "group"},
    v1.InitializeRequest: _INITIALIZE_REQUEST,
    v1.InitializeProxyRequest: _INITIALIZE_REQUEST,
    v1.InitializeResponse: _INITIALIZE_RESPONSE,
    v1.InitializeProxyResponse: _INITIALIZE_RESPONSE,
}
"""Fields with another name in version 2: the name there, and the one here."""

_THEIR_OWN = "agents of version 2 use files and terminals of their own"
_NO_MODES = "a mode is a config option there: give all options, or the id of the one that is the mode"
_WRAPPED = "convert the message that it wraps"
_WITHIN = "convert the AgentCapabilities that hold it"
_NO_CLIENT_TERMINAL = "a client's terminal is not the agent's own"

_NOT_IN_V2: dict[type[Shape], str] = {
    v1.FileSystemCapabilities: _THEIR_OWN,
    v1.ReadTextFileRequest: _THEIR_OWN,
    v1.ReadTextFileResponse: _THEIR_OWN,
    v1.WriteTextFileRequest: _THEIR_OWN,
    v1.WriteTextFileResponse: _THEIR_OWN,
    v1.CreateTerminalRequest: _THEIR_OWN,
    v1.CreateTerminalResponse: _THEIR_OWN,
    v1.TerminalOutputRequest: _THEIR_OWN,
    v1.TerminalOutputResponse: _THEIR_OWN,
    v1.WaitForTerminalExitRequest: _THEIR_OWN,
    v1.WaitForTerminalExitResponse: _THEIR_OWN,
    v1.KillTerminalRequest: _THEIR_OWN,
    v1.KillTerminalResponse: _THEIR_OWN,
    v1.ReleaseTerminalRequest: _THEIR_OWN,
    v1.ReleaseTerminalResponse: _THEIR_OWN,
    v1.Terminal: _NO_CLIENT_TERMINAL,
    v1.SetSessionModeRequest: _NO_MODES,
    v1.SetSessionModeResponse: _NO_MODES,
    v1.CurrentModeUpdate: _NO_MODES,
    v1.McpServerSse: "MCP over server-sent events is gone",
    v1.SessionCapabilities: _WITHIN,
    v1.ProxySuccessorRequest: _WRAPPED,
    v1.ProxySuccessorNotification: _WRAPPED,
}

_NOT_IN_V1: dict[type[Shape], str] = {
    v2.Terminal: _NO_CLIENT_TERMINAL,
    v2.TerminalUpdate: _NO_CLIENT_TERMINAL,
    v2.TerminalOutputChunk: _NO_CLIENT_TERMINAL,
    v2.ToolCallContentChunk: "content replaces there: send all of it",
    v2.PromptResponse: "a prompt is answered there when the work is done: by an idle state update",
    v2.SessionCapabilities: _WITHIN,
    v2.ProxySuccessorRequest: _WRAPPED,
    v2.ProxySuccessorNotification: _WRAPPED,
}


def _fill(way: Way, here: Any, there: Any, renamed: dict[type, type], refused: dict[type[Shape], str]) -> None:
    """A row for every class of a version that is not the same in both: renamed, refused, paired by name, or missing."""
    for name, cls in vars(here).items():
        if not isinstance(cls, type) or not issubclass(cls, Shape):
            continue
        target = renamed.get(cls) or getattr(there, name, None)
        if cls in refused:
            way.refusal(cls, refused[cls])
        elif target is None:
            way.refusal(cls, f"there is no {name}")
        elif target is not cls:
            way.pair(cls, target, _names(way, cls, target))


def _names(way: Way, cls: type, target: type) -> dict[str, str]:
    if way is UP:
        return _RENAMED_FIELDS.get(cls, {})
    return {old: new for new, old in _RENAMED_FIELDS.get(target, {}).items()}


_fill(UP, v1, v2, {**_RENAMED}, _NOT_IN_V2)
_fill(DOWN, v2, v1, {new: old for old, new in _RENAMED.items()}, _NOT_IN_V1)


# Capabilities: a marker is there or not, where version 1 had booleans. What one side lacks, it does not offer.


def _marker(cls: type[Shape], offered: bool) -> Any:
    return cls() if offered else None


def _offered(marker: Any) -> bool:
    if marker is not None and marker.meta is not None:
        DOWN.refuse(f"{type(marker).__name__}._meta", "a boolean stands for it there")
    return marker is not None


def _unless_empty(capabilities: Any) -> Any:
    return None if capabilities == type(capabilities)() else capabilities


@UP.step(v1.PromptCapabilities)
def _prompt_capabilities_up(value: v1.PromptCapabilities) -> v2.PromptCapabilities:
    return v2.PromptCapabilities(
        image=_marker(v2.PromptImageCapabilities, value.image),
        audio=_marker(v2.PromptAudioCapabilities, value.audio),
        embedded_context=_marker(v2.PromptEmbeddedContextCapabilities, value.embedded_context),
        meta=value.meta,
    )


@DOWN.step(v2.PromptCapabilities)
def _prompt_capabilities_down(value: v2.PromptCapabilities) -> v1.PromptCapabilities:
    return v1.PromptCapabilities(
        image=_offered(value.image),
        audio=_offered(value.audio),
        embedded_context=_offered(value.embedded_context),
        meta=value.meta,
    )


@UP.step(v1.McpCapabilities)
def _mcp_capabilities_up(value: v1.McpCapabilities) -> v2.McpCapabilities:
    return v2.McpCapabilities(
        stdio=v2.McpStdioCapabilities(),  # version 1: every agent can
        http=_marker(v2.McpHttpCapabilities, value.http),
        acp=_marker(v2.McpAcpCapabilities, value.acp),
        meta=value.meta,
    )


@DOWN.step(v2.McpCapabilities)
def _mcp_capabilities_down(value: v2.McpCapabilities) -> v1.McpCapabilities:
    if not _offered(value.stdio):
        DOWN.refuse("McpCapabilities without stdio", "every agent starts MCP servers there")
    return v1.McpCapabilities(http=_offered(value.http), acp=_offered(value.acp), meta=value.meta)


@UP.step(v1.AuthCapabilities)
def _client_auth_up(value: v1.AuthCapabilities) -> v2.ClientAuthCapabilities:
    return v2.ClientAuthCapabilities(terminal=_marker(v2.TerminalAuthCapabilities, value.terminal), meta=value.meta)


@DOWN.step(v2.ClientAuthCapabilities)
def _client_auth_down(value: v2.ClientAuthCapabilities) -> v1.AuthCapabilities:
    return v1.AuthCapabilities(terminal=_offered(value.terminal), meta=value.meta)


@UP.step(v1.AgentAuthCapabilities)
def _agent_auth_up(value: v1.AgentAuthCapabilities) -> v2.AgentAuthCapabilities:
    return v2.AgentAuthCapabilities(status=value.status, meta=value.meta)


@UP.step(v1.ClientCapabilities)
def _client_capabilities_up(value: v1.ClientCapabilities) -> v2.ClientCapabilities:
    return v2.ClientCapabilities(
        auth=_unless_empty(UP.one(value.auth)), elicitation=value.elicitation, meta=value.meta
    )


@DOWN.step(v2.ClientCapabilities)
def _client_capabilities_down(value: v2.ClientCapabilities) -> v1.ClientCapabilities:
    shown = v1.ClientSessionCapabilities(  # by every client of version 2
        compaction=v1.CompactionCapabilities(),
        config_options=v1.SessionConfigOptionsCapabilities(boolean=v1.BooleanConfigOptionCapabilities()),
        notices=v1.NoticeCapabilities(),
    )
    auth = DOWN.one(value.auth) or v1.AuthCapabilities()
    return v1.ClientCapabilities(auth=auth, elicitation=value.elicitation, session=shown, meta=value.meta)


@UP.step(v1.AgentCapabilities)
def _agent_capabilities_up(value: v1.AgentCapabilities) -> v2.AgentCapabilities:
    sessions = value.session_capabilities
    always = {"list": sessions.list, "resume": sessions.resume, "close": sessions.close}
    missing = [name for name, marker in {"load": value.load_session or None, **always}.items() if marker is None]
    if missing:
        UP.refuse("AgentCapabilities", f"every agent with sessions has {', '.join(missing)}")
    for marker in always.values():
        if marker is not None and marker.meta is not None:
            UP.refuse(f"{type(marker).__name__}._meta", "there is no such marker")
    session = UP.carry(
        sessions,
        v2.SessionCapabilities,
        used=tuple(always),
        prompt=_unless_empty(UP.one(value.prompt_capabilities)),
        mcp=UP.one(value.mcp_capabilities),
    )
    auth = _unless_empty(UP.one(value.auth))
    return v2.AgentCapabilities(session=session, auth=auth, providers=value.providers, meta=value.meta)


@DOWN.step(v2.AgentCapabilities)
def _agent_capabilities_down(value: v2.AgentCapabilities) -> v1.AgentCapabilities:
    if value.session is None:
        DOWN.refuse("AgentCapabilities without session", "every agent has sessions there")
    sessions = DOWN.carry(
        value.session,
        v1.SessionCapabilities,
        used=("prompt", "mcp"),
        list=v1.SessionListCapabilities(),
        resume=v1.SessionResumeCapabilities(),
        close=v1.SessionCloseCapabilities(),
    )
    return v1.AgentCapabilities(
        load_session=True,
        prompt_capabilities=DOWN.one(value.session.prompt) or v1.PromptCapabilities(),
        mcp_capabilities=DOWN.one(value.session.mcp or v2.McpCapabilities()),
        session_capabilities=sessions,
        auth=DOWN.one(value.auth) or v1.AgentAuthCapabilities(),
        providers=value.providers,
        meta=value.meta,
    )


# The first call: in version 2 logging out comes with having authentication methods


@UP.step(v1.InitializeResponse, v1.InitializeProxyResponse)
def _initialize_response_up(value: v1.InitializeResponse) -> Any:
    if value.auth_methods and value.agent_capabilities.auth.logout is None:
        UP.refuse("InitializeResponse.authMethods", "an agent with authentication methods has logout, too")
    return UP.carry(value, getattr(v2, type(value).__name__), _INITIALIZE_RESPONSE)


@DOWN.step(v2.InitializeResponse, v2.InitializeProxyResponse)
def _initialize_response_down(value: v2.InitializeResponse) -> Any:
    capabilities = DOWN.one(value.capabilities)
    if value.auth_methods:
        auth = structs_replace(capabilities.auth, logout=v1.LogoutCapabilities())
        capabilities = structs_replace(capabilities, auth=auth)
    target: type = getattr(v1, type(value).__name__)
    names = {"agent_info": "info"}
    return DOWN.carry(value, target, names, used=("capabilities",), agent_capabilities=capabilities)
