"""`Judge`: reads a trace event by event, and reports each side's faults.

    judge = Judge()
    for event in events:
        judge.feed(event)
    judge.end()
    judge.findings

`judge(events)` does the same in one call. The judge determines which side is the agent from the first message that only
one side may send; earlier messages wait until then.

`report_on_trace` judges a trace file, and makes a report of it. A file may hold several conversations: one for each hop
of a chain of proxies, or one after the other.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

import msgspec

from accord import DecodeError, TraceEvent
from accord.schema.methods import methods
from accord.trace import Direction, read as read_trace
from accord_check.checks import PASSIVE, Finding, Side
from accord_check.conversation import Conversation, Frame, object_of, read
from accord_check.passive.handshake import Capabilities, Handshake, Versions
from accord_check.passive.messages import Answers, Framing
from accord_check.passive.observer import Observer, Tally
from accord_check.passive.prompts import Prompts
from accord_check.passive.schema import Results, Schema
from accord_check.passive.sessions import Cursors, Options, Sessions
from accord_check.passive.terminals_and_forms import TerminalsAndForms
from accord_check.passive.tools import Tools, Upserts
from accord_check.passive.turns import States, Turns
from accord_check.report import Report, outcomes_of

OBSERVERS: tuple[type[Observer], ...] = (
    Framing,
    Answers,
    Schema,
    Handshake,
    Versions,
    Capabilities,
    Sessions,
    Options,
    Cursors,
    Prompts,
    Turns,
    States,
    Tools,
    Upserts,
    TerminalsAndForms,
    Results,
)
"""The observers, in the order in which they are asked."""

MOST_WAITING = 1_000
"""Frames that wait for the first that identifies the sides; then the recording side counts as the client."""


class Judge:
    """Judges one conversation, both sides at once.

    `client` is the direction in which the client's frames go, if it is known: `out` in a client's recording. A finding
    names events by their numbers, from 1.
    """

    def __init__(self, client: Direction | None = None) -> None:
        self.conversation = Conversation()
        """The judge's understanding of the trace."""
        self.tally = Tally()
        """The observations and findings of the checks."""
        self._client = client
        self._next = 1
        self._waiting: list[tuple[int, TraceEvent]] = []
        self._observers = [observer(self.conversation, self.tally) for observer in OBSERVERS]

    @property
    def findings(self) -> list[Finding]:
        """Return all findings so far."""
        return self.tally.findings

    def feed(self, event: TraceEvent, number: int | None = None) -> None:
        """Judge the next event; `number` is its name in findings, by default one more than the previous event's."""
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
        """Note the end of the trace, and judge what can be judged only now."""
        self._go_on()
        self.tally.session = None
        for observer in self._asked():
            observer.end()

    def _asked(self) -> list[Observer]:
        """The observers of the version that is spoken now."""
        return [it for it in self._observers if it.version in (None, self.conversation.version)]

    def _go_on(self) -> None:
        self._client = self._client or "out"
        waiting, self._waiting = self._waiting, []
        for number, event in waiting:
            self._judge(number, event)

    def _judge(self, number: int, event: TraceEvent) -> None:
        self.conversation.recorder = "client" if self._client == "out" else "agent"
        by: Side = "client" if event.direction == self._client else "agent"
        frame = read(number, event.time, by, event.frame or b"")
        self.tally.session = None
        for observer in self._observers:
            observer.frame(frame)
        members = frame.members
        if isinstance(members.get("method"), str):
            self._message(frame, is_request="id" in members)
        elif "result" in members or "error" in members:
            self._answer(frame)
        self.tally.version = self.conversation.version

    def _message(self, frame: Frame, *, is_request: bool) -> None:
        if is_request:
            exchange = self.conversation.asked(frame)
            self.tally.session = exchange.session_id
            for observer in self._asked():
                observer.request(exchange)
            return
        message = self.conversation.notified(frame)
        update = self.conversation.update(message)
        self.tally.session = message.session_id
        for observer in self._asked():
            observer.notification(message)
            if update is not None:
                observer.update(update)

    def _answer(self, frame: Frame) -> None:
        exchange = self.conversation.answered(frame)
        if exchange is not None:
            self.tally.session = exchange.session_id
            for observer in () if exchange.is_doubtful else self._asked():
                observer.answer(exchange, frame)
            self.conversation.settle(exchange)


def judge(events: Iterable[TraceEvent], client: Direction | None = None) -> list[Finding]:
    """Judge a whole trace, both sides at once; returns the findings.

    `client` is the direction in which the client's frames go; by default the trace itself shows it.
    """
    judging = Judge(client)
    for event in events:
        judging.feed(event)
    judging.end()
    return judging.findings


def _client_in(event: TraceEvent) -> Direction | None:
    """Return the direction of the client, if this event shows it."""
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


