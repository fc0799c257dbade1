"""Statistics of a trace: each method's latencies, where the time of each turn went, unanswered requests. PURE.

An unanswered request is a frequent cause of a hanging agent. A trace that still grows has open requests, too, so an
open request is a hint and not a fault.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from accord.trace.trace_entries import Entry

ASKING_THE_USER = ("session/request_permission", "elicitation/create")


class Unanswered(msgspec.Struct, frozen=True, kw_only=True):
    """A request without an answer, as of the end of its trace."""

    number: int
    """Its number in the trace; the first event has 1."""
    method: str
    asked_by: str
    """The side, or in a chain of proxies the component, that sent it."""
    waits_for: str
    """The side that must answer."""
    since: float
    """When it was sent, in seconds since the start of the trace."""
    waited: float
    """Seconds from then to the end of the trace."""
    session: str = ""

    @property
    def text(self) -> str:
        """The event, as a sentence."""
        return (
            f"{self.method} of the {self.asked_by} has no answer of the {self.waits_for}: "
            f"open for {self.waited:.1f} s, until the end of the trace"
        )

    @property
    def advice(self) -> str:
        """Return advice on where to look."""
        if self.method in ASKING_THE_USER:
            return "The client waits for its user, or does not show the question: see what the client shows"
        if self.method == "session/prompt":
            return "The turn has not ended: see its last message, and the other open requests of its session"
        return f"See the last messages and the standard error of the {self.waits_for} after this request"


def unanswered(request: Entry, end: float, role: str) -> Unanswered:
    """A request that has no answer in a trace that ends at `end`; `role` is that of the trace's header."""
    is_to_agent = (request.event.direction == "in") is (role == "agent")
    sides = ("client", "agent") if is_to_agent else ("agent", "client")
    asked_by, waits_for = request.event.hop or sides
    began = request.event.time
    return Unanswered(
        number=request.number,
        method=request.method,
        asked_by=asked_by,
        waits_for=waits_for,
        since=began,
        waited=max(end - began, 0.0),
        session=request.session,
    )


WORK_OF_THE_CLIENT = ("fs/", "terminal/", "mcp/")


class MethodFigures(msgspec.Struct):
    """The messages of one method."""

    method: str
    messages: int = 0
    size: int = 0
    """Bytes of the messages, and of the answers."""
    errors: int = 0
    durations: list[float] = []

    def percentile(self, percent: float) -> float | None:
        """Return the duration below which this percentage of the answered requests stay; None if there were
        no answers.
        """
        if not self.durations:
            return None
        ordered = sorted(self.durations)
        return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


class TurnFigures(msgspec.Struct):
    """The times of one prompt, until its answer."""

    session: str
    began: float
    prompt: str
    ended: float | None = None
    outcome: str = ""
    first_update: float | None = None
    """Seconds from the prompt to the first update."""
    longest_silence: float = 0.0
    """The longest time without a message of the session."""
    user: float = 0.0
    """Seconds in which questions to the user were open."""
    client: float = 0.0
    """Seconds in which the client worked on other requests of the agent."""
    updates: int = 0
    tools: int = 0
    last: float = 0.0


class TraceFigures(msgspec.Struct):
    """The statistics of a trace."""

    events: int = 0
    seconds: float = 0.0
    incoming: int = 0
    outgoing: int = 0
    errors: int = 0
    malformed: int = 0
    stderr: int = 0
    sessions: list[str] = []
    unanswered: list[Unanswered] = []
    methods: dict[str, MethodFigures] = {}
    turns: list[TurnFigures] = []


def figures(entries: Iterable[Entry], role: str = "client") -> TraceFigures:
    """The figures of these entries; `role` is that of the trace's header."""
    counting = _Counting()
    for entry in entries:
        counting.add(entry)
    total = counting.total
    total.unanswered = [unanswered(it, total.seconds, role) for it in counting.open.values()]
    return total


class _Counting:
    def __init__(self) -> None:
        self.total = TraceFigures()
        self.open: dict[int, Entry] = {}
        self._turns: dict[str, TurnFigures] = {}

    def add(self, entry: Entry) -> None:
        total = self.total
        total.events += 1
        total.seconds = entry.event.time
        total.stderr += entry.kind == "stderr"
        total.malformed += entry.kind == "malformed"
        if entry.event.frame is None:
            return
        total.incoming += entry.event.direction == "in"
        total.outgoing += entry.event.direction == "out"
        if entry.session and entry.session not in total.sessions:
            total.sessions.append(entry.session)
        self._count_method(entry)
        self._count_turn(entry)

    def _count_method(self, entry: Entry) -> None:
        name = entry.update or entry.method
        if not name:
            return
        figures = self.total.methods.setdefault(name, MethodFigures(name))
        figures.size += len(entry.event.frame or b"")
        if entry.kind != "answer":
            figures.messages += 1
        if entry.kind == "request":
            self.open[entry.number] = entry
        if entry.request is not None and entry.duration is not None:
            self.open.pop(entry.request.number, None)
            figures.durations.append(entry.duration)
        if entry.status == "error":
            figures.errors += 1
            self.total.errors += 1

    def _count_turn(self, entry: Entry) -> None:
        now = entry.event.time
        if entry.method == "session/prompt" and entry.kind == "request":
            begun = TurnFigures(entry.session, now, entry.text, last=now)
            self._turns[entry.session] = begun
            self.total.turns.append(begun)
            return
        turn = self._turns.get(entry.session)
        if turn is None:
            return
        turn.longest_silence = max(turn.longest_silence, now - turn.last)
        turn.last = now
        if entry.update:
            turn.updates += 1
            turn.tools += entry.update == "tool_call"
            if turn.first_update is None:
                turn.first_update = now - turn.began
        if entry.kind != "answer" or entry.duration is None:
            return
        if entry.method == "session/prompt":
            turn.ended, turn.outcome = now, entry.text
            del self._turns[entry.session]
        elif entry.method in ASKING_THE_USER:
            turn.user += entry.duration
        elif entry.method.startswith(WORK_OF_THE_CLIENT):
            turn.client += entry.duration
