"""`FoldedTurn`: the folded state of one turn of a session, as of any of its messages.

    rows of the turn ──▶ SessionState (messages, tool calls, plan) ──┐
                     └─▶ permissions, files, terminals, errors ──────┴──▶ items, in the order in which they began

Only the turn is folded. The session's other state (mode, options, plan, usage, title) is replaced as a whole by each
update, so `settings_at` folds the last update of each kind. Inside a long turn, `Folds` keeps copies: a jump folds at
most `EVERY` messages.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from contextlib import suppress
from typing import Any

from accord import AccordError, DecodeError, Unknown, v1
from accord.schema.codec import convert, plain
from accord.session import Message, SessionState, ToolCallState
from accord.trace.meaning import body_of, items_of
from accord_tools.inspector.message_rows import LARGE, describe, message_of, short
from accord_tools.inspector.trace_index import OPENS, POLL, PROMPT, SETTINGS, TraceIndex, Turn
from accord_tools.inspector.trace_lines import ANSWER, ERROR, LONGEST_NAME, NOTIFICATION, REQUEST

EVERY = 5_000
"""Messages between two copies of the folded state of a long turn."""

MOST_COPIES = 16
MOST_TURNS = 6

MOST_TEXT = 100_000
"""Characters of one text that the page gets."""

MOST_ITEMS = 300
"""The most items that the page gets at once: the last ones before the selected message."""

ASKS = {"session/request_permission": "permission", "elicitation/create": "question"}
HIDDEN = frozenset((POLL, PROMPT))
WAIT = "terminal/wait_for_exit"
_OPTION = ("optionId", "name", "kind")


class TurnItem:
    """One thing in a turn: a message, a tool call, a question, a request to the client, the end."""

    def __init__(self, kind: str, row: int, place: int | None = None, data: dict[str, Any] | None = None) -> None:
        self.kind = kind
        self.rows = [row, row]
        """The first and the last message that made it."""
        self.count = 1
        """How many messages made it."""
        self.place = place
        """Its place in the folded state, if it is a message or a tool call."""
        self.data: dict[str, Any] = data or {}

    def touch(self, row: int) -> None:
        """Note one more message that made it."""
        self.rows[1] = row
        self.count += 1


class FoldedTurn:
    """One turn of a session, folded up to a message."""

    def __init__(self, index: TraceIndex, session: int, first: int) -> None:
        self._index = index
        self._session = session
        self._first = first
        self._version = index.version
        self._state = SessionState()
        self._items: list[TurnItem] = []
        self._by_request: dict[int, TurnItem] = {}
        self._by_tool: dict[str, TurnItem] = {}
        self._by_message: dict[tuple[str, str], TurnItem] = {}
        self._terminals: dict[str, dict[str, Any]] = {}
        """The output of each lent command so far, and its end: `output`, `exitCode`, `signal`."""
        self.next = first
        """The first row that is not folded yet."""

    def copied(self) -> FoldedTurn:
        """Return an independent copy."""
        made = FoldedTurn.__new__(FoldedTurn)
        shared = {id(self._index): self._index}  # the memo of `deepcopy`: its contents are not copied
        made.__dict__.update(copy.deepcopy(self.__dict__, shared))
        return made

    def fold(self, end: int) -> None:
        """Fold the messages of this session up to row `end`, without it."""
        columns = self._index.columns
        sessions, kinds = columns.session, columns.kind
        for row in range(self.next, end):
            if sessions[row] == self._session and kinds[row] in (REQUEST, NOTIFICATION, ANSWER, ERROR):
                self._add(row, kinds[row])
        self.next = max(self.next, end)

    def _add(self, row: int, kind: int) -> None:
        columns = self._index.columns
        if columns.size(row) > LARGE * 64:
            self._items.append(TurnItem("large", row, data={"size": columns.size(row)}))
            return
        message = message_of(self._index, row, most=LARGE * 64)
        method = self._index.methods[columns.method[row]]
        params = body_of(message.get("params"))
        try:
            if kind == NOTIFICATION and columns.update[row]:
                self._add_update(row, params)
            elif kind == NOTIFICATION and method == "session/cancel":
                self._items.append(TurnItem("cancel", row))
                self._state.cancel_unfinished()
            elif kind == REQUEST:
                self._add_request(row, method, message, params)
            elif kind != NOTIFICATION:
                self._add_answer(row, method, message, is_error=kind == ERROR)
        except AccordError as error:
            self._items.append(TurnItem("broken", row, data={"problem": str(error)[:300]}))

    def _add_update(self, row: int, params: dict[str, Any]) -> None:
        before = len(self._state)
        update = body_of(params.get("update"))
        self._begin_earlier(update.get("toolCallId"))
        self._state.add(_read_update(params, self._version))
        self._note_entry(row, before, update)

    def _note_entry(self, row: int, before: int, update: dict[str, Any]) -> None:
        """Note which message or tool call an update has begun or changed."""
        kind, tool = str(update.get("sessionUpdate")), update.get("toolCallId")
        speaker = kind.removesuffix("_chunk")
        named = (speaker, str(update.get("messageId") or ""))
        if len(self._state) > before:
            item = TurnItem("entry", row, before, self._beginning(tool, update.get("messageId")))
            self._items.append(item)
            if isinstance(tool, str):
                self._by_tool[tool] = item
            else:
                self._by_message[named] = item
            return
        found = self._by_tool.get(tool) if isinstance(tool, str) else self._by_message.get(named)
        if found is not None:
            found.touch(row)
        elif kind in ("plan", "plan_update", "current_mode_update", "session_info_update"):
            detail = describe("", kind, {"params": {"update": update}}, is_answer=False)[1]
            self._items.append(TurnItem("setting", row, data={"what": kind, "detail": detail, "value": update}))

    def _begin_earlier(self, tool: object) -> None:
        """Fold the beginning of a tool call of an earlier turn: its later updates leave out its title."""
        known = {} if not isinstance(tool, str) or tool in self._by_tool else self._beginning(tool, None)
        if known:
            with suppress(AccordError):
                _add_update_at(self._state, self._index, known["beganAt"])

    def _beginning(self, tool: object, message: object) -> dict[str, Any]:
        """Return where an entry began, if that was in an earlier turn: this turn shows a change of it."""
        index, named = self._index, tool if isinstance(tool, str) else message
        began = index.tool_calls if isinstance(tool, str) else index.messages
        row = began.get((self._session, named[:LONGEST_NAME])) if isinstance(named, str) else None
        if row is None or row >= self._first:
            return {}
        turn = index.sessions[self._session].turn_at(row)
        return {"beganAt": row, "beganIn": 0 if turn is None else turn.prompt}

    def _add_request(self, row: int, method: str, message: dict[str, Any], params: dict[str, Any]) -> None:
        if method == PROMPT:
            self._add_prompt(row, params)
            return
        if method in HIDDEN or method in OPENS:
            return
        kind = ASKS.get(method, "request")
        item = TurnItem(kind, row, data={"method": method, "detail": describe(method, "", message, is_answer=False)[1]})
        if kind == "permission":
            item.data["options"] = [
                {name.removeprefix("option").lower(): short(body_of(option).get(name)) for name in _OPTION}
                for option in items_of(params.get("options"))[:50]
            ]
            item.data["tool"] = short(body_of(params.get("toolCall")).get("toolCallId"))
            self._fold_tool_call(row, params)
        self._items.append(item)
        self._by_request[row] = item

    def _fold_tool_call(self, row: int, params: dict[str, Any]) -> None:
        """Fold a permission request's changes of its tool call."""
        before = len(self._state)
        try:
            call = convert(body_of(params.get("toolCall")), v1.ToolCallUpdate)
            self._state.add(call.as_update())
        except AccordError:
            return
        self._note_entry(row, before, {"sessionUpdate": "tool_call_update", "toolCallId": call.tool_call_id})

    def _add_prompt(self, row: int, params: dict[str, Any]) -> None:
        before = len(self._state)
        self._state.add_prompt(convert(params.get("prompt"), list[v1.ContentBlock]))
        if len(self._state) > before:
            item = TurnItem("entry", row, before)
            self._by_message["user_message", ""] = item
            self._items.append(item)

    def _add_answer(self, row: int, method: str, message: dict[str, Any], *, is_error: bool) -> None:
        asked = self._index.columns.pair[row]
        item = self._by_request.get(asked)
        if method in (POLL, WAIT) and not is_error:
            self._add_output(asked, body_of(message.get("result")))
        detail = describe(method, "", message, is_answer=True)[1]
        if method == PROMPT:
            stop = body_of(message.get("result")).get("stopReason")
            if self._version == 1 or is_error:
                self._state.end_turn()
            if stop == "cancelled":
                self._state.cancel_unfinished()
            if stop or is_error:
                usage = body_of(body_of(message.get("result")).get("usage"))
                self._items.append(
                    TurnItem("error" if is_error else "end", row, data={"detail": detail, "usage": usage})
                )
        elif item is not None:
            item.touch(row)
            outcome = body_of(body_of(message.get("result")).get("outcome"))
            item.data["answer"] = detail
            item.data["chosen"] = short(outcome.get("optionId"))
            item.data["failed"] = is_error
            item.data["took"] = self._index.columns.latency(row)

    def _add_output(self, asked: int, result: dict[str, Any]) -> None:
        """Note the output of a lent command, or its end."""
        terminal = body_of(message_of(self._index, asked, most=LARGE).get("params")).get("terminalId")
        if not isinstance(terminal, str):
            return
        known = self._terminals.setdefault(terminal[:LONGEST_NAME], {})
        if isinstance(output := result.get("output"), str):
            known["output"] = output[-MOST_TEXT:]
        ended = result if "exitCode" in result or "signal" in result else body_of(result.get("exitStatus"))
        for name in ("exitCode", "signal"):
            if isinstance(value := ended.get(name), int | str):
                known[name] = value

    # Reading

    def plain(self, most: int = MOST_ITEMS) -> dict[str, Any]:
        """The items as the page gets them: the last ones, and how many are before them."""
        left_out = max(len(self._items) - most, 0)
        shown = self._items[left_out:]
        places = [item.place for item in shown if item.place is not None]
        first = min(places, default=0)
        entries = dict(enumerate(self._state.between(first), first))
        return {"leftOut": left_out, "items": [self._plain_item(item, entries) for item in shown]}

    def _plain_item(self, item: TurnItem, entries: dict[int, Message | ToolCallState]) -> dict[str, Any]:
        times = self._index.columns.time
        found: dict[str, Any] = {
            "type": item.kind,
            "rows": item.rows,
            "count": item.count,
            "begin": times[item.rows[0]],
            "end": times[item.rows[1]],
            **item.data,
        }
        entry = None if item.place is None else entries.get(item.place)
        if isinstance(entry, Message):
            found |= {"type": "message", "speaker": entry.speaker, "content": cut(plain(entry.content))}
        elif isinstance(entry, ToolCallState):
            ids = [it.terminal_id for it in entry.content if isinstance(it, v1.Terminal)]
            terminals = {it: self._terminals[it] for it in ids if it in self._terminals}
            found |= {"type": "tool", "call": cut(plain(entry)), "terminals": terminals}
        return found


