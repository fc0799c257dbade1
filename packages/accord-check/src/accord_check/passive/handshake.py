"""The handshake and its result: the version, and the capabilities, without which nothing is used."""

from __future__ import annotations

from typing import Any

from accord.schema import legacy
from accord.schema.methods import methods
from accord_check.checks import CHECKS, Side
from accord_check.conversation import Exchange, Frame, Message, Update, objects, repeated
from accord_check.passive.observer import Observer
from accord_check.passive.prompts import CAPABILITY_OF_CONTENT, prompt_capability


class Handshake(Observer):
    def begin(self) -> None:
        self._logins: set[Any] = set()

    def request(self, exchange: Exchange) -> None:
        if exchange.method == "initialize":
            if exchange.by == "client":
                verdict = self.conversation.initialize is exchange or "a second initialize on one connection"
                self.judge("initialize.once", verdict, exchange)
                self._introduced("client", exchange.params, exchange.frame)
        elif exchange.by == "agent" or exchange.row is not None:
            name = "lint.before-initialize" if exchange.by == "agent" else "initialize.client-goes-first"
            verdict = self.conversation.is_initialized or f"{exchange.method} was sent before initialize was answered"
            self.judge(name, verdict, exchange)
        if exchange.method in ("authenticate", "auth/login") and exchange.by == "client":
            self._login(exchange)

    def answer(self, exchange: Exchange, frame: Frame) -> None:
        if exchange.method == "initialize" and exchange.succeeded:
            self._chosen(exchange)
            self._introduced("agent", exchange.fields, frame)
            self._ways_in(exchange, frame)

    def _introduced(self, side: Side, fields: dict[str, Any], frame: Frame) -> None:
        """Judge a side's version, capabilities and name; a client that offers version 2 may send them twice."""
        is_second = fields.get("protocolVersion") == 2
        self.judge(f"initialize.{side}-states-version", _absent(fields, "protocolVersion"), frame)
        for what in ("capabilities", "info"):
            first = () if is_second and side == "agent" else (f"{side}{what.title()}",)
            self.judge(f"initialize.{side}-states-{what}", _absent(fields, *first, *([what] * is_second)), frame)

    def _chosen(self, exchange: Exchange) -> None:
        asked, chosen = exchange.params.get("protocolVersion"), exchange.fields.get("protocolVersion")
        if type(asked) is not int or type(chosen) is not int:
            return
        said = f"asked for version {asked}, answered version {chosen}"
        if asked == 1:
            self.judge("initialize.version.agent-echoes-supported", chosen == 1 or said, exchange)
        elif asked > 2:
            self.judge("initialize.version.agent-answers-latest", chosen != asked or said, exchange)
        elif chosen > asked:
            self.judge("initialize.version.agent-answers-latest", said, exchange)

    def _ways_in(self, exchange: Exchange, frame: Frame) -> None:
        ways = list(objects(exchange.fields.get("authMethods")))
        named = "methodId" if self.conversation.version == 2 else "id"
        ids = [way[named] for way in ways if isinstance(way.get(named), str)]
        twice = repeated(ids)
        self.judge("lint.auth.ids-unique", not twice or f"two auth methods have the id {twice[0]!r}", frame)
        self._logins = set(ids)
        at_terminal = [way for way in ways if way.get("type") == "terminal"]
        # A client may also send it in the older form; it then gets what it asked for.
        if not (self.declares("client", "auth.terminal") or self.declares("client", "_meta.terminal-auth")):
            verdict = not at_terminal or f"the auth method {at_terminal[0].get(named)!r} has the type terminal"
            self.judge("auth.terminal.only-when-advertised", verdict, frame)
        for way in at_terminal:
            verdict = "command" not in way or f"the auth method {way.get(named)!r} has a command"
            self.judge("auth.terminal.no-command", verdict, frame)

    def _login(self, exchange: Exchange) -> None:
        method = exchange.params.get("methodId")
        if isinstance(method, str) and self.conversation.is_initialized:
            verdict = method in self._logins or f"the agent offered no auth method {method!r}"
            self.judge("auth.authenticate.offered-method", verdict, exchange)


