"""Capabilities: nothing is used that the other side did not declare. One table for messages, one for updates."""

from __future__ import annotations

from typing import Any

from accord_check.checks import CHECKS
from accord_check.conversation import Exchange, Frame, Told, Update, objects
from accord_check.finding import Side
from accord_check.passive.observer import Observer

_METHODS: dict[str, tuple[str, str]] = {
    # method: the capability of the side that handles it, and the requirement
    "session/load": ("loadSession", "session.load.only-when-advertised"),
    "session/resume": ("sessionCapabilities.resume", "session.resume.only-when-advertised"),
    "session/close": ("sessionCapabilities.close", "session.close.only-when-advertised"),
    "session/list": ("sessionCapabilities.list", "session.list.only-when-advertised"),
    "session/delete": ("sessionCapabilities.delete", "session.delete.only-when-advertised"),
    "session/fork": ("sessionCapabilities.fork", "session.fork.only-when-advertised"),
    "logout": ("auth.logout", "auth.logout.only-when-advertised"),
    "providers/list": ("providers", "providers.only-when-advertised"),
    "providers/set": ("providers", "providers.only-when-advertised"),
    "providers/disable": ("providers", "providers.only-when-advertised"),
    "session/archive": ("sessionCapabilities.archive", "capabilities.client-omitted-is-unsupported"),
    "session/unarchive": ("sessionCapabilities.archive", "capabilities.client-omitted-is-unsupported"),
    "session/status": ("sessionCapabilities.status", "capabilities.client-omitted-is-unsupported"),
    "session/set_title": ("sessionCapabilities.title", "capabilities.client-omitted-is-unsupported"),
    "auth/status": ("auth.status", "capabilities.client-omitted-is-unsupported"),
    "fs/read_text_file": ("fs.readTextFile", "files.read.only-when-advertised"),
    "fs/write_text_file": ("fs.writeTextFile", "files.write.only-when-advertised"),
    "terminal/create": ("terminal", "terminal.only-when-advertised"),
    "terminal/output": ("terminal", "terminal.only-when-advertised"),
    "terminal/wait_for_exit": ("terminal", "terminal.only-when-advertised"),
    "terminal/kill": ("terminal", "terminal.only-when-advertised"),
    "terminal/release": ("terminal", "terminal.only-when-advertised"),
    "elicitation/create": ("elicitation", "elicitation.absent-is-unsupported"),
}

_SECOND_VERSION = {
    "session/close": None,
    "session/list": None,
    "session/resume": None,
}
"""Methods that every agent of version 2 has."""

_UPDATES: dict[str, tuple[str, str]] = {
    "notice": ("session.notices", "notice.only-when-advertised"),
    "compaction_update": ("session.compaction", "compaction.only-when-advertised"),
    "compaction_summary_chunk": ("session.compaction", "compaction.only-when-advertised"),
    "plan_update": ("plan", "plan.operations.only-when-advertised"),
    "plan_removed": ("plan", "plan.operations.only-when-advertised"),
    "subagent_update": ("subagents", "capabilities.agent-omitted-is-unsupported"),
}

_CONTENT = {"image": "image", "audio": "audio", "resource": "embeddedContext"}
_SERVERS = {
    "http": ("mcpCapabilities.http", "mcp.http-only-when-advertised"),
    "sse": ("mcpCapabilities.sse", "mcp.sse-only-when-advertised"),
    "acp": ("mcpCapabilities.acp", "mcp.acp.only-when-advertised"),
}


