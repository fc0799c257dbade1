"""Judges a trace file: every conversation in it, both sides, as one report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from accord_check.checks import PASSIVE
from accord_check.conversation import object_of
from accord_check.finding import Finding, Side
from accord_check.report.report import Report, outcomes_of
from accord_check.trace_judge import Judge
from accord_check.traces import BEGINS_LATE, begins_late, conversations

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
        seen += judging.bench.seen
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
    """The name and version that a side gave in the handshake; empty if it gave none."""
    opening = judging.conversation.initialize
    if opening is None:
        return ""
    said: dict[str, Any] = opening.params if side == "client" else opening.fields
    info = object_of(said.get(f"{side}Info")) or object_of(said.get("info"))
    name, version = info.get("title") or info.get("name"), info.get("version")
    return " ".join(str(part) for part in (name, version) if part)
