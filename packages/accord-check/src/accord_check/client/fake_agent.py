"""`AgentScript`: what our agent says of itself, and how it answers everything but prompts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from accord_check.agent.client_services import Refused
from accord_check.conversation import Exchange

METHOD_NOT_FOUND = -32601

INFO = {"name": "accord-check", "title": "Accord's conformance checks", "version": "1"}

MODES: dict[str, Any] = {
    "currentModeId": "ask",
    "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}],
}
OPTION: dict[str, Any] = {
    "id": "length",
    "name": "Length",
    "category": "_accord.check/length",
    "type": "select",
    "currentValue": "short",
    "options": [{"value": "short", "name": "Short"}, {"value": "long", "name": "Long"}],
}
OPTION_V2: dict[str, Any] = {**{name: value for name, value in OPTION.items() if name != "id"}, "configId": "length"}
EVERYTHING: dict[str, Any] = {
    "loadSession": True,
    "promptCapabilities": {"image": True, "audio": True, "embeddedContext": True},
    "mcpCapabilities": {"http": True, "sse": True},
    "sessionCapabilities": {"list": {}, "delete": {}, "resume": {}, "close": {}, "additionalDirectories": {}},
    "auth": {"logout": {}},
}
"""The capabilities of an agent that can do all that is stable."""

EVERYTHING_V2: dict[str, Any] = {
    "session": {
        "prompt": {"image": {}, "audio": {}, "embeddedContext": {}},
        "mcp": {"stdio": {}, "http": {}},
        "delete": {},
        "additionalDirectories": {},
    },
    "auth": {},
}
"""The same in version 2."""

SETTINGS: dict[str, Any] = {"modes": MODES, "configOptions": [OPTION]}
"""What the answer to `session/new` says of modes and options."""
SETTINGS_V2: dict[str, Any] = {"configOptions": [OPTION_V2]}


@dataclass(frozen=True)
class AgentScript:
    """The part that our agent plays in a scenario."""

    capabilities: Mapping[str, Any] = field(default_factory=lambda: EVERYTHING)
    session: Mapping[str, Any] = field(default_factory=lambda: SETTINGS)
    """Further members of the answer to `session/new`."""
    answer: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Further members of the answer to `initialize`."""
    capabilities_v2: Mapping[str, Any] = field(default_factory=lambda: EVERYTHING_V2)
    session_v2: Mapping[str, Any] = field(default_factory=lambda: SETTINGS_V2)
    late: bool = False
    """Whether answers come late."""

    def initialized(self, version: int) -> dict[str, Any]:
        """The answer to `initialize`, in this version."""
        if version == 2:
            said: dict[str, Any] = {"capabilities": self.capabilities_v2, "info": INFO}
        else:
            said = {"agentCapabilities": self.capabilities, "agentInfo": INFO}
        return {"protocolVersion": version, **said, "authMethods": [], **self.answer}

    def opened(self, version: int) -> dict[str, Any]:
        """What the answer that opens a session says, in this version."""
        return dict(self.session_v2 if version == 2 else self.session)


class FakeAgent:
    """Answers the requests of one connection, except prompts."""

    def __init__(self, script: AgentScript, prompted: Callable[[Exchange], None], most: int = 1) -> None:
        self.version = 1
        """The version that was agreed on: that of the client, and `most` at most."""
        self._most = most
        self.sessions: dict[str, str] = {}
        """The folder of each session."""
        self.script = script
        self._take_prompt = prompted
        self._answers: dict[str, Callable[[Mapping[str, Any]], Any]] = {
            "initialize": self._initialize,
            "authenticate": lambda _: {},
            "logout": lambda _: {},
            "auth/login": lambda _: {},
            "auth/logout": lambda _: {},
            "session/new": self._new,
            "session/load": self._load,
            "session/resume": self._load,
            "session/list": self._list,
            "session/close": lambda _: {},
            "session/delete": self._delete,
            "session/set_mode": lambda _: {},
            "session/set_config_option": self._set_option,
        }

    def answer(self, exchange: Exchange) -> Any:
        """The result of a request; None for a prompt, whose turn a scenario plays."""
        if exchange.method == "session/prompt":
            self._take_prompt(exchange)
            return None
        answering = self._answers.get(exchange.method)
        if answering is None:
            raise Refused(METHOD_NOT_FOUND, f"Method not found: {exchange.method[:80]}")
        return answering(exchange.params)

    def _initialize(self, params: Mapping[str, Any]) -> Any:
        asked = params.get("protocolVersion")
        self.version = 2 if self._most == 2 and isinstance(asked, int) and asked >= 2 else 1
        return self.script.initialized(self.version)

    def _new(self, params: Mapping[str, Any]) -> Any:
        made = f"check-{len(self.sessions) + 1}"
        self.sessions[made] = str(params.get("cwd"))
        return {"sessionId": made, **self.script.opened(self.version)}

    def _load(self, params: Mapping[str, Any]) -> Any:
        self.sessions[str(params.get("sessionId"))] = str(params.get("cwd"))
        return self.script.opened(self.version)

    def _list(self, params: Mapping[str, Any]) -> Any:
        cwd = params.get("cwd")
        found = [(given, folder) for given, folder in self.sessions.items() if cwd in (None, folder)]
        return {"sessions": [{"sessionId": given, "cwd": folder} for given, folder in found]}

    def _delete(self, params: Mapping[str, Any]) -> Any:
        self.sessions.pop(str(params.get("sessionId")), None)
        return {}

    def _set_option(self, params: Mapping[str, Any]) -> Any:
        option = OPTION_V2 if self.version == 2 else OPTION
        return {"configOptions": [{**option, "currentValue": params.get("value")}]}