def _add_update_at(state: SessionState, index: TraceIndex, row: int) -> None:
    state.add(_read_update(body_of(message_of(index, row).get("params")), index.version))


def _read_update(params: dict[str, Any], version: int) -> Any:
    if version == 2:
        from accord import v2

        return convert(params, v2.UpdateSessionNotification).update
    return convert(params, v1.SessionNotification).update


class Folds:
    """The turns that were folded last, with copies inside of long ones."""

    def __init__(self, index: TraceIndex) -> None:
        self._index = index
        self._turns: OrderedDict[tuple[int, int], list[FoldedTurn]] = OrderedDict()

    def at(self, session: int, turn: Turn | None, end: int) -> FoldedTurn:
        """The turn folded up to row `end`, without it."""
        first = 0 if turn is None else turn.first
        key = (session, first)
        copies = self._turns.setdefault(key, [FoldedTurn(self._index, session, first)])
        self._turns.move_to_end(key)
        if len(self._turns) > MOST_TURNS:
            self._turns.popitem(last=False)
        working = max((it for it in copies if it.next <= max(end, first)), key=lambda it: it.next).copied()
        while working.next < end:
            working.fold(min(working.next + EVERY, end))
            if working.next - copies[-1].next >= EVERY:
                copies.append(working.copied())
        if len(copies) > MOST_COPIES:
            del copies[1:-1:2]
        return working


