"""`Observer`: the base of the passive checks, and `Tally`, to which they report observations and findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from accord_check.checks import CHECKS, Finding, Severity, Side
from accord_check.conversation import Conversation, Exchange, Frame, Message, Update

SHOWN = 5
"""The most events that a finding names."""

_LONGEST = 400


Verdict = bool | str | None
"""The problem, in words; True or None if there is none: `is_absolute(path) or f"the path is {path!r}"`."""

Place = Frame | Message | Update
"""The message to which a finding refers; a request stands for its answer, too, if it has one."""


class Tally:
    """The observations and findings of the checks so far."""

    def __init__(self, version: int = 1) -> None:
        self.version = version
        """The version of the protocol that is spoken."""
        self.session: str | None = None
        """The session of the message that is judged now."""
        self.seen: Counter[tuple[str, Side]] = Counter()
        """How often each check had something to judge, by the side that was judged."""
        self._findings: dict[tuple[str, Side, str], Finding] = {}

    @property
    def findings(self) -> list[Finding]:
        """Return all findings so far, in the order in which their faults were first seen."""
        return [replace(finding, version=self.version) for finding in self._findings.values()]

    def saw(self, name: str, by: Side) -> None:
        """The check of this name had something to judge."""
        self.seen[CHECKS[name].id, by] += 1

    def found(
        self,
        name: str,
        message: str,
        *places: Place | None,
        by: Side | None = None,
        same: str | None = None,
        session: str | None = None,
        severity: Severity | None = None,
    ) -> None:
        """Report a fault, by default of the side that sent the last of these frames, in this session or that of the
        message that is judged now.

        Faults of one check with the `same` text (by default the message) are one finding.
        """
        frames = _frames(places)
        side = by or frames[-1].by
        key = (name, side, message if same is None else same)
        found = self._findings.get(key)
        if found is None:
            check = CHECKS[name]
            found = Finding(
                id=check.id,
                severity=severity or check.severity,
                level=check.level,
                side=side,
                message=message if len(message) <= _LONGEST else f"{message[:_LONGEST]}…",
                clause=check.clause,
                expected=check.expected,
                fix=check.fix,
                page=check.page,
                events=(),
                count=0,
                session=session or self.session,
            )
        numbers = [frame.number for frame in frames] if found.count < SHOWN else ()
        events = tuple(dict.fromkeys((*found.events, *numbers)))
        self._findings[key] = replace(found, events=events, count=found.count + 1)

    def judge(
        self,
        name: str,
        verdict: Verdict,
        *places: Place | None,
        by: Side | None = None,
        same: str | None = None,
        session: str | None = None,
    ) -> None:
        """Count that the check of this name had something to judge, with this result; a fault is reported as by
        `found`.
        """
        frames = _frames(places)
        side = by or frames[-1].by
        self.saw(name, side)
        if isinstance(verdict, str):
            self.found(name, verdict, *frames, by=side, same=same, session=session)


class Observer:
    """Judges one theme of a conversation. Its methods are called in the order of the wire."""

    version: int | None = None
    """The version of the protocol that it judges; None for both."""

    def __init__(self, conversation: Conversation, tally: Tally) -> None:
        self.conversation, self.declares = conversation, conversation.declares
        self.saw, self.found, self.judge = tally.saw, tally.found, tally.judge
        self.begin()

    def begin(self) -> None:
        """The conversation begins: make what this observer remembers of it."""

    def frame(self, frame: Frame) -> None:
        """Handle any frame, readable or not."""

    def request(self, exchange: Exchange) -> None:
        """A request, before its answer."""

    def answer(self, exchange: Exchange, frame: Frame) -> None:
        """A request that has its answer now, in this frame."""

    def notification(self, message: Message) -> None:
        """A notification."""

    def update(self, update: Update) -> None:
        """A session update; `notification` was called before."""

    def end(self) -> None:
        """The conversation is over."""


def _frames(places: Iterable[Place | None]) -> list[Frame]:
    frames: list[Frame] = []
    for place in places:
        if place is not None:
            frames.append(place if isinstance(place, Frame) else place.frame)
        if isinstance(place, Exchange) and place.answered is not None:
            frames.append(place.answered)
    return frames
