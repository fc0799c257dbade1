"""How updates of version 2 merge: what has an id is created or patched by it, and what runs on is listed.

A tool call or a terminal needs no announcement: its first update creates it. So nothing here judges which update comes
first. What is judged is what a client would show wrongly: an ended tool call that runs again, a list of background work
that names what no update has shown, a replay that adds its chunks to a message that the client already has.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from accord_check.conversation import Exchange, Frame, Update, object_of, objects
from accord_check.passive.lent import is_base64
from accord_check.passive.observer import Observer
from accord_check.passive.turns import RACE

_ENDED = ("completed", "failed", "cancelled")


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
    """The update that took the capability to cancel it away."""


@dataclass(slots=True)
class _Timeline:
    """What a client has of a session."""

    things: dict[tuple[str, str], _Thing] = field(default_factory=dict[tuple[str, str], _Thing])
    """By kind (`tool_call`, `terminal`) and id."""
    messages: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    replayed: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    """The messages that the running replay has begun."""
    background: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])


class Upserts(Observer):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._timelines: dict[str, _Timeline] = {}

    def request(self, exchange: Exchange) -> None:
        session_id = exchange.session_id
        if self.conversation.version != 2 or session_id is None:
            return
        timeline = self._timelines.setdefault(session_id, _Timeline())
        if exchange.method == "session/resume":
            timeline.replayed = set()
        elif exchange.method in ("tool_call/cancel", "terminal/cancel"):
            self._cancel(exchange, timeline, session_id)
        elif exchange.method == "session/request_permission":
            fields = object_of(object_of(exchange.params.get("subject")).get("toolCall"))
            self._tool(fields, timeline, exchange.frame, session_id, replays=False)

    def update(self, update: Update) -> None:
        session_id, frame = update.told.session_id, update.told.frame
        if self.conversation.version != 2 or update.told.by != "agent" or session_id is None:
            return
        timeline = self._timelines.setdefault(session_id, _Timeline())
        replays = update.session is not None and update.session.replay is not None
        match update.kind:
            case "tool_call_update":
                self._tool(update.fields, timeline, frame, session_id, replays=replays)
            case "terminal_update" | "terminal_output_chunk":
                self._terminal(update.fields, timeline, frame, session_id)
            case "state_update":
                self._state(update, timeline, session_id, replays=replays)
            case kind if kind.startswith(("user_message", "agent_message", "agent_thought")):
                self._message(update, timeline, session_id, replays=replays)
            case _:
                pass

    def _tool(
        self, fields: dict[str, Any], timeline: _Timeline, frame: Frame, session_id: str, *, replays: bool
    ) -> None:
        given, status = fields.get("toolCallId"), fields.get("status")
        if not isinstance(given, str):
            return
        call = timeline.things.get(("tool_call", given))
        if call is None:
            call = timeline.things["tool_call", given] = _Thing(frame, "pending", in_foreground=not replays)
            untitled = (
                None if isinstance(fields.get("title"), str) else f"the tool call {given!r} begins without a title"
            )
            self.judge("lint.tool.titled", untitled, frame, session=session_id)
        self._offer(call, fields, frame)
        if not isinstance(status, str):
            return
        left = call.status in _ENDED and status not in _ENDED and not replays
        wrong = f"the tool call {given!r} went from {call.status} to {status}" if left else None
        self.judge("lint.tool.status-kept", wrong, call.first, frame, session=session_id)
        call.status = status

    def _terminal(self, fields: dict[str, Any], timeline: _Timeline, frame: Frame, session_id: str) -> None:
        given = fields.get("terminalId")
        if not isinstance(given, str):
            return
        terminal = timeline.things.setdefault(("terminal", given), _Thing(frame))
        self._offer(terminal, fields, frame)
        if isinstance(fields.get("exitStatus"), dict):
            terminal.status = "exited"
        for data in (fields.get("data"), object_of(fields.get("output")).get("data")):
            if isinstance(data, str):
                wrong = None if is_base64(data) else f"the data begins with {data[:40]!r}"
                self.judge("content.agent-binary-base64", wrong, frame, session=session_id)

    def _offer(self, thing: _Thing, fields: dict[str, Any], frame: Frame) -> None:
        if "capabilities" not in fields:
            return
        offered = isinstance(object_of(fields["capabilities"]).get("cancel"), dict)
        if thing.may_be_cancelled and not offered:
            thing.withdrawn = frame
        thing.may_be_cancelled = offered

    def _cancel(self, exchange: Exchange, timeline: _Timeline, session_id: str) -> None:
        name = "toolCallId" if exchange.method == "tool_call/cancel" else "terminalId"
        given = exchange.params.get(name)
        thing = timeline.things.get((exchange.method.partition("/")[0], given)) if isinstance(given, str) else None
        if thing is not None and thing.withdrawn is not None and exchange.frame.time - thing.withdrawn.time < RACE:
            return  # the offer was withdrawn while the request was on its way
        offered = thing is not None and thing.may_be_cancelled
        wrong = None if offered else f"{exchange.method} for {given!r}, which does not offer it"
        self.judge("lint.tool.cancel-offered", wrong, exchange.frame, session=session_id)

    def _state(self, update: Update, timeline: _Timeline, session_id: str, *, replays: bool) -> None:
        listed, frame = update.fields.get("background"), update.told.frame
        if isinstance(listed, list):
            self._background(update, timeline, session_id)
        if update.fields.get("state") != "idle" or replays:
            return
        for key, thing in timeline.things.items():
            if not thing.in_foreground:
                continue
            thing.in_foreground = False
            if key in timeline.background or update.fields.get("stopReason") != "end_turn":
                continue
            still = f"the tool call {key[1]!r} was {thing.status} when its work ended"
            problem = None if thing.status in _ENDED else still
            self.judge("tool.end-reported", problem, thing.first, frame, session=session_id)

    def _background(self, update: Update, timeline: _Timeline, session_id: str) -> None:
        frame, before = update.told.frame, timeline.background
        now = {key for item in objects(update.fields.get("background")) if (key := _key_of(item)) is not None}
        unknown = sorted(now - timeline.things.keys())
        wrong = f"the background work {unknown[0][1]!r} was shown by no update" if unknown else None
        self.judge("lint.background.announced", wrong, frame, session=session_id)
        running = [key for key in sorted(before - now) if timeline.things[key].status not in (*_ENDED, "exited")]
        left = f"{running[0][1]!r} left the background without an end" if running else None
        self.judge("lint.background.ended-first", left, frame, session=session_id)
        timeline.background = now & timeline.things.keys()

    def _message(self, update: Update, timeline: _Timeline, session_id: str, *, replays: bool) -> None:
        given = update.fields.get("messageId")
        if not isinstance(given, str):
            return
        # Each kind of message has ids of its own.
        key = (update.kind.removesuffix("_chunk"), given)
        if replays and key not in timeline.replayed:
            timeline.replayed.add(key)
            added = key in timeline.messages and update.kind.endswith("_chunk")
            problem = f"the replay adds to the message {given!r}, which the client has" if added else None
            self.judge(
                "lint.replay.messages-cleared",
                problem,
                update.told.frame,
                session=session_id,
                same=f"adds {session_id}",
            )
        timeline.messages.add(key)


def _key_of(item: dict[str, Any]) -> tuple[str, str] | None:
    """What an entry of a background list names; None for a subagent, and for what this version does not know."""
    kind = item.get("type")
    given = item.get({"tool_call": "toolCallId", "terminal": "terminalId"}.get(str(kind), ""))
    return (str(kind), given) if isinstance(given, str) else None