def _absent(fields: dict[str, Any], *names: str) -> str | None:
    if any(fields.get(name) is not None for name in names):
        return None
    return f"{names[0]} is missing"


ONLY_FIRST = frozenset(("tool_call", "plan", "current_mode_update"))
ONLY_SECOND = frozenset(
    (
        "state_update",
        "user_message",
        "agent_message",
        "agent_thought",
        "tool_call_content_chunk",
        "terminal_update",
        "terminal_output_chunk",
    )
)


def is_of_other_version(kind: str, version: int) -> bool:
    """Whether this kind of update belongs to the other version alone."""
    return kind in (ONLY_FIRST if version == 2 else ONLY_SECOND)


class Versions(Observer):
    def request(self, exchange: Exchange) -> None:
        self._method(exchange, is_request=True)
        if exchange.by != "client" or self.conversation.version != 2:
            return
        if exchange.method == "session/prompt" and isinstance(exchange.params.get("prompt"), list):
            empty = None if exchange.params["prompt"] else "the prompt has no content"
            self.judge("lint.prompt.not-empty", empty, exchange)
        names = [server.get("name") for server in objects(exchange.params.get("mcpServers"))]
        if names:
            twice = repeated(names)
            verdict = not twice or f"two MCP servers have the name {twice[0]!r}"
            self.judge("lint.mcp.names-unique", verdict, exchange)

    def notification(self, message: Message) -> None:
        self._method(message, is_request=False)

    def update(self, update: Update) -> None:
        version = self.conversation.version
        if self.conversation.is_initialized:
            other = is_of_other_version(update.kind, version)
            verdict = not other or f"{update.kind} is no update of version {version}"
            self.judge("lint.version.updates", verdict, update)

    def _method(self, message: Message, *, is_request: bool) -> None:
        if not self.conversation.is_initialized:
            return
        version = self.conversation.version
        other = methods(2 if version == 1 else 1)
        row = other.request(message.method) if is_request else other.notification(message.method)
        is_foreign = message.row is None and row is not None and not row.legacy
        is_renamed = message.method in legacy.RENAMED_METHODS
        verdict = not (is_foreign and not is_renamed) or f"{message.method} is no method of version {version}"
        self.judge("lint.version.methods", verdict, message)


_METHODS: dict[str, tuple[str, str]] = {
    # method: the capability of the side that handles it, and the requirement
    "session/load": ("loadSession", "session.load.only-when-advertised"),
    "session/resume": ("sessionCapabilities.resume", "session.resume.only-when-advertised"),
    "session/close": ("sessionCapabilities.close", "session.close.only-when-advertised"),
    "session/list": ("sessionCapabilities.list", "session.list.only-when-advertised"),
    "session/delete": ("sessionCapabilities.delete", "session.delete.only-when-advertised"),
    "session/fork": ("sessionCapabilities.fork", "session.fork.only-when-advertised"),
    "logout": ("auth.logout", "auth.logout.only-when-advertised"),
    **dict.fromkeys(
        ("providers/list", "providers/set", "providers/disable"), ("providers", "providers.only-when-advertised")
    ),
    "session/archive": ("sessionCapabilities.archive", "capabilities.client-omitted-is-unsupported"),
    "session/unarchive": ("sessionCapabilities.archive", "capabilities.client-omitted-is-unsupported"),
    "session/options": ("sessionCapabilities.options", "lint.options.only-when-advertised"),
    "session/status": ("sessionCapabilities.status", "capabilities.client-omitted-is-unsupported"),
    "session/set_title": ("sessionCapabilities.title", "capabilities.client-omitted-is-unsupported"),
    "auth/status": ("auth.status", "capabilities.client-omitted-is-unsupported"),
    "fs/read_text_file": ("fs.readTextFile", "files.read.only-when-advertised"),
    "fs/write_text_file": ("fs.writeTextFile", "files.write.only-when-advertised"),
    **dict.fromkeys(
        (f"terminal/{it}" for it in ("create", "output", "wait_for_exit", "kill", "release")),
        ("terminal", "terminal.only-when-advertised"),
    ),
    "elicitation/create": ("elicitation", "elicitation.absent-is-unsupported"),
}

