"""The agreed version: no method or update of another one, and what only version 2 demands of a client's requests."""

from __future__ import annotations

from accord.schema import legacy
from accord.schema.methods import methods
from accord_check.conversation import Exchange, Told, Update, objects
from accord_check.passive.observer import Observer

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
            self.judge("lint.prompt.not-empty", empty, exchange.frame, session=exchange.session_id)
        names = [server.get("name") for server in objects(exchange.params.get("mcpServers"))]
        if names:
            twice = sorted({str(name) for name in names if names.count(name) > 1})
            problem = f"two MCP servers have the name {twice[0]!r}" if twice else None
            self.judge("lint.mcp.names-unique", problem, exchange.frame)

    def notification(self, told: Told) -> None:
        self._method(told, is_request=False)

    def update(self, update: Update) -> None:
        version = self.conversation.version
        if update.told.by == "agent" and self.conversation.is_initialized:
            other = is_of_other_version(update.kind, version)
            problem = f"{update.kind} is no update of version {version}" if other else None
            self.judge("lint.version.updates", problem, update.told.frame, session=update.told.session_id)

    def _method(self, told: Told, *, is_request: bool) -> None:
        if not self.conversation.is_initialized:
            return
        version = self.conversation.version
        other = methods(2 if version == 1 else 1)
        row = other.request(told.method) if is_request else other.notification(told.method)
        is_foreign = told.row is None and row is not None and not row.legacy
        is_renamed = told.method in legacy.RENAMED_METHODS
        problem = f"{told.method} is no method of version {version}" if is_foreign and not is_renamed else None
        self.judge("lint.version.methods", problem, told.frame)
