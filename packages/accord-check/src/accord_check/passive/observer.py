"""`Observer`: the base of the passive checks, and `Tally`, where they report what they saw and found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from accord_check.checks import CHECKS, Check, Finding, Severity, Side
from accord_check.conversation import Conversation, Exchange, Frame, Message, Update

SHOWN = 5
"""The most events that a finding names."""

_LONGEST = 400


@dataclass(slots=True)
class _Case:
    """A fault, with all the events that show it."""

    check: Check
    severity: Severity
    side: Side
    message: str
    session: str | None
    events: list[int] = field(default_factory=list[int])
    count: int = 0


class Tally:
    """What the checks have seen and found so far."""

    def __init__(self, version: int = 1) -> None:
        self.version = version
        """The version of the protocol that is spoken."""
        self.session: str | None = None
        """The session of the message that is judged now."""
        self.seen: Counter[tuple[str, Side]] = Counter()
        """How often each check had something to judge, by the side that was judged."""
        self._cases: dict[tuple[str, Side, str], _Case] = {}

    @property
    def findings(self) -> list[Finding]:
        """All findings so far, in the order in which their faults were first seen."""
        return [_finding(case, self.version) for case in self._cases.values()]

    def saw(self, name: str, by: Side) -> None:
        """The check of this name had something to judge."""
        self.seen[CHECKS[name].id, by] += 1

    def found(
        self,
        name: str,
        by: Side,
        message: str,
        places: Iterable[Frame | None] = (),
        *,
        same: str | None = None,
        session: str | None = None,
        severity: Severity | None = None,
    ) -> None:
        """Report a fault, in this session or that of the message that is judged now.

        Faults of one check with the `same` text (by default the message) are one finding.
        """
        key = (name, by, message if same is None else same)
        case = self._cases.get(key)
        if case is None:
            check = CHECKS[name]
            severity = severity or check.severity
            case = self._cases[key] = _Case(check, severity, by, _shortened(message), session or self.session)
        case.count += 1
        if case.count <= SHOWN:
            numbers = [place.number for place in places if place is not None]
            case.events += [number for number in numbers if number not in case.events]

    def judge(
        self,
        name: str,
        by: Side,
        problem: str | None,
        places: Iterable[Frame | None] = (),
        *,
        same: str | None = None,
        session: str | None = None,
    ) -> None:
        """The check of this name had something to judge, and found this problem, if any."""
        self.saw(name, by)
        if problem is not None:
            self.found(name, by, problem, places, same=same, session=session)


class Observer:
    """Judges one theme of a conversation. Its methods are called in the order of the wire."""

    def __init__(self, conversation: Conversation, tally: Tally) -> None:
        self.conversation = conversation
        self.tally = tally

    def saw(self, name: str, by: Side) -> None:
        """This check had something to judge."""
        self.tally.saw(name, by)

    def found(
        self,
        name: str,
        message: str,
        *places: Frame,
        same: str | None = None,
        session: str | None = None,
        severity: Severity | None = None,
    ) -> None:
        """This check found a fault; the fault of the side that sent the last of these frames."""
        self.tally.found(name, places[-1].by, message, places, same=same, session=session, severity=severity)

    def judge(
        self, name: str, problem: str | None, *places: Frame, session: str | None = None, same: str | None = None
    ) -> None:
        """This check had something to judge, and found this problem, if any."""
        self.tally.judge(name, places[-1].by, problem, places, same=same, session=session)

    def frame(self, frame: Frame) -> None:
        """Any frame, readable or not."""

    def request(self, exchange: Exchange) -> None:
        """A request, before its answer."""

    def answer(self, exchange: Exchange) -> None:
        """A request that has its answer now."""

    def notification(self, message: Message) -> None:
        """A notification."""

    def update(self, update: Update) -> None:
        """A session update; `notification` was called before."""

    def end(self) -> None:
        """The conversation is over."""


def _finding(case: _Case, version: int) -> Finding:
    check = case.check
    return Finding(
        id=check.id,
        severity=case.severity,
        level=check.level,
        side=case.side,
        message=case.message,
        clause=check.clause,
        expected=check.expected,
        fix=check.fix,
        page=check.page,
        events=tuple(case.events),
        count=case.count,
        session=case.session,
        version=version,
    )


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
