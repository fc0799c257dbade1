"""Tool calls: their ids, their status, their locations, and the permissions for which they wait.

In version 2 updates merge: a thing with an id is created or patched by its update, and running work is listed. A tool
call or a terminal needs no announcement: its first update creates it. So `Upserts` does not judge which update comes
first. It judges what a client would show wrongly: an ended tool call that runs again, a list of background work with an
unknown entry, a replay that adds its chunks to a message that the client already has.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

from accord_check.conversation import Exchange, Frame, Update, object_of, objects, repeated
from accord_check.passive.observer import Observer
from accord_check.passive.sessions import is_absolute
from accord_check.passive.terminals_and_forms import is_base64
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
    def begin(self) -> None:
        self._calls: dict[tuple[str, str], _Call] = {}

    def update(self, update: Update) -> None:
        session_id, frame = update.session_id, update.frame
        given = update.fields.get("toolCallId")
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
            self.judge("tool.id-unique", call is None or f"a second tool call has the id {given!r}", frame)
        else:
            verdict = call is not None or f"an update of the tool call {given!r}, which was not announced"
            self.judge("lint.tool.announced", verdict, frame)
        if call is None or update.kind == "tool_call":
            in_turn = update.session is not None and bool(update.session.turns)
            self._calls[key] = _Call(frame, status if isinstance(status, str) else "pending", in_turn)
            return
        if isinstance(status, str):
            self._progress(call, given, status, frame)

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
        self.judge("permission.ids-unique", not repeated(ids) or f"two options have the same id, among {ids}", exchange)
        self.judge("lint.permission.has-options", None if ids else "no option was given", exchange)

    def answer(self, exchange: Exchange, frame: Frame) -> None:
        if exchange.method == "session/request_permission" and exchange.by == "agent":
            self._permitted(exchange, frame)
        elif exchange.method == "session/prompt" and exchange.by == "client":
            self._turn_ended(exchange, frame)

    def _progress(self, call: _Call, given: str, status: str, frame: Frame) -> None:
        left = call.status in _ENDED and status not in (call.status, *_ENDED)
        verdict = not left or f"the tool call {given!r} went from {call.status} to {status}"
        self.judge("lint.tool.status-kept", verdict, call.first, frame)
        if status == "completed" and call.waits is not None:
            problem = f"the tool call {given!r} was completed while its permission was asked for"
            self.found("tool.waits-for-permission", problem, call.waits.frame, frame)
        elif status == "completed" and call.refused is not None:
            problem = f"the tool call {given!r} was completed, although its permission was refused"
            # The agent may call a refusal that it reported to the model a completed call.
            self.found("tool.waits-for-permission", problem, call.refused, frame, severity="warn")
        call.status = status

    def _permitted(self, exchange: Exchange, frame: Frame) -> None:
        session = self.conversation.session_of(exchange)
        code = object_of(exchange.error).get("code")
        verdict = code != -32601 or "the client does not know session/request_permission"
        self.judge("permission.always-offered", verdict, exchange)
        outcome = exchange.fields.get("outcome")
        fields = object_of(outcome)
        chosen = fields.get("optionId")
        options = {option.get("optionId"): option for option in objects(exchange.params.get("options"))}
        if fields.get("outcome") == "selected" and isinstance(chosen, str) and options:
            verdict = chosen in options or f"the option {chosen!r} was not offered"
            self.judge("permission.selected-is-offered", verdict, exchange)
        cancelled = session.cancelled if session is not None else None
        is_first = self.conversation.version == 1  # in version 2 the agent withdraws its questions
        was_open = session is not None and self.conversation.is_read_before_cancel(exchange.frame, session, RACE)
        if is_first and cancelled is not None and was_open and exchange.succeeded:
            said = fields.get("outcome")
            verdict = said == "cancelled" or f"a permission that was open at session/cancel was answered with {said!r}"
            self.judge("prompt.cancel.permissions-cancelled", verdict, cancelled, frame)
        self._remember(exchange, frame, fields, options.get(chosen, {}))

    def _remember(self, exchange: Exchange, frame: Frame, outcome: dict[str, Any], option: dict[str, Any]) -> None:
        self.saw("tool.waits-for-permission", "agent")
        for call in self._calls.values():
            if call.waits is exchange:
                call.waits = None
                is_no = outcome.get("outcome") == "cancelled" or str(option.get("kind", "")).startswith("reject")
                call.refused = frame if is_no else None

    def _turn_ended(self, exchange: Exchange, answered: Frame) -> None:
        """Judge the calls of a turn that went to its end: a cancelled or refused turn may leave its calls open."""
        for (owner, given), call in self._calls.items():
            if owner != exchange.session_id or not call.in_turn:
                continue
            call.in_turn = False
            if exchange.fields.get("stopReason") != "end_turn":
                continue
            still = f"the tool call {given!r} was {call.status} when its turn ended"
            self.judge("tool.end-reported", call.status in _ENDED or still, call.first, answered)

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
            self.judge("paths.agent-sends-absolute", is_absolute(path) or f"{where} is {path!r}", frame)

    def _line(self, line: Any, where: str, frame: Frame) -> None:
        if isinstance(line, int):
            self.judge("lines.agent-counts-from-one", line != 0 or f"{where} is 0", frame)


_ENDED_V2 = ("completed", "failed", "cancelled")


@dataclass(slots=True)
class _Thing:
    """A tool call or a terminal."""

    first: Frame
    status: str = ""
    """A tool call's status, and `exited` for a terminal whose command has ended."""
    in_foreground: bool = False
    """Whether it belongs to the work that runs now."""
    may_be_cancelled: bool = False
    withdrawn: Frame | None = None
    """The update that removed the capability to cancel it."""


