"""The table of conversions: most types differ only in names, and some have no counterpart in the other version."""

from __future__ import annotations

from types import ModuleType
from typing import Any, TypeAlias

from accord.schema import v1, v2
from accord.schema.base import Shape
from accord.schema.conversion.carrying import Way

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
}
"""Types that have another name in version 2. All others are paired by their name."""

_RENAMED_FIELDS: dict[type[Shape], dict[str, str]] = {
    v1.AuthMethodAgent: {"id": "method_id"},
    v1.AuthMethodTerminal: {"id": "method_id"},
    v1.SessionConfigSelect: {"id": "config_id"},
    v1.SessionConfigBoolean: {"id": "config_id"},
    v1.SessionConfigSelectGroup: {"group": "group_id"},
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
    v2.ProxySuccessorRequest: _WRAPPED,
    v2.ProxySuccessorNotification: _WRAPPED,
}


def _fill(way: Way, here: ModuleType, there: ModuleType, renamed: _Classes, missing: dict[type[Shape], str]) -> None:
    """Add a row for each class of a version that is not shared by both."""
    for name, cls in _classes(here).items():
        target = renamed.get(cls) or _classes(there).get(name)
        if cls in missing:
            way.refusal(cls, missing[cls])
        elif target is None:
            way.refusal(cls, f"it has no {name}")
        elif target is not cls:
            way.pair(cls, target)


def _classes(version: ModuleType) -> dict[str, type[Shape]]:
    public = {name: getattr(version, name) for name in dir(version)}
    return {name: cls for name, cls in public.items() if isinstance(cls, type) and issubclass(cls, Shape)}


def _back(table: dict[Any, Any]) -> dict[Any, Any]:
    return {value: key for key, value in table.items()}


_fill(UP, v1, v2, _RENAMED, _NOT_IN_V2)
_fill(DOWN, v2, v1, _back(_RENAMED), _NOT_IN_V1)

for _cls, _names in _RENAMED_FIELDS.items():
    UP.names[_cls] = _back(_names)
    DOWN.names[getattr(v2, _cls.__name__)] = _names
