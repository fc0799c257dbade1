"""`Observer`: the base of the passive checks, and `Bench`, where they report what they saw and found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from accord_check.checks import Check
from accord_check.conversation import Conversation, Exchange, Frame, Told, Update
from accord_check.finding import Finding, Severity, Side

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


class Bench:
    """What the checks have seen and found so far."""

    def __init__(self) -> None:
        self.seen: Counter[tuple[str, Side]] = Counter()
        """How often each check had something to judge, by the side that was judged."""
        self._cases: dict[tuple[str, Side, str], _Case] = {}

    @property
    def findings(self) -> list[Finding]:
        """All findings so far, in the order in which their faults were first seen."""
        return [_finding(case) for case in self._cases.values()]

    def saw(self, check: Check, by: Side, count: int = 1) -> None:
        self.seen[check.id, by] += count

    def found(
        self,
        check: Check,
        by: Side,
        message: str,
        places: Sequence[Frame],
        *,
        same: str | None = None,
        session: str | None = None,
        severity: Severity | None = None,
    ) -> None:
        """Report a fault. Faults of one check with the `same` text (by default the message) are one finding."""
        key = (check.id, by, message if same is None else same)
        case = self._cases.get(key)
        if case is None:
            case = _Case(check, severity or check.severity, by, _shortened(message), session)
            self._cases[key] = case
        case.count += 1
        if case.count <= SHOWN:
            case.events += [place.number for place in places if place.number not in case.events]


class Observer:
    """Judges one theme of a conversation. Its methods are called in the order of the wire."""

    CHECKS: ClassVar[tuple[Check, ...]] = ()
    """What it judges."""

    def __init__(self, conversation: Conversation, bench: Bench) -> None:
        self.conversation = conversation
        self.bench = bench
        self._checks = {check.id: check for check in self.CHECKS}

    def saw(self, name: str, by: Side, count: int = 1) -> None:
        """This check had something to judge."""
        self.bench.saw(self._checks[name], by, count)

    def found(
        self,
        name: str,
        message: str,
        *places: Frame,
        by: Side | None = None,
        same: str | None = None,
        session: str | None = None,
        severity: Severity | None = None,
    ) -> None:
        """This check found a fault; by default the fault of the side that sent the last of these frames."""
        self.bench.found(
            self._checks[name],
            by or places[-1].by,
            message,
            places,
            same=same,
            session=session,
            severity=severity,
        )

    def judge(
        self,
        name: str,
        problem: str | None,
        *places: Frame,
        by: Side | None = None,
        session: str | None = None,
        same: str | None = None,
    ) -> None:
        """This check had something to judge, and found this problem, if any."""
        self.saw(name, by or places[-1].by)
        if problem is not None:
            self.found(name, problem, *places, by=by, session=session, same=same)

    def frame(self, frame: Frame) -> None:
        """Any frame, readable or not."""

    def request(self, exchange: Exchange) -> None:
        """A request, before its answer."""

    def answer(self, exchange: Exchange) -> None:
        """A request that has its answer now."""

    def notification(self, told: Told) -> None:
        """A notification."""

    def update(self, update: Update) -> None:
        """A session update; `notification` was called before."""

    def end(self) -> None:
        """The conversation is over."""


def _finding(case: _Case) -> Finding:
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
    )


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
