"""Requests that were never answered: who asked whom, for how long, and where to look. PURE.

Half of all questions about a hanging agent end here. A trace that still grows has open requests, too, so an open
request is a fact to look at, and not a fault.
"""

from __future__ import annotations

import msgspec

from accord.trace.entries import Entry

ASKING_THE_USER = ("session/request_permission", "elicitation/create")


class Unanswered(msgspec.Struct, frozen=True, kw_only=True):
    """A request without an answer, as of the end of its trace."""

    number: int
    """Its place in the trace; the first event has 1."""
    method: str
    asked_by: str
    """The side, or in a chain of proxies the component, that sent it."""
    waits_for: str
    """Who owes the answer."""
    since: float
    """When it was sent, in seconds since the start of the trace."""
    waited: float
    """Seconds from then to the end of the trace."""
    session: str = ""

    @property
    def text(self) -> str:
        """What happened, as a sentence."""
        return (
            f"{self.method} of the {self.asked_by} has no answer of the {self.waits_for}: "
            f"open for {self.waited:.1f} s, until the end of the trace"
        )

    @property
    def advice(self) -> str:
        """Where to look."""
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
