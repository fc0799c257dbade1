"""The spans of one turn, and where its time went: to the model, to tools, to the client, to the user.

Each moment belongs to the first of these that applies: `user` (a permission or a form is open), `client` (another
request of the agent to the client is open), `tool` (a tool call is in progress), else `model`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from accord.trace.meaning import body_of
from accord_tools.inspector.message_rows import describe, message_of, short
from accord_tools.inspector.trace_index import POLL, TraceIndex, Turn
from accord_tools.inspector.trace_lines import NOTIFICATION, REQUEST

ORDER: tuple[str, ...] = ("user", "client", "tool")
"""The owner of a moment, the first that applies; else the model."""

ASKS_USER = frozenset(("session/request_permission", "elicitation/create"))
OPEN_ENDED = frozenset(("terminal/wait_for_exit",))
"""Requests that wait for a command: the time belongs to the tool."""

SPEAKING = {
    "agent_message_chunk": "text",
    "agent_thought_chunk": "thought",
    "agent_message": "text",
    "agent_thought": "thought",
}
FINAL = frozenset(("completed", "failed", "cancelled"))

APART = 1.0
"""Seconds between two chunks from which on they are two spans."""

MOST_SPANS = 1_500


class Span(NamedTuple):
    """A part of a turn that took time."""

    kind: str
    label: str
    begin: float
    end: float
    row: int
    status: str = ""


class _Tool(msgspec.Struct):
    begin: float
    row: int
    working: float | None = None
    end: float | None = None
    label: str = ""
    status: str = "pending"

    def take(self, update: dict[str, Any], time: float) -> None:
        kind = short(update.get("kind"))
        title = short(update.get("title"))
        self.label = f"{kind} {title}".strip() or self.label
        status = short(update.get("status"))
        if status and (self.status != "cancelled" or status == "completed"):  # as `ToolCallState.updated`
            self.status = status
        if self.status != "pending" and self.working is None:
            self.working = time
        if self.status in FINAL and self.end is None:
            self.end = time


class TurnSpans:
    """The spans of one turn, read from its messages."""

    def __init__(self, index: TraceIndex, turn: Turn, end: int) -> None:
        self._index = index
        self._session = turn.session
        self.begin = turn.begin
        self.spans: list[Span] = []
        self.first_update: float | None = None
        self.first_text: float | None = None
        self.chunks = 0
        self.longest_silence = (0.0, turn.first)
        self._tools: dict[str, _Tool] = {}
        self._speaking: dict[str, Span] = {}
        last = turn.end if turn.end is not None else end - 1
        self.end = turn.ended_at if turn.ended_at is not None else index.columns.time[max(last, turn.first)]
        self._read(turn.first, last)

    def _read(self, first: int, last: int) -> None:
        columns = self._index.columns
        before = self.begin
        for row in range(first, last + 1):
            if columns.session[row] != self._session:
                continue
            time = columns.time[row]
            if time - before > self.longest_silence[0]:
                self.longest_silence = (time - before, row)
            before = time
            if columns.kind[row] == NOTIFICATION and columns.update[row]:
                self._take_update(row, time)
            elif columns.kind[row] == NOTIFICATION and self._index.methods[columns.method[row]] == "session/cancel":
                for tool in self._tools.values() if self._index.version == 1 else ():
                    tool.status = tool.status if tool.status in FINAL else "cancelled"
            elif columns.kind[row] == REQUEST and not columns.to_agent[row]:
                self._take_request(row, time)
        self.spans += self._speaking.values()
        self.spans += [
            Span("tool", tool.label or "tool call", tool.begin, tool.end or self.end, tool.row, tool.status)
            for tool in self._tools.values()
        ]
        self.spans.sort(key=lambda span: span.begin)

    def _take_update(self, row: int, time: float) -> None:
        update = self._index.updates[self._index.columns.update[row]]
        if self.first_update is None:
            self.first_update = time
        if (kind := SPEAKING.get(update)) is not None:
            self._speak(kind, row, time)
        elif update in ("tool_call", "tool_call_update"):
            content = body_of(body_of(message_of(self._index, row).get("params")).get("update"))
            tool = self._tools.setdefault(short(content.get("toolCallId")), _Tool(time, row))
            tool.take(content, time)

    def _speak(self, kind: str, row: int, time: float) -> None:
        self.chunks += 1
        if kind == "text" and self.first_text is None:
            self.first_text = time
        current = self._speaking.get(kind)
        if current is not None and time - current.end <= APART:
            self._speaking[kind] = current._replace(end=time)
            return
        if current is not None:
            self.spans.append(current)
        self._speaking[kind] = Span(kind, kind, time, time, row)

    def _take_request(self, row: int, time: float) -> None:
        columns = self._index.columns
        method = self._index.methods[columns.method[row]]
        if method == POLL:
            return
        pair = columns.pair[row]
        end = self.end if pair < 0 else min(columns.time[pair], self.end)
        kind = "user" if method in ASKS_USER else "wait" if method in OPEN_ENDED else "client"
        words = describe(method, "", message_of(self._index, row), is_answer=False)[1]
        self.spans.append(Span(kind, f"{method} {words}".strip(), time, end, row, "" if pair >= 0 else "open"))

    def shares(self) -> dict[str, float]:
        """Seconds of the turn that belong to each of `user`, `client`, `tool` and `model`."""
        edges: list[tuple[float, int, str]] = []
        for kind, since, until in self._busy():
            begin, end = max(since, self.begin), min(until, self.end)
            if kind in ORDER and end > begin:
                edges += [(begin, 1, kind), (end, -1, kind)]
        edges.sort()
        found: dict[str, float] = dict.fromkeys((*ORDER, "model"), 0.0)
        open_now = dict.fromkeys(ORDER, 0)
        at = self.begin
        for time, change, kind in [*edges, (self.end, 0, "user")]:
            found[next((it for it in ORDER if open_now[it]), "model")] += time - at
            at = time
            open_now[kind] += change
        return found

    def _busy(self) -> list[tuple[str, float, float]]:
        tools = [("tool", tool.working or tool.begin, tool.end or self.end) for tool in self._tools.values()]
        others = [("tool" if span.kind == "wait" else span.kind, span.begin, span.end) for span in self.spans]
        return tools + [it for it in others if it[0] != "tool"]

    def plain(self) -> dict[str, Any]:
        """The spans and numbers as the page gets them."""
        spoken = (self.end - self.first_update) if self.first_update is not None else 0.0
        return {
            "begin": self.begin,
            "end": self.end,
            "spans": self.spans[:MOST_SPANS],
            "leftOut": max(len(self.spans) - MOST_SPANS, 0),
            "shares": self.shares(),
            "firstUpdate": None if self.first_update is None else self.first_update - self.begin,
            "firstText": None if self.first_text is None else self.first_text - self.begin,
            "chunksPerSecond": self.chunks / spoken if spoken > 0 else None,
            "longestSilence": list(self.longest_silence),
        }
