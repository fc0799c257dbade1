"""`accord trace stats` and `list`: a trace in numbers, and the traces that are there."""

from __future__ import annotations

import argparse
import json
import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accord_tools.cli import printing, trace_files
from accord_tools.cli.endings import ENDED_WELL
from accord_tools.cli.printing import print_table

if TYPE_CHECKING:
    from accord.trace.statistics import MethodFigures, TraceFigures, TurnFigures
    from accord.trace.unanswered import Unanswered
    from accord_tools.tap import KeptTrace

MOST_OPEN = 20
"""Requests without an answer that are listed."""


def stats_arguments(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(takes_agent=False)
    parser.add_argument("file", nargs="?", metavar="FILE", help=trace_files.HELP)
    parser.add_argument("--json", action="store_true", help="print JSON")


def list_arguments(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(takes_agent=False)
    parser.add_argument("--json", action="store_true", help="print JSON")


def stats(options: argparse.Namespace) -> int:
    from accord.trace import read, read_header
    from accord.trace.entries import entries
    from accord.trace.statistics import figures

    path = trace_files.find(options.file)
    with trace_files.readable(path):
        found = figures(entries(read(path)), read_header(path).role)
    if options.json:
        printing.say(json.dumps(_plain(found), indent=2, ensure_ascii=False))
        return ENDED_WELL
    _print(found)
    return ENDED_WELL


def listed(options: argparse.Namespace) -> int:
    from accord_tools.tap import kept_traces, traces_folder

    kept = kept_traces()
    if options.json:
        printing.say(json.dumps([_plain_trace(trace) for trace in kept], indent=2, ensure_ascii=False))
    elif not kept:
        printing.say("No trace is kept yet. Record one: accord trace -- COMMAND...")
    else:
        print_table(("CHANGED", "STATE", "SIZE", "AGENT", "FILE"), [_row(trace) for trace in kept])
        printing.say(f"folder: {traces_folder()}")
    return ENDED_WELL


def _print(found: TraceFigures) -> None:
    rest = [f"{count:,} {one if count == 1 else many}" for count, one, many in _counts(found) if count]
    printing.say(f"{found.incoming + found.outgoing:,} messages in {found.seconds:.1f} s: {', '.join(rest)}")
    if found.methods:
        printing.say("")
        rows = [_method_row(it) for it in sorted(found.methods.values(), key=lambda it: -sum(it.durations))]
        print_table(("METHOD OR UPDATE", "COUNT", "ERRORS", "P50", "P95", "MAX", "BYTES"), rows)
    if found.turns:
        printing.say("")
        head = ("TURN", "TOOK", "FIRST", "SILENCE", "USER", "CLIENT", "TOOLS", "END", "PROMPT")
        print_table(head, [_turn_row(number, it) for number, it in enumerate(found.turns, 1)])
        printing.say("FIRST: until an update. SILENCE: the longest. USER, CLIENT: questions to them.")
    if found.unanswered:
        printing.say("")
        heads = ("WITHOUT AN ANSWER", "ASKED BY", "WAITS FOR", "ASKED AT", "OPEN FOR", "MESSAGE")
        print_table(heads, [_open_row(it) for it in found.unanswered[:MOST_OPEN]])
        if len(found.unanswered) > MOST_OPEN:
            printing.say(f"and {len(found.unanswered) - MOST_OPEN:,} more")


def _counts(found: TraceFigures) -> list[tuple[int, str, str]]:
    return [
        (len(found.sessions), "session", "sessions"),
        (len(found.turns), "turn", "turns"),
        (found.errors, "error", "errors"),
        (found.malformed, "malformed message", "malformed messages"),
        (found.stderr, "line of standard error", "lines of standard error"),
        (len(found.unanswered), "request without an answer", "requests without an answer"),
    ]


def _method_row(it: MethodFigures) -> tuple[str, ...]:
    times = (it.percentile(50), it.percentile(95), it.percentile(100))
    return (it.method, f"{it.messages:,}", str(it.errors or ""), *map(_time, times), f"{it.size:,}")


def _turn_row(number: int, it: TurnFigures) -> tuple[str, ...]:
    took = None if it.ended is None else it.ended - it.began
    times = map(_time, (took, it.first_update, it.longest_silence, it.user or None, it.client or None))
    return (str(number), *times, str(it.tools or ""), it.outcome or "open", it.prompt)


def _open_row(it: Unanswered) -> tuple[str, ...]:
    return (it.method, it.asked_by, it.waits_for, f"{it.since:.1f} s", _time(it.waited), f"#{it.number:,}")


def _time(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"{seconds * 1000:.1f} ms" if seconds < 0.1 else f"{seconds:.2f} s"


def _plain(found: TraceFigures) -> dict[str, Any]:
    import msgspec

    names = ("events", "seconds", "incoming", "outgoing", "errors", "malformed", "stderr", "sessions")
    return {
        **{name: getattr(found, name) for name in names},
        "unanswered": [{"t": it.since, **msgspec.to_builtins(it)} for it in found.unanswered],
        "methods": [
            {
                "method": it.method,
                "messages": it.messages,
                "bytes": it.size,
                "errors": it.errors,
                **{f"p{percent}": it.percentile(percent) for percent in (50, 95, 100)},
            }
            for it in found.methods.values()
        ],
        "turns": [msgspec.to_builtins(it) for it in found.turns],
    }


def _row(trace: KeptTrace) -> tuple[str, ...]:
    changed = datetime.fromtimestamp(trace.changed, UTC).astimezone()
    command = trace.live.command if trace.live is not None else trace.header.command if trace.header else ()
    described = shlex.join(command) or (trace.header.peer if trace.header else "not a trace")
    is_kept = Path(trace.path).parent.name == "traces"
    state = "live" if trace.live is not None else "" if trace.header is not None else "damaged"
    return (
        f"{changed:%m-%d %H:%M}",
        state,
        _size(trace.size),
        described,
        Path(trace.path).name if is_kept else trace.path,
    )


def _size(size: int) -> str:
    for unit, factor in (("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)):
        if size >= factor:
            return f"{size / factor:.1f}{unit}"
    return str(size)


def _plain_trace(trace: KeptTrace) -> dict[str, Any]:
    import msgspec

    plain: dict[str, Any] = msgspec.to_builtins(trace)
    return plain