def settings_at(index: TraceIndex, session: int, end: int) -> dict[str, Any]:
    """The settings of a session before row `end`: mode, options, plan, usage, title, commands."""
    rows = index.sessions[session]
    state = SessionState()
    opening = max((row for row in rows.openings if row < end), default=None)
    if opening is not None:
        _open(state, body_of(message_of(index, opening).get("result")))
    for row in sorted(row for update in SETTINGS if (row := rows.setting_before(update, end)) is not None):
        with suppress(AccordError):
            _add_update_at(state, index, row)
    return {
        "title": state.title,
        "mode": state.mode,
        "modes": [mode.id for mode in state.modes],
        "model": state.model,
        "options": [
            {"id": option.config_id, "name": option.name, "value": plain(option.current_value)}
            for option in state.config
        ],
        "plan": plain(state.plan),
        "usage": None if state.usage is None else plain(state.usage),
        "commands": [command.name for command in state.commands if not isinstance(command, Unknown)],
    }


def _open(state: SessionState, result: dict[str, Any]) -> None:
    try:
        opened = convert({"sessionId": "", **result}, v1.NewSessionResponse)
    except DecodeError:
        return
    state.set_modes(opened.modes)
    state.set_models(opened.models)
    state.set_config(opened.config_options)


def cut(value: Any) -> Any:
    """Return a value with its long texts cut: the page shows them, and reads the whole message on demand."""
    if isinstance(value, str):
        return value if len(value) <= MOST_TEXT else f"{value[:MOST_TEXT]}… ({len(value):,} characters)"
    if isinstance(value, dict):
        return {name: cut(member) for name, member in body_of(value).items()}
    if isinstance(value, list | tuple):
        return [cut(member) for member in items_of(list(value))]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return value
