"""Conformance checks of agents, clients and recorded traces.

    from accord import check, trace

    for finding in check.judge(trace.read("wire.jsonl")):
        print(finding.severity, finding.side, finding.id, finding.message)

`judge` needs no control over the conversation: it takes the events of a trace, or those of a live connection, and
judges both sides at once. `Judge` is the same, event by event.
"""

from __future__ import annotations

from accord.check.finding import Finding, Severity, Side
from accord.check.judge import Judge, judge

__all__ = ["Finding", "Judge", "Severity", "Side", "judge"]