@dataclass(slots=True)
class _Timeline:
    """The client's view of a session."""

    things: dict[tuple[str, str], _Thing] = field(default_factory=dict[tuple[str, str], _Thing])
    """By kind (`tool_call`, `terminal`) and id."""
    messages: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    replayed: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    """The messages that the running replay has begun."""
    background: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])


class Upserts(Observer):
    version = 2

    def begin(self) -> None:
        self._timelines: dict[str, _Timeline] = {}

    def request(self, exchange: Exchange) -> None:
        session_id = exchange.session_id
        if session_id is None:
            return
        timeline = self._timelines.setdefault(session_id, _Timeline())
        if exchange.method == "session/resume":
            timeline.replayed = set()
        elif exchange.method in ("tool_call/cancel", "terminal/cancel"):
            self._cancel(exchange, timeline)
        elif exchange.method == "session/request_permission":
            fields = object_of(object_of(exchange.params.get("subject")).get("toolCall"))
            self._tool(fields, timeline, exchange.frame, replays=False)

    def update(self, update: Update) -> None:
        frame = update.frame
        timeline = self._timelines.setdefault(update.session_id, _Timeline())
        match update.kind:
            case "tool_call_update":
                self._tool(update.fields, timeline, frame, replays=update.is_replayed)
            case "terminal_update" | "terminal_output_chunk":
                self._terminal(update.fields, timeline, frame)
            case "state_update":
                self._state(update, timeline)
            case kind if kind.startswith(("user_message", "agent_message", "agent_thought")):
                self._message(update, timeline)
            case _:
                pass

    def _tool(self, fields: dict[str, Any], timeline: _Timeline, frame: Frame, *, replays: bool) -> None:
        given, status = fields.get("toolCallId"), fields.get("status")
        if not isinstance(given, str):
            return
        call = timeline.things.get(("tool_call", given))
        if call is None:
            call = timeline.things["tool_call", given] = _Thing(frame, "pending", in_foreground=not replays)
            verdict = isinstance(fields.get("title"), str) or f"the tool call {given!r} begins without a title"
            self.judge("lint.tool.titled", verdict, frame)
        self._offer(call, fields, frame)
        if not isinstance(status, str):
            return
        left = call.status in _ENDED_V2 and status not in _ENDED_V2 and not replays
        verdict = not left or f"the tool call {given!r} went from {call.status} to {status}"
        self.judge("lint.tool.status-kept", verdict, call.first, frame)
        call.status = status

    def _terminal(self, fields: dict[str, Any], timeline: _Timeline, frame: Frame) -> None:
        given = fields.get("terminalId")
        if not isinstance(given, str):
            return
        terminal = timeline.things.setdefault(("terminal", given), _Thing(frame))
        self._offer(terminal, fields, frame)
        if isinstance(fields.get("exitStatus"), dict):
            terminal.status = "exited"
        for data in (fields.get("data"), object_of(fields.get("output")).get("data")):
            if isinstance(data, str):
                verdict = is_base64(data) or f"the data begins with {data[:40]!r}"
                self.judge("content.agent-binary-base64", verdict, frame)

    def _offer(self, thing: _Thing, fields: dict[str, Any], frame: Frame) -> None:
        if "capabilities" not in fields:
            return
        offered = isinstance(object_of(fields["capabilities"]).get("cancel"), dict)
        if thing.may_be_cancelled and not offered:
            thing.withdrawn = frame
        thing.may_be_cancelled = offered

    def _cancel(self, exchange: Exchange, timeline: _Timeline) -> None:
        name = "toolCallId" if exchange.method == "tool_call/cancel" else "terminalId"
        given = exchange.params.get(name)
        thing = timeline.things.get((exchange.method.partition("/")[0], given)) if isinstance(given, str) else None
        if thing is not None and thing.withdrawn is not None and exchange.frame.time - thing.withdrawn.time < RACE:
            return  # the offer was withdrawn while the request was on its way
        offered = thing is not None and thing.may_be_cancelled
        verdict = offered or f"{exchange.method} for {given!r}, which does not offer it"
        self.judge("lint.tool.cancel-offered", verdict, exchange)

    def _state(self, update: Update, timeline: _Timeline) -> None:
        listed, frame = update.fields.get("background"), update.frame
        if isinstance(listed, list):
            self._background(update, timeline)
        if update.fields.get("state") != "idle" or update.is_replayed:
            return
        for key, thing in timeline.things.items():
            if not thing.in_foreground:
                continue
            thing.in_foreground = False
            if key in timeline.background or update.fields.get("stopReason") != "end_turn":
                continue
            still = f"the tool call {key[1]!r} was {thing.status} when its work ended"
            self.judge("tool.end-reported", thing.status in _ENDED_V2 or still, thing.first, frame)

    def _background(self, update: Update, timeline: _Timeline) -> None:
        frame, before = update.frame, timeline.background
        now = {key for item in objects(update.fields.get("background")) if (key := _key_of(item)) is not None}
        unknown = sorted(now - timeline.things.keys())
        verdict = not unknown or f"the background work {unknown[0][1]!r} was shown by no update"
        self.judge("lint.background.announced", verdict, frame)
        running = [key for key in sorted(before - now) if timeline.things[key].status not in (*_ENDED_V2, "exited")]
        verdict = not running or f"{running[0][1]!r} left the background without an end"
        self.judge("lint.background.ended-first", verdict, frame)
        timeline.background = now & timeline.things.keys()

    def _message(self, update: Update, timeline: _Timeline) -> None:
        given = update.fields.get("messageId")
        if not isinstance(given, str):
            return
        # Each kind of message has its own ids.
        key = (update.kind.removesuffix("_chunk"), given)
        if update.is_replayed and key not in timeline.replayed:
            timeline.replayed.add(key)
            added = key in timeline.messages and update.kind.endswith("_chunk")
            verdict = not added or f"the replay adds to the message {given!r}, which the client has"
            self.judge("lint.replay.messages-cleared", verdict, update, same=f"adds {update.session_id}")
        timeline.messages.add(key)


def _key_of(item: dict[str, Any]) -> tuple[str, str] | None:
    """Return the key of an entry of a background list; None for a subagent, and for unknown kinds."""
    kind = item.get("type")
    given = item.get({"tool_call": "toolCallId", "terminal": "terminalId"}.get(str(kind), ""))
    return (str(kind), given) if isinstance(given, str) else None
