"""`Judge`: reads a trace event by event, and says what each side did wrong. PURE.

    judge = Judge()
    for event in events:
        judge.feed(event)
    judge.end()
    judge.findings

`judge(events)` is the same in one call. The judge finds out by itself which side is the agent, from the first message
that only one side may send; what came before waits until then.
"""

from __future__ import annotations

from collections.abc import Iterable

from accord import TraceEvent
from accord.schema.methods import methods
from accord.trace import Direction
from accord_check.conversation import Conversation, Frame, read
from accord_check.finding import Finding, Side
from accord_check.passive.catalogue import OBSERVERS
from accord_check.passive.observer import Bench

MOST_WAITING = 1_000
"""Frames that wait for the first that tells the sides apart; then the recording side is taken for the client."""


class Judge:
    """Judges one conversation, both sides at once.

    `client` is the direction in which the client's frames go, if it is known: `out` in what a client recorded. A
    finding names events by their numbers, from 1.
    """

    def __init__(self, client: Direction | None = None) -> None:
        self.conversation = Conversation()
        """What the judge has understood of the trace."""
        self.bench = Bench()
        """What the checks have seen and found."""
        self._client = client
        self._next = 1
        self._waiting: list[tuple[int, TraceEvent]] = []
        self._observers = [observer(self.conversation, self.bench) for observer in OBSERVERS]

    @property
    def findings(self) -> list[Finding]:
        """All findings so far."""
        return self.bench.findings

    def feed(self, event: TraceEvent, number: int | None = None) -> None:
        """Judge the next event; `number` is what findings call it, by default one more than the event before."""
        number = self._next if number is None else number
        self._next = number + 1
        if event.frame is None:
            return
        if self._client is None:
            self._client = _client_in(event)
            if self._client is None and len(self._waiting) < MOST_WAITING:
                self._waiting.append((number, event))
                return
            self._go_on()
        self._judge(number, event)

    def end(self) -> None:
        """The trace is over: judge what can be judged only now."""
        self._go_on()
        for observer in self._observers:
            observer.end()

    def _go_on(self) -> None:
        self._client = self._client or "out"
        waiting, self._waiting = self._waiting, []
        for number, event in waiting:
            self._judge(number, event)

    def _judge(self, number: int, event: TraceEvent) -> None:
        self.conversation.recorder = "client" if self._client == "out" else "agent"
        by: Side = "client" if event.direction == self._client else "agent"
        frame = read(number, event.time, by, event.frame or b"")
        for observer in self._observers:
            observer.frame(frame)
        members = frame.members
        if isinstance(members.get("method"), str):
            self._message(frame, is_request="id" in members)
        elif "result" in members or "error" in members:
            self._answer(frame)

    def _message(self, frame: Frame, *, is_request: bool) -> None:
        if is_request:
            exchange = self.conversation.asked(frame)
            for observer in self._observers:
                observer.request(exchange)
            return
        told = self.conversation.told(frame)
        update = self.conversation.update(told)
        for observer in self._observers:
            observer.notification(told)
            if update is not None:
                observer.update(update)

    def _answer(self, frame: Frame) -> None:
        exchange = self.conversation.answered(frame)
        if exchange is not None:
            for observer in () if exchange.is_doubtful else self._observers:
                observer.answer(exchange)
            self.conversation.settle(exchange)


def judge(events: Iterable[TraceEvent], client: Direction | None = None) -> list[Finding]:
    """Judge a whole trace, both sides at once; returns what is wrong with it.

    `client` is the direction in which the client's frames go; by default the trace itself shows it.
    """
    judging = Judge(client)
    for event in events:
        judging.feed(event)
    judging.end()
    return judging.findings


def _client_in(event: TraceEvent) -> Direction | None:
    """The direction of the client, if this event tells."""
    frame = read(0, 0.0, "client", event.frame or b"")
    method = frame.members.get("method")
    if not isinstance(method, str):
        return None
    table = methods(1)
    row = table.request(method) if "id" in frame.members else table.notification(method)
    if row is None or row.to not in ("agent", "client"):
        return None
    other: Direction = "in" if event.direction == "out" else "out"
    return event.direction if row.to == "agent" else other
