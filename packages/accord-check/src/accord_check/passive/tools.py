"""Tool calls: their ids, their life, the places they name, and the permissions that they wait for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from accord_check.conversation import Exchange, Frame, Update, object_of, objects
from accord_check.passive.observer import Observer
from accord_check.passive.sessions import is_absolute
from accord_check.passive.turns import RACE

_ENDED = ("completed", "failed")


@dataclass(slots=True, eq=False)
class _Call:
    """A tool call."""

    first: Frame
    status: str
    in_turn: bool
    waits: Exchange | None = None
    """A permission request without an answer."""
    refused: Frame | None = None
    """The answer that refused the permission."""


class Tools(Observer):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._calls: dict[tuple[str, str], _Call] = {}

    def update(self, update: Update) -> None:
        session_id, frame = update.told.session_id, update.told.frame
        given = update.fields.get("toolCallId")
        if update.told.by != "agent" or session_id is None:
            return
        if update.kind == "terminal_update":
            self._path(update.fields.get("cwd"), "a terminal's cwd", frame)
        elif update.kind == "tool_call_content_chunk":
            self._places({"content": [update.fields.get("content")]}, frame)
        if update.kind not in ("tool_call", "tool_call_update"):
            return
        self._places(update.fields, frame)
        if not isinstance(given, str) or self.conversation.version != 1:
            return
        key, call = (session_id, given), self._calls.get((session_id, given))
        status = update.fields.get("status")
        if update.kind == "tool_call":
            wrong = f"a second tool call has the id {given!r}" if call is not None else None
            self.judge("tool.id-unique", wrong, frame, session=session_id)
        else:
            wrong = f"an update of the tool call {given!r}, which was not announced" if call is None else None
            self.judge("lint.tool.announced", wrong, frame, session=session_id)
        if call is None or update.kind == "tool_call":
            in_turn = update.session is not None and bool(update.session.turns)
            self._calls[key] = _Call(frame, status if isinstance(status, str) else "pending", in_turn)
            return
        if isinstance(status, str):
            self._progress(call, given, status, frame, session_id)

    def request(self, exchange: Exchange) -> None:
        session_id = exchange.session_id
        if exchange.by == "client":
            if exchange.method == "session/load":
                self._calls = {key: call for key, call in self._calls.items() if key[0] != session_id}
            return
        if exchange.method in ("fs/read_text_file", "fs/write_text_file", "terminal/create"):
            self._request_places(exchange)
        if exchange.method != "session/request_permission":
            return
        if isinstance(exchange.params.get("options"), list):
            self._options(exchange)
        fields = object_of(exchange.params.get("toolCall")) or object_of(
            object_of(exchange.params.get("subject")).get("toolCall")
        )
        self._places(fields, exchange.frame)
        known = self._calls.get((session_id or "", cast("str", fields.get("toolCallId"))))
        if known is not None:
            known.waits, known.refused = exchange, None

    def _options(self, exchange: Exchange) -> None:
        options = list(objects(exchange.params.get("options")))
        ids = [option.get("optionId") for option in options]
        twice = len(set(map(repr, ids))) < len(ids)
        self.judge(
            "permission.ids-unique", f"two options have the same id, among {ids}" if twice else None, exchange.frame
        )
        self.judge("lint.permission.has-options", None if ids else "no option was given", exchange.frame)

    def answer(self, exchange: Exchange) -> None:
        if exchange.method == "session/request_permission" and exchange.by == "agent" and exchange.answered is not None:
            self._permitted(exchange, exchange.answered)
        elif exchange.method == "session/prompt" and exchange.by == "client":
            self._turn_ended(exchange)

    def _progress(self, call: _Call, given: str, status: str, frame: Frame, session_id: str) -> None:
        left = call.status in _ENDED and status not in (call.status, *_ENDED)
        wrong = f"the tool call {given!r} went from {call.status} to {status}" if left else None
        self.judge("lint.tool.status-kept", wrong, call.first, frame, session=session_id)
        if call.waits is not None:
            if status == "completed":
                problem = f"the tool call {given!r} was completed while its permission was asked for"
                self.found("tool.waits-for-permission", problem, call.waits.frame, frame, session=session_id)
        elif call.refused is not None and status == "completed":
            problem = f"the tool call {given!r} was completed, although its permission was refused"
            # The agent may call a refusal that it reported to the model a completed call.
            self.found("tool.waits-for-permission", problem, call.refused, frame, session=session_id, severity="warn")
        call.status = status

    def _permitted(self, exchange: Exchange, frame: Frame) -> None:
        session = self.conversation.session_of(exchange)
        code = object_of(exchange.error).get("code")
        refused = "the client does not know session/request_permission" if code == -32601 else None
        self.judge("permission.always-offered", refused, exchange.frame, frame)
        outcome = exchange.fields.get("outcome")
        fields = object_of(outcome)
        chosen = fields.get("optionId")
        options = {option.get("optionId"): option for option in objects(exchange.params.get("options"))}
        if fields.get("outcome") == "selected" and isinstance(chosen, str) and options:
            wrong = None if chosen in options else f"the option {chosen!r} was not offered"
            self.judge("permission.selected-is-offered", wrong, exchange.frame, frame)
        cancelled = session.cancelled if session is not None else None
        is_first = self.conversation.version == 1  # in version 2 the agent withdraws its questions
        was_open = session is not None and self.conversation.is_read_before_cancel(exchange.frame, session, RACE)
        if is_first and cancelled is not None and was_open and exchange.succeeded:
            said = fields.get("outcome")
            wrong = (
                None
                if said == "cancelled"
                else f"a permission that was open at session/cancel was answered with {said!r}"
            )
            self.judge("prompt.cancel.permissions-cancelled", wrong, cancelled, frame, session=exchange.session_id)
        self._remember(exchange, frame, fields, options.get(chosen, {}))

    def _remember(self, exchange: Exchange, frame: Frame, outcome: dict[str, Any], option: dict[str, Any]) -> None:
        self.saw("tool.waits-for-permission", "agent")
        for call in self._calls.values():
            if call.waits is exchange:
                call.waits = None
                is_no = outcome.get("outcome") == "cancelled" or str(option.get("kind", "")).startswith("reject")
                call.refused = frame if is_no else None

    def _turn_ended(self, exchange: Exchange) -> None:
        """Judge the calls of a turn that went to its end: a cancelled or refused turn may leave its calls open."""
        session_id, answered = exchange.session_id or "", exchange.answered or exchange.frame
        for (owner, given), call in self._calls.items():
            if owner != session_id or not call.in_turn:
                continue
            call.in_turn = False
            if exchange.fields.get("stopReason") != "end_turn":
                continue
            problem = None
            if call.status not in _ENDED:
                problem = f"the tool call {given!r} was {call.status} when its turn ended"
            self.judge("tool.end-reported", problem, call.first, answered, session=session_id)

    def _places(self, fields: dict[str, Any], frame: Frame) -> None:
        for place in objects(fields.get("locations")):
            self._path(place.get("path"), "a location's path", frame)
            self._line(place.get("line"), "a location's line", frame)
        for item in objects(fields.get("content")):
            if item.get("type") == "diff":
                for change in [item, *objects(item.get("changes"))]:
                    self._path(change.get("path"), "a diff's path", frame)
                    self._path(change.get("oldPath"), "a diff's old path", frame)

    def _request_places(self, exchange: Exchange) -> None:
        name = "cwd" if exchange.method == "terminal/create" else "path"
        self._path(exchange.params.get(name), f"{name} of {exchange.method}", exchange.frame)
        self._line(exchange.params.get("line"), f"line of {exchange.method}", exchange.frame)

    def _path(self, path: Any, where: str, frame: Frame) -> None:
        if isinstance(path, str):
            wrong = None if is_absolute(path) else f"{where} is {path!r}"
            self.judge("paths.agent-sends-absolute", wrong, frame)

    def _line(self, line: Any, where: str, frame: Frame) -> None:
        if isinstance(line, int):
            self.judge("lines.agent-counts-from-one", f"{where} is 0" if line == 0 else None, frame)