@dataclass(slots=True)
class RecordedConversation:
    """One conversation of a trace, with the line of each event."""

    title: str = ""
    """Its name among the conversations of the file; empty if it is the only one."""
    client: Direction | None = None
    """The direction of the client's frames, if the file has it."""
    events: list[TraceEvent] = field(default_factory=list[TraceEvent])
    lines: list[int] = field(default_factory=list[int])
    """The line of each event in the file, from 1."""


BEGINS_LATE = "the trace begins after the handshake, and what was agreed in it is not known"


def begins_late(one: RecordedConversation) -> bool:
    """Whether a conversation has frames, and no `initialize` in them: its recording began in the middle."""
    frames = [event.frame for event in one.events if event.frame is not None]
    return bool(frames) and not any(_is_initialize(frame) for frame in frames)


def _is_initialize(frame: bytes) -> bool:
    # To look for the word first is much faster than to decode each frame of a long trace.
    return b'initialize"' in frame and read(0, 0.0, "client", frame).members.get("method") == "initialize"


def conversations(path: str | Path) -> list[RecordedConversation]:
    """Return the conversations in a trace file, in the order in which they begin.

    A chain of proxies is recorded in one file: each pair of neighbours is a conversation. A file may also hold several
    recordings, one after the other, each with a first line of its own. A last line that is cut off is left out.
    """
    found: list[RecordedConversation] = []
    with Path(path).open("rb") as file:
        for start, lines in _recordings(file):
            found += _of_recording(start, lines)
    if len(found) > 1:
        for number, one in enumerate(found, 1):
            one.title = one.title or f"conversation {number}"
    return found


def _recordings(file: IO[bytes]) -> Iterator[tuple[int, list[bytes]]]:
    """The lines of each recording in a file, with the number of the first."""
    start, lines = 1, list[bytes]()
    for number, line in enumerate(file, 1):
        if lines and line.startswith(b'{"accord-trace"'):
            yield start, lines
            start, lines = number, []
        lines.append(line)
    yield start, lines


def _of_recording(start: int, lines: list[bytes]) -> list[RecordedConversation]:
    if not lines:
        raise DecodeError("$", "the file is empty, not an Accord trace")
    client = _client_of(lines[0])
    by_hop: dict[frozenset[str], RecordedConversation] = {}
    for number, event in enumerate(read_trace(io.BytesIO(b"".join(lines))), start + 1):
        hop = frozenset(event.hop or ())
        one = by_hop.get(hop)
        if one is None:
            title = " and ".join(event.hop) if event.hop is not None else ""
            # In a trace of a chain, `out` is towards the agent at every hop.
            one = by_hop[hop] = RecordedConversation(title, "out" if event.hop is not None else client)
        one.events.append(event)
        one.lines.append(number)
    return list(by_hop.values()) or [RecordedConversation(client=client)]


def _client_of(header: bytes) -> Direction | None:
    try:
        said = msgspec.json.decode(header, type=dict[str, object]).get("role")
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None  # reading the trace reports the problem of the line
    return "out" if said == "client" else "in" if said == "agent" else None


BOTH: tuple[Side, ...] = ("agent", "client")


def report_on_trace(path: str | Path, sides: Iterable[Side] = BOTH) -> Report:
    """Judge a trace file. A finding's events are lines of the file, less one: the first line is no event."""
    seen: Counter[tuple[str, Side]] = Counter()
    findings: list[Finding] = []
    peers: list[str] = []
    version: int | None = None
    sides = list(sides)
    skipped: list[str] = []
    for one in conversations(path):
        if begins_late(one):
            skipped.append(f"{one.title or path} is not judged: {BEGINS_LATE}")
            continue
        judging = Judge(one.client)
        for line, event in zip(one.lines, one.events, strict=True):
            judging.feed(event, line - 1)
        judging.end()
        seen += judging.tally.seen
        findings += [replace(finding, where=one.title) for finding in judging.findings if finding.side in sides]
        peers += [said for side in sides if (said := peer_of(judging, side)) and said not in peers]
        version = judging.conversation.version if judging.conversation.is_initialized else version
    report = Report(
        str(path), outcomes_of(PASSIVE.values(), sides, seen, findings), peer=" and ".join(peers), version=version
    )
    report.remarks = skipped if seen else []
    if not seen:
        report.blocked = skipped[0] if skipped else "the trace holds no frame"
    return report


def peer_of(judging: Judge, side: Side) -> str:
    """Return the name and version that a side sent in the handshake; empty if it sent none."""
    opening = judging.conversation.initialize
    if opening is None:
        return ""
    said: dict[str, Any] = opening.params if side == "client" else opening.fields
    info = object_of(said.get(f"{side}Info")) or object_of(said.get("info"))
    name, version = info.get("title") or info.get("name"), info.get("version")
    return " ".join(str(part) for part in (name, version) if part)