class Gates(Observer):
    def request(self, exchange: Exchange) -> None:
        if not self.conversation.is_initialized:
            return
        self._method(exchange)
        if exchange.by == "client":
            self._servers(exchange)
            self._prompt(exchange)
            if exchange.method in ("session/new", "session/load", "session/resume", "session/fork"):
                extra = exchange.params.get("additionalDirectories")
                path = _path("sessionCapabilities.additionalDirectories", self.conversation.version)
                if not self.conversation.declares("agent", path):
                    wrong = "additionalDirectories, which the agent did not declare" if extra else None
                    self.judge("session.roots.only-when-advertised", wrong, exchange.frame)
        elif exchange.method == "elicitation/create":
            self._mode(exchange)

    def answer(self, exchange: Exchange) -> None:
        if exchange.by == "client" and exchange.answered is not None:
            self._options(exchange.fields.get("configOptions"), exchange.answered)

    def update(self, update: Update) -> None:
        if update.told.by != "agent" or not self.conversation.is_initialized:
            return
        self._options(update.fields.get("configOptions"), update.told.frame)
        if self.conversation.version == 1:
            for kind, (path, name) in _UPDATES.items():
                if kind == update.kind or not self.conversation.declares("client", path):
                    self._used(name, update.kind if kind == update.kind else None, "client", path, update.told)

    def _method(self, exchange: Exchange) -> None:
        other: Side = "client" if exchange.by == "agent" else "agent"
        needed = _METHODS.get(exchange.method)
        if exchange.row is None or exchange.row.to != other:
            return
        if self.conversation.version == 2 and exchange.method in _SECOND_VERSION:
            return
        if needed is not None:
            self._used(needed[1], exchange.method, other, _path(needed[0], self.conversation.version), exchange)
        for path, name in dict.fromkeys(value for value in _METHODS.values() if value != needed):
            if CHECKS[name].of == exchange.by and not self.conversation.declares(other, path):
                self.saw(name, exchange.by)

    def _used(self, name: str, what: str | None, other: Side, path: str, told: Told) -> None:
        wrong = None
        if what is not None and not self.conversation.declares(other, path):
            wrong = f"{what} was sent, but the {other} did not declare {path}"
        self.judge(name, wrong, told.frame, session=told.session_id)

    def _servers(self, exchange: Exchange) -> None:
        for server in objects(exchange.params.get("mcpServers")):
            kind = server.get("type")
            if isinstance(kind, str) and kind in _SERVERS:
                path, name = _SERVERS[kind]
                if self.conversation.version == 2:
                    path = f"session.mcp.{kind}"
                self._used(name, f"an MCP server of type {kind}", "agent", path, exchange)

    def _prompt(self, exchange: Exchange) -> None:
        if exchange.method != "session/prompt":
            return
        wrong = None
        for block in objects(exchange.params.get("prompt")):
            kind = block.get("type")
            if not isinstance(kind, str) or kind not in _CONTENT:
                continue
            first = "promptCapabilities" if self.conversation.version == 1 else "session.prompt"
            path = f"{first}.{_CONTENT[kind]}"
            if not self.conversation.declares("agent", path):
                wrong = f"the prompt has a block of type {kind}, but the agent did not declare {path}"
        self.judge("prompt.content.only-advertised", wrong, exchange.frame, session=exchange.session_id)

    def _options(self, options: Any, frame: Frame) -> None:
        if self.conversation.declares("client", "session.configOptions.boolean") or self.conversation.version == 2:
            return
        for option in objects(options):
            wrong = option.get("type") == "boolean"
            problem = f"the option {option.get('id')!r} is a boolean" if wrong else None
            self.judge("config.boolean.only-when-advertised", problem, frame)

    def _mode(self, exchange: Exchange) -> None:
        declares = self.conversation.declares
        mode = exchange.params.get("mode")
        if not declares("client", "elicitation") or not isinstance(mode, str):
            return
        # An empty capability means forms alone.
        only_forms = not declares("client", "elicitation.form") and not declares("client", "elicitation.url")
        allowed = declares("client", f"elicitation.{mode}") or (mode == "form" and only_forms)
        wrong = None if allowed else f"a question in mode {mode!r}, which the client did not declare"
        self.judge("elicitation.declared-modes-only", wrong, exchange.frame, session=exchange.session_id)


def _path(path: str, version: int) -> str:
    """A capability's place in this version; version 2 has those of sessions under `session`."""
    return path.replace("sessionCapabilities.", "session.") if version == 2 else path