_SECOND_VERSION = {"session/close", "session/list", "session/resume"}
"""Methods that every agent of version 2 has."""

_UPDATES: dict[str, tuple[str, str]] = {
    "notice": ("session.notices", "notice.only-when-advertised"),
    "compaction_update": ("session.compaction", "compaction.only-when-advertised"),
    "compaction_summary_chunk": ("session.compaction", "compaction.only-when-advertised"),
    "plan_update": ("plan", "plan.operations.only-when-advertised"),
    "plan_removed": ("plan", "plan.operations.only-when-advertised"),
    "subagent_update": ("subagents", "capabilities.agent-omitted-is-unsupported"),
    "cursor_update": ("session.cursors", "capabilities.agent-omitted-is-unsupported"),
    "prompt_suggestions_update": ("session.promptSuggestions", "capabilities.agent-omitted-is-unsupported"),
}
"""Updates that a client must have enabled in version 1, with its capability and the requirement."""

_UPDATES_OF_V2 = ("prompt_suggestions_update",)
"""Those of them that need the same capability in version 2."""

_SERVERS = {
    "http": ("mcpCapabilities.http", "mcp.http-only-when-advertised"),
    "sse": ("mcpCapabilities.sse", "mcp.sse-only-when-advertised"),
    "acp": ("mcpCapabilities.acp", "mcp.acp.only-when-advertised"),
}


class Capabilities(Observer):
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
                if not self.declares("agent", path):
                    verdict = not extra or "additionalDirectories, which the agent did not declare"
                    self.judge("session.roots.only-when-advertised", verdict, exchange)
        elif exchange.method == "elicitation/create":
            self._mode(exchange)

    def answer(self, exchange: Exchange, frame: Frame) -> None:
        if exchange.by == "client":
            self._options(exchange.fields.get("configOptions"), frame)

    def update(self, update: Update) -> None:
        if not self.conversation.is_initialized:
            return
        self._options(update.fields.get("configOptions"), update.frame)
        kinds = _UPDATES if self.conversation.version == 1 else _UPDATES_OF_V2
        for kind, (path, name) in {kind: _UPDATES[kind] for kind in kinds}.items():
            if kind == update.kind or not self.declares("client", path):
                self._used(name, update.kind if kind == update.kind else None, "client", path, update)

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
            if CHECKS[name].of == exchange.by and not self.declares(other, path):
                self.saw(name, exchange.by)

    def _used(self, name: str, what: str | None, other: Side, path: str, place: Message | Update) -> None:
        is_fine = what is None or self.declares(other, path)
        self.judge(name, is_fine or f"{what} was sent, but the {other} did not declare {path}", place)

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
            if not isinstance(kind, str) or kind not in CAPABILITY_OF_CONTENT:
                continue
            path = prompt_capability(kind, self.conversation.version)
            if not self.declares("agent", path):
                wrong = f"the prompt has a block of type {kind}, but the agent did not declare {path}"
        self.judge("prompt.content.only-advertised", wrong, exchange)

    def _options(self, options: Any, frame: Frame) -> None:
        if self.declares("client", "session.configOptions.boolean") or self.conversation.version == 2:
            return
        for option in objects(options):
            wrong = option.get("type") == "boolean"
            verdict = not wrong or f"the option {option.get('id')!r} is a boolean"
            self.judge("config.boolean.only-when-advertised", verdict, frame)

    def _mode(self, exchange: Exchange) -> None:
        declares = self.declares
        mode = exchange.params.get("mode")
        if not declares("client", "elicitation") or not isinstance(mode, str):
            return
        # An empty capability means forms alone.
        only_forms = not declares("client", "elicitation.form") and not declares("client", "elicitation.url")
        allowed = declares("client", f"elicitation.{mode}") or (mode == "form" and only_forms)
        verdict = allowed or f"a question in mode {mode!r}, which the client did not declare"
        self.judge("elicitation.declared-modes-only", verdict, exchange)


def _path(path: str, version: int) -> str:
    """Return a capability's path in this version; version 2 has those of sessions under `session`."""
    return path.replace("sessionCapabilities.", "session.") if version == 2 else path
