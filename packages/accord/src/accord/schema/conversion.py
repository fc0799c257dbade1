"""Converts values of version 1 to version 2, and back, as far as the proposals define it.

| function | converts |
|---|---|
| `to_v2(value)` | a value of version 1 to version 2 |
| `to_v1(value)` | a value of version 2 to version 1 |
| `all_to_v1(value)` | the same, to a list: a message becomes a chunk for each block, a diff of two files two diffs |

Pure: each value is converted on its own. A value that the other version cannot express is refused with a
`ConversionError` that names it; nothing is dropped silently. A value that belongs to no version (a string, a message of
the user's own, an `Unknown`) stays the same. An `Unknown` whose tag has a meaning in the other version is refused.

**The promise.** `to_v1(to_v2(value)) == value` wherever `to_v2` accepts the value, with these exceptions:

| of version 1 | comes back as |
|---|---|
| `ToolCall` | `ToolCallProgress`: version 2 has one upsert for both |
| `LoadSessionResponse` | `ResumeSessionResponse`, which is the same on the wire |
| `PlanUpdate` of the plan `main` | `Plan` |
| `modes` and `models` of a session | dropped if there are config options, which mean the same; else a config option |
| empty `config_options` of a session | None |
| `McpCapabilities.sse`, `nes`, `position_encoding`, `auth.logout` without methods | not offered |
| `ClientCapabilities` | without files and terminals; with all that every client of version 2 can display |
| an unknown stop reason or word | refused |

**Context.** Some values need facts that they do not contain. The caller adds them to the value, or stores them:

| value | what it needs |
|---|---|
| message chunks without `message_id` | an id: in version 2 every message has one |
| `InitializeRequest` and its answer | `client_info`, `agent_info`, and the other version's number |
| `AgentCapabilities` of version 1 | load, list, resume and close; and `auth.logout` if there are auth methods |
| `RequestPermissionRequest` | the title of its tool call, if it has none |
| `SetSessionModeRequest`, `CurrentModeUpdate` | the config option that is the mode, and all options |
| `PromptResponse` | version 1: becomes an idle state update; version 2: has no counterpart, the end of the turn has |
| state updates | the prompt: an idle update becomes its answer or its error, the others have no counterpart |
| whole messages | no earlier chunk of the message: version 1 cannot replace content |
| `ToolCallContentChunk` | the content so far: version 1 replaces it |
| clearing a title, a name or raw values | a whole new tool call: version 1 has no null for them |
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any, Literal, TypeAlias

from msgspec import UNSET
from msgspec.structs import replace

from accord.schema import codec, git_patch, shared_updates as updates, v1, v2
from accord.schema.base import Model, Shape, Unknown, unknown_members, with_unknown_members
from accord.schema.field_conversion import Several, Way

# The table of conversions: most types differ only in names, and some have no counterpart in the other version.


UP, DOWN = Way(2), Way(1)
"""The conversions to version 2 and to version 1."""

_Classes: TypeAlias = dict[type[Shape], type[Shape]]

_RENAMED: _Classes = {
    v1.AuthenticateRequest: v2.LoginAuthRequest,
    v1.AuthenticateResponse: v2.LoginAuthResponse,
    v1.LogoutRequest: v2.LogoutAuthRequest,
    v1.LogoutResponse: v2.LogoutAuthResponse,
    v1.CancelNotification: v2.CancelSessionNotification,
    v1.SessionNotification: v2.UpdateSessionNotification,
    v1.AvailableCommand: v2.Command,
    v1.UnstructuredCommandInput: v2.TextCommandInput,
    v1.AuthCapabilities: v2.ClientAuthCapabilities,
}
"""Types that have another name in version 2. All others are paired by their name."""

_RENAMED_FIELDS: dict[type[Shape], dict[str, str]] = {
    v1.AuthMethodAgent: {"id": "method_id"},
    v1.AuthMethodTerminal: {"id": "method_id"},
    v1.InitializeRequest: {"client_capabilities": "capabilities", "client_info": "info"},
    v1.InitializeResponse: {"agent_capabilities": "capabilities", "agent_info": "info"},
    v1.InitializeProxyRequest: {"client_capabilities": "capabilities", "client_info": "info"},
    v1.InitializeProxyResponse: {"agent_capabilities": "capabilities", "agent_info": "info"},
}
"""Fields with another name in version 2."""

_THEIR_OWN = "agents of version 2 use files and terminals of their own"
_NO_MODES = "a mode is a config option: convert a message about that option instead"
_NO_MODELS = "a model is a config option: convert a message about that option instead"
_WRAPPED = "convert the wrapped message instead"
_WITHIN = "convert the AgentCapabilities that hold it instead"
_WITHIN_CLIENT = "convert the ClientCapabilities that hold it instead"
_NO_CLIENT_TERMINAL = "terminals belong to the client in version 1, and to the agent in version 2"

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
    v1.SetSessionModelRequest: _NO_MODELS,
    v1.SetSessionModelResponse: _NO_MODELS,
    v1.McpServerSse: "it has no MCP servers over server-sent events",
    v1.SessionCapabilities: _WITHIN,
    v1.ClientSessionCapabilities: _WITHIN_CLIENT,
    v1.SessionCursorsCapabilities: "every client takes cursors there",
    v1.ProxySuccessorRequest: _WRAPPED,
    v1.ProxySuccessorNotification: _WRAPPED,
}

_NOT_IN_V1: dict[type[Shape], str] = {
    v2.Terminal: _NO_CLIENT_TERMINAL,
    v2.TerminalUpdate: _NO_CLIENT_TERMINAL,
    v2.TerminalOutputChunk: _NO_CLIENT_TERMINAL,
    v2.ToolCallContentChunk: "an update replaces all content: send the whole content",
    v2.PromptResponse: "a prompt is answered at the end of its turn: convert the idle state update instead",
    v2.SessionCapabilities: _WITHIN,
    v2.ClientSessionCapabilities: _WITHIN_CLIENT,
    v2.ReplayComplete: "the answer to session/load ends a replay",
    v2.ProxySuccessorRequest: _WRAPPED,
    v2.ProxySuccessorNotification: _WRAPPED,
}


_Named: TypeAlias = dict[str, type[Shape]]


def _fill(way: Way, here: _Named, there: _Named, renamed: _Classes, missing: dict[type[Shape], str]) -> None:
    """Add a row for each class of a version that is not shared by both."""
    for name, cls in here.items():
        target = renamed.get(cls) or there.get(name)
        if cls in missing:
            way.refusal(cls, missing[cls])
        elif target is None:
            way.refusal(cls, f"it has no {name}")
        elif target is not cls:
            way.pair(cls, target)


def _classes(version: ModuleType) -> _Named:
    public = {name: getattr(version, name) for name in dir(version)}
    return {name: cls for name, cls in public.items() if isinstance(cls, type) and issubclass(cls, Shape)}


def _back(table: dict[Any, Any]) -> dict[Any, Any]:
    return {value: key for key, value in table.items()}


_IN_V1, _IN_V2 = _classes(v1), _classes(v2)
_fill(UP, _IN_V1, _IN_V2, _RENAMED, _NOT_IN_V2)
_fill(DOWN, _IN_V2, _IN_V1, _back(_RENAMED), _NOT_IN_V1)

for _cls, _names in _RENAMED_FIELDS.items():
    UP.names[_cls] = _back(_names)
    DOWN.names[getattr(v2, _cls.__name__)] = _names


# Capabilities: booleans in version 1, marker objects in version 2. One that the target version lacks is dropped.


def _refuse_meta(marker: Any) -> None:
    if marker is not None and marker.meta is not None:
        UP.refuse(f"{type(marker).__name__}._meta", "every agent has the capability there, without a marker")


def _unless_empty(capabilities: Any) -> Any:
    return None if capabilities == type(capabilities)() else capabilities


@DOWN.step(v2.PromptCapabilities)
def _prompt_capabilities_down(value: v2.PromptCapabilities) -> Any:
    return DOWN.carry(value, v1.PromptCapabilities, used=("skill",))


@UP.step(v1.McpCapabilities)
def _mcp_capabilities_up(value: v1.McpCapabilities) -> Any:
    stdio = v2.McpStdioCapabilities()  # in version 1 every agent can start MCP servers
    return UP.carry(value, v2.McpCapabilities, used=("sse",), stdio=stdio)


@DOWN.step(v2.McpCapabilities)
def _mcp_capabilities_down(value: v2.McpCapabilities) -> Any:
    if not DOWN.offered(value.stdio):
        DOWN.refuse("McpCapabilities without stdio", "every agent must be able to start MCP servers")
    return DOWN.carry(value, v1.McpCapabilities, used=("stdio",))


@UP.step(v1.AgentAuthCapabilities)
def _agent_auth_up(value: v1.AgentAuthCapabilities) -> v2.AgentAuthCapabilities:
    _refuse_meta(value.logout)
    return v2.AgentAuthCapabilities(status=value.status, meta=value.meta)


@UP.step(v1.ClientCapabilities)
def _client_capabilities_up(value: v1.ClientCapabilities) -> v2.ClientCapabilities:
    session = None
    if value.session is not None:  # skills are among its unknown members: only version 2 has them
        unknown = unknown_members(value.session)
        if value.session.prompt_suggestions is not None or unknown:
            shown = v2.ClientSessionCapabilities(prompt_suggestions=value.session.prompt_suggestions)
            session = with_unknown_members(shown, unknown)
    auth = _unless_empty(UP.one(value.auth))
    made = v2.ClientCapabilities(auth=auth, elicitation=value.elicitation, session=session, meta=value.meta)
    return with_unknown_members(made, unknown_members(value))


@DOWN.step(v2.ClientCapabilities)
def _client_capabilities_down(value: v2.ClientCapabilities) -> v1.ClientCapabilities:
    shown = v1.ClientSessionCapabilities(  # every client of version 2 can display these
        compaction=v1.CompactionCapabilities(),
        config_options=v1.SessionConfigOptionsCapabilities(boolean=v1.BooleanConfigOptionCapabilities()),
        notices=v1.NoticeCapabilities(),
        prompt_suggestions=None if value.session is None else value.session.prompt_suggestions,
        cursors=v1.SessionCursorsCapabilities(),
    )
    auth = DOWN.one(value.auth) or v1.AuthCapabilities()
    made = v1.ClientCapabilities(auth=auth, elicitation=value.elicitation, session=shown, meta=value.meta)
    return with_unknown_members(made, unknown_members(value))


@UP.step(v1.AgentCapabilities)
def _agent_capabilities_up(value: v1.AgentCapabilities) -> v2.AgentCapabilities:
    sessions = value.session_capabilities
    always = {"list": sessions.list, "resume": sessions.resume, "close": sessions.close}
    missing = [name for name, marker in {"load": value.load_session or None, **always}.items() if marker is None]
    if missing:
        UP.refuse("AgentCapabilities", f"every agent with sessions must offer {', '.join(missing)}")
    for marker in always.values():
        _refuse_meta(marker)
    session = UP.carry(
        sessions,
        v2.SessionCapabilities,
        used=tuple(always),
        prompt=_unless_empty(UP.one(value.prompt_capabilities)),
        mcp=UP.one(value.mcp_capabilities),
    )
    auth = _unless_empty(UP.one(value.auth))
    made = v2.AgentCapabilities(session=session, auth=auth, providers=value.providers, meta=value.meta)
    return with_unknown_members(made, unknown_members(value))


@DOWN.step(v2.AgentCapabilities)
def _agent_capabilities_down(value: v2.AgentCapabilities) -> v1.AgentCapabilities:
    if value.session is None:
        DOWN.refuse("AgentCapabilities without session", "every agent must have sessions")
    sessions = DOWN.carry(
        value.session,
        v1.SessionCapabilities,
        used=("prompt", "mcp"),
        list=v1.SessionListCapabilities(),
        resume=v1.SessionResumeCapabilities(),
        close=v1.SessionCloseCapabilities(),
    )
    made = v1.AgentCapabilities(
        load_session=True,
        prompt_capabilities=DOWN.one(value.session.prompt) or v1.PromptCapabilities(),
        mcp_capabilities=DOWN.one(value.session.mcp or v2.McpCapabilities()),
        session_capabilities=sessions,
        auth=DOWN.one(value.auth) or v1.AgentAuthCapabilities(),
        providers=value.providers,
        meta=value.meta,
    )
    return with_unknown_members(made, unknown_members(value))


# initialize: in version 2 an agent with authentication methods always offers logout


@UP.step(v1.InitializeResponse, v1.InitializeProxyResponse)
def _initialize_response_up(value: v1.InitializeResponse) -> Any:
    if value.auth_methods and value.agent_capabilities.auth.logout is None:
        UP.refuse("InitializeResponse.authMethods", "an agent with authentication methods must offer logout")
    return UP.carry(value, getattr(v2, type(value).__name__))


@DOWN.step(v2.InitializeResponse, v2.InitializeProxyResponse)
def _initialize_response_down(value: v2.InitializeResponse) -> Any:
    capabilities = DOWN.one(value.capabilities)
    if value.auth_methods:
        auth = replace(capabilities.auth, logout=v1.LogoutCapabilities())
        capabilities = replace(capabilities, auth=auth)
    return DOWN.carry(value, getattr(v1, type(value).__name__), agent_capabilities=capabilities)


# Sessions: opening them, their options and modes, and logging in.


MODE_OPTION = v2.SessionConfigId("mode")
"""session-config-options: the id, and the category, of the option that replaces modes."""

MODEL_OPTION = v2.SessionConfigId("model")
"""session-config-options: the id, and the category, of the option that replaces `models`."""

_Started = (
    v1.NewSessionResponse
    | v1.LoadSessionResponse
    | v1.ResumeSessionResponse
    | v1.ForkSessionResponse
    | v1.SessionOptionsResponse
)


# Initial options: one of a type that version 1 does not have cannot be sent


@DOWN.step(v2.NewSessionRequest, v2.ForkSessionRequest)
def _opening(value: v2.NewSessionRequest | v2.ForkSessionRequest) -> Any:
    _check_initial_options(value)
    return DOWN.carry(value, getattr(v1, type(value).__name__))


def _check_initial_options(value: v2.NewSessionRequest | v2.ForkSessionRequest | v2.ResumeSessionRequest) -> None:
    for option in value.config_options:
        if isinstance(option, Unknown):
            DOWN.refuse(f"{type(value).__name__}.configOptions", f"it has no values of the type {option.tag!r}")


# Resuming: `session/load` is `session/resume` with a replay from the start


@UP.step(v1.LoadSessionRequest)
def _load_request(value: v1.LoadSessionRequest) -> v2.ResumeSessionRequest:
    resumed: v2.ResumeSessionRequest = UP.carry(value, v2.ResumeSessionRequest, replay_from=v2.ReplayFromStart())
    return resumed


@DOWN.step(v2.ResumeSessionRequest)
def _resume_request(value: v2.ResumeSessionRequest) -> Any:
    _check_initial_options(value)
    match value.replay_from:
        case None:
            return DOWN.carry(value, v1.ResumeSessionRequest)
        case v2.ReplayFromStart(meta=None):
            return DOWN.carry(value, v1.LoadSessionRequest, used=("replay_from",))
        case other:
            return DOWN.refuse(
                "ResumeSessionRequest.replayFrom", f"session/load replays from the start only, not from {other!r:.60}"
            )


_ANSWERS: dict[type, type] = {
    v1.NewSessionResponse: v2.NewSessionResponse,
    v1.LoadSessionResponse: v2.ResumeSessionResponse,
    v1.ResumeSessionResponse: v2.ResumeSessionResponse,
    v1.ForkSessionResponse: v2.ForkSessionResponse,
    v1.SessionOptionsResponse: v2.SessionOptionsResponse,
}


@UP.step(*_ANSWERS)
def _started_up(value: _Started) -> Any:
    target = _ANSWERS[value.__class__]
    return UP.carry(value, target, used=("modes", "models", "config_options"), config_options=_options_of(value))


def _options_of(value: _Started) -> list[v2.SessionConfigOption]:
    # session-config-options: a client that reads the options ignores the modes and models, which repeat two of them.
    if value.config_options is not None:
        options: list[v2.SessionConfigOption] = UP.one(value.config_options)
        return options
    older = (value.modes, None if isinstance(value, v1.SessionOptionsResponse) else value.models)
    return [UP.one(it) for it in older if it is not None]


@DOWN.step(v2.NewSessionResponse, v2.ResumeSessionResponse, v2.ForkSessionResponse, v2.SessionOptionsResponse)
def _started_down(
    value: v2.NewSessionResponse | v2.ResumeSessionResponse | v2.ForkSessionResponse | v2.SessionOptionsResponse,
) -> Any:
    target: type = getattr(v1, type(value).__name__)
    return DOWN.carry(value, target, config_options=DOWN.one(value.config_options) or None)


# Modes and options


@UP.step(v1.SessionModeState)
def _modes(value: v1.SessionModeState) -> v2.SessionConfigSelect:
    return _option(MODE_OPTION, "Mode", value.current_mode_id, value.available_modes, value)


@UP.step(v1.SessionModelState)
def _models(value: v1.SessionModelState) -> v2.SessionConfigSelect:
    return _option(MODEL_OPTION, "Model", value.current_model_id, value.available_models, value)


def _option(
    option_id: v2.SessionConfigId, name: str, current: str, values: Sequence[Model], older: Model
) -> v2.SessionConfigSelect:
    """The config option that replaces an older choice; its id is its category, too."""
    return v2.SessionConfigSelect(
        config_id=option_id,
        name=name,
        current_value=v2.SessionConfigValueId(current),
        options=UP.one(values),
        category=option_id,
        meta=older.meta,
    )


@UP.step(v1.SessionMode)
def _mode(value: v1.SessionMode) -> v2.SessionConfigSelectOption:
    return _choice(value.id, value)


@UP.step(v1.ModelInfo)
def _model(value: v1.ModelInfo) -> v2.SessionConfigSelectOption:
    return _choice(value.model_id, value)


def _choice(value_id: str, it: v1.SessionMode | v1.ModelInfo) -> v2.SessionConfigSelectOption:
    return v2.SessionConfigSelectOption(v2.SessionConfigValueId(value_id), it.name, it.description, meta=it.meta)


@UP.step(v1.SetSessionConfigOptionRequest)
def _set_option_up(value: v1.SetSessionConfigOptionRequest) -> v2.SetSessionConfigOption:
    if isinstance(value.value, bool):
        return v2.SetSessionConfigOptionBoolean(value.session_id, value.config_id, value.value, meta=value.meta)
    return v2.SetSessionConfigOptionId(value.session_id, value.config_id, value.value, meta=value.meta)


@DOWN.step(v2.SetSessionConfigOptionId, v2.SetSessionConfigOptionBoolean)
def _set_option_down(
    value: v2.SetSessionConfigOptionId | v2.SetSessionConfigOptionBoolean,
) -> v1.SetSessionConfigOptionRequest:
    kind: Literal["boolean"] | None = "boolean" if isinstance(value.value, bool) else None
    return v1.SetSessionConfigOptionRequest(value.session_id, value.config_id, value.value, kind, meta=value.meta)


# Login in a terminal: environment variables by name in version 1, in a list in version 2


@UP.step(v1.AuthMethodTerminal)
def _terminal_login_up(value: v1.AuthMethodTerminal) -> Any:
    variables = [v2.EnvVariable(name, text) for name, text in value.env.items()]
    return UP.carry(value, v2.AuthMethodTerminal, env=variables)


@DOWN.step(v2.AuthMethodTerminal)
def _terminal_login_down(value: v2.AuthMethodTerminal) -> Any:
    variables = {variable.name: variable.value for variable in value.env}
    if len(variables) < len(value.env) or any(variable.meta is not None for variable in value.env):
        DOWN.refuse("AuthMethodTerminal.env", "a variable must have one value, and cannot have _meta")
    return DOWN.carry(value, v1.AuthMethodTerminal, env=variables)


# Tool calls and their diffs.


# tool-call-updates: in version 2 one upsert begins and changes a tool call


@UP.step(v1.ToolCall)
def _tool_call_up(value: v1.ToolCall) -> Any:
    return UP.carry(
        value,
        v2.ToolCallProgress,
        content=UP.one(value.content) or UNSET,
        locations=UP.one(value.locations) or UNSET,
    )


@DOWN.step(v2.ToolCallUpdate, v2.ToolCallProgress)
def _tool_call_down(value: v2.ToolCallUpdate) -> Any:
    if value.kind is None:
        value = replace(value, kind="other")  # the value that clearing it sets
    if value.status is None:
        value = replace(value, status="pending")
    return DOWN.carry(value, getattr(v1, type(value).__name__))


# diff-file-states: version 1 has a file's whole text before and after, version 2 a list of changes and a patch


@UP.step(v1.Diff, updates.TextDiff)
def _diff_up(value: v1.Diff) -> v2.Diff:
    if value.deleted:
        return _deletion_up(value)
    change = v2.DiffModify if value.old_text is not None else v2.DiffAdd
    patch = git_patch.write(value.path, value.old_text, value.new_text, context=None)
    return v2.Diff([change(value.path, "text")], v2.DiffPatch("git_patch", patch), meta=value.meta)


def _deletion_up(value: v1.Diff) -> v2.Diff:
    if value.new_text:
        UP.refuse("Diff", "a deleted file has no text after")
    text = value.old_text
    patch = None if text is None else v2.DiffPatch("git_patch", git_patch.write(value.path, text, None, context=None))
    return v2.Diff([v2.DiffDelete(value.path, "text")], patch, meta=value.meta)


@DOWN.step(v2.Diff)
def _diff_down(value: v2.Diff) -> Several:
    if not value.changes:
        DOWN.refuse("Diff", "it has no changes")
    if value.patch is None and all(isinstance(change, v2.DiffDelete) for change in value.changes):
        return Several(_diff_of(change, [], value) for change in value.changes)
    if value.patch is None or value.patch.format != "git_patch" or value.patch.meta is not None:
        DOWN.refuse("Diff", "it needs the whole texts of the files, which only a git patch without _meta gives")
    try:
        files = git_patch.read(value.patch.text)
    except ValueError as error:
        DOWN.refuse("Diff.patch", str(error))
    return Several(_diff_of(change, files, value) for change in value.changes)


def _diff_of(change: v2.DiffChange, files: list[git_patch.FileTexts], diff: v2.Diff) -> v1.Diff:
    what = type(change).__name__
    if not isinstance(change, v2.DiffAdd | v2.DiffDelete | v2.DiffModify) or change.meta is not None:
        DOWN.refuse(what, "only an added, modified or deleted file, without _meta, can be a diff")
    if change.file_type not in (None, "text"):
        DOWN.refuse(what, f"a diff must be of a text file, got {change.file_type!r}")
    if diff.patch is None:
        return v1.Diff(change.path, "", deleted=True, meta=diff.meta)
    meant = files if len(files) == len(diff.changes) == 1 else [file for file in files if file.may_be(change.path)]
    if len(meant) != 1:
        DOWN.refuse(what, "the patch must have this file once")
    [file] = meant
    shown = (file.old is not None, file.new is not None)
    if shown != (not isinstance(change, v2.DiffAdd), not isinstance(change, v2.DiffDelete)):
        DOWN.refuse(what, "the patch has a different change of this file")
    return v1.Diff(change.path, file.new or "", file.old, deleted=file.new is None, meta=diff.meta)


# Turns: messages, plans, permissions, errors, and the end of a turn.


"""plan-variants: the id of the only plan of version 1."""

# message-updates: a whole message becomes a chunk for each of its blocks

_CHUNKS: dict[type, type] = {
    v2.UserMessage: v1.UserMessageChunk,
    v2.AgentMessage: v1.AgentMessageChunk,
    v2.AgentThought: v1.AgentThoughtChunk,
}


@DOWN.step(*_CHUNKS)
def _message(value: v2.UserMessage | v2.AgentMessage | v2.AgentThought) -> Several:
    what = type(value).__name__
    if not value.content or value.meta is None:
        DOWN.refuse(what, "only content can be added to a message: it cannot be replaced or cleared")
    return Several(DOWN.carry(value, _CHUNKS[value.__class__], content=block) for block in DOWN.one(value.content))


@DOWN.step(v2.UpdateSessionNotification)
def _notification(value: v2.UpdateSessionNotification) -> Several:
    return Several(DOWN.carry(value, v1.SessionNotification, update=update) for update in DOWN.all(value.update))


# plan-variants: the only plan of version 1 is the plan `main` of version 2


@UP.step(v1.Plan)
def _plan_up(value: v1.Plan) -> v2.PlanUpdate:
    return v2.PlanUpdate(v2.PlanItems(updates.MAIN_PLAN, UP.one(value.entries)), meta=value.meta)


@DOWN.step(v2.PlanUpdate)
def _plan_down(value: v2.PlanUpdate) -> Any:
    match value.plan:
        case v2.PlanItems(plan_id="main", meta=None) as plan:
            return DOWN.carry(value, v1.Plan, used=("plan",), entries=DOWN.one(plan.entries))
        case _:
            return DOWN.carry(value, v1.PlanUpdate)


# permission-requests: in version 1 the title of the question is the title of its tool call


@UP.step(v1.RequestPermissionRequest)
def _permission_up(value: v1.RequestPermissionRequest) -> Any:
    if value.tool_call.title is None:
        UP.refuse("RequestPermissionRequest", "it needs a title: set the title of its tool call")
    subject = v2.ToolCallPermissionSubject(UP.one(value.tool_call))
    return UP.carry(
        value, v2.RequestPermissionRequest, used=("tool_call",), title=value.tool_call.title, subject=subject
    )


@DOWN.step(v2.RequestPermissionRequest)
def _permission_down(value: v2.RequestPermissionRequest) -> Any:
    if not isinstance(value.subject, v2.ToolCallPermissionSubject) or value.subject.meta is not None:
        DOWN.refuse("RequestPermissionRequest.subject", "the subject must be a tool call without _meta")
    tool_call = value.subject.tool_call
    if tool_call.title not in (UNSET, value.title):
        DOWN.refuse("RequestPermissionRequest.title", "the title must be that of its tool call")
    return DOWN.carry(
        value,
        v1.RequestPermissionRequest,
        used=("title", "subject"),
        tool_call=DOWN.one(replace(tool_call, title=value.title)),
    )


# prompt: a turn ends with the answer to its prompt in version 1, with an idle state update in version 2


@UP.step(v1.PromptResponse)
def _end_up(value: v1.PromptResponse) -> v2.SessionStateUpdate:
    return v2.SessionStateUpdate("idle", value.stop_reason, value.usage, meta=value.meta)


@DOWN.step(v2.SessionStateUpdate)
def _end_down(value: v2.SessionStateUpdate) -> Any:
    if value.state != "idle":
        DOWN.refuse("SessionStateUpdate", f"it has no message for the state {value.state!r}")
    if value.stop_reason == "error" and value.error is not None:
        if (value.background, value.usage, value.meta) != (None, None, None):
            DOWN.refuse(
                "SessionStateUpdate",
                "an error is the whole answer to a prompt: background, usage and _meta cannot be sent with it",
            )
        return DOWN.one(value.error)
    if value.stop_reason is None:
        DOWN.refuse("SessionStateUpdate", "it has no stop reason, so it does not end a turn")
    return DOWN.carry(value, v1.PromptResponse, used=("state",))


@UP.step(v1.Error)
def _error_up(value: v1.Error) -> v2.Error:
    data = None if value.data is None else codec.convert(value.data, v2.ErrorData)
    return v2.Error(value.code, value.message, data)


@DOWN.step(v2.Error)
def _error_down(value: v2.Error) -> v1.Error:
    return v1.Error(value.code, value.message, codec.plain(value.data))


# Converts values of version 1 to version 2, and back, as far as the proposals define it.


def to_v2(value: Any) -> Any:
    """Convert a value of version 1 to version 2.

    >>> from accord.schema import v1
    >>> to_v2(v1.Plan.of("Read", "Write")).plan.plan_id
    'main'
    """
    return UP.one(value)


def to_v1(value: Any) -> Any:
    """Convert a value of version 2 to one value of version 1.

    >>> from accord.schema import v2
    >>> to_v1(v2.AgentMessage.of(v2.MessageId("m"), "Hello"))
    AgentMessageChunk(content=TextContent(text='Hello'), message_id='m')
    """
    return DOWN.one(value)


def all_to_v1(value: Any) -> list[Any]:
    """Convert a value of version 2 to the values of version 1 that it takes, in order."""
    return DOWN.all(value)


__all__ = ["all_to_v1", "to_v1", "to_v2"]
