"""What the checks lend to an agent: the files of a scratch folder, and answers to its questions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from accord_check.conversation import Exchange, objects

Permit = Literal["allow", "reject", "cancel", "hold"]

NOT_FOUND, METHOD_NOT_FOUND, INVALID_PARAMS = -32002, -32601, -32602

FULL: dict[str, Any] = {
    "fs": {"readTextFile": True, "writeTextFile": True},
    "session": {"compaction": {}, "notices": {}, "configOptions": {"boolean": {}}},
    "elicitation": {"form": {}, "url": {}},
}
"""The capabilities of a client that can do nearly everything. It runs no command, and opens no terminal for a login."""


class Refused(Exception):
    """A request that is answered with an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class ClientServices:
    """Answers the requests of an agent."""

    def __init__(self, folder: Path) -> None:
        self.permit: Permit = "allow"
        """What permission requests are answered with; `hold` keeps them open until `settle`."""
        self.held: list[Exchange] = []
        """Permission requests that wait for an answer."""
        self._folder = folder.resolve()
        self._answers: dict[str, Callable[[Exchange], Any]] = {
            "fs/read_text_file": self._read,
            "fs/write_text_file": self._write,
            "session/request_permission": self._permission,
            "elicitation/create": lambda _: {"action": "decline"},
        }

    def answer(self, exchange: Exchange) -> Any:
        """The result of a request; None for one that waits. Raises Refused for one that is answered with an error."""
        answering = self._answers.get(exchange.method)
        if answering is None:
            raise Refused(METHOD_NOT_FOUND, f"Method not found: {exchange.method[:80]}")
        return answering(exchange)

    def settle(self) -> list[tuple[Exchange, Any]]:
        """The requests that wait, each with the answer that it gets as things are now."""
        held, self.held = self.held, []
        return [(exchange, self._chosen(exchange)) for exchange in held]

    def _permission(self, exchange: Exchange) -> Any:
        if self.permit == "hold":
            self.held.append(exchange)
            return None
        return self._chosen(exchange)

    def _chosen(self, exchange: Exchange) -> Any:
        wanted = "allow" if self.permit == "allow" else "reject"
        for option in objects(exchange.params.get("options")):
            if self.permit == "cancel":
                break
            if str(option.get("kind", "")).startswith(wanted):
                return {"outcome": {"outcome": "selected", "optionId": option.get("optionId")}}
        return {"outcome": {"outcome": "cancelled"}}

    def _read(self, exchange: Exchange) -> Any:
        try:
            lines = self._inside(exchange).read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
        except OSError:
            raise Refused(NOT_FOUND, "no such file") from None
        line, limit = exchange.params.get("line"), exchange.params.get("limit")
        start = max(line - 1, 0) if isinstance(line, int) else 0
        return {"content": "".join(lines[start : start + limit if isinstance(limit, int) else None])}

    def _write(self, exchange: Exchange) -> Any:
        path, text = self._inside(exchange), exchange.params.get("content")
        if not isinstance(text, str):
            raise Refused(INVALID_PARAMS, "content must be a string")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return {}

    def _inside(self, exchange: Exchange) -> Path:
        path = Path(str(exchange.params.get("path", ""))).resolve()
        if not path.is_relative_to(self._folder):
            raise Refused(INVALID_PARAMS, "the path is outside of the session's folder")
        return path
