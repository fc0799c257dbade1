"""`accord trace show` and `grep`: the messages of a trace as rows."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accord.printable import columns, cut, label
from accord.trace import TraceHeader, follow, read, read_header
from accord.trace.query import FILTERS, TEXT, Filter, FilterError, parse_filter
from accord.trace.trace_entries import Entry, entries
from accord_tools.cli.command_table import option
from accord_tools.cli.console import streams, width, write_out
from accord_tools.cli.exit_codes import ENDED_WELL, FAILED, WrongUsage
from accord_tools.cli.trace_options import TRACE_HELP, find_trace, live_trace, readable_trace
from accord_tools.presentation.quantities import seconds_in_words

if TYPE_CHECKING:
    from accord import TraceEvent
    from accord_tools.presentation.appearance import Appearance, Style

SHOW_EPILOG = """\
examples:
  accord trace show                             the newest kept trace
  accord trace show wire.jsonl status:error     the requests that failed
  accord trace show --follow dir:in             what an agent says now

  accord trace show -- -kind:notification       all but notifications

filters, which all have to hold; a minus before one negates it (put -- before the first), quotes keep blanks:
{filters}

Chunks of one text are one row; --all shows each. → is to the agent, ← from it."""

GREP_EPILOG = """\
Prints each message whose JSON, or whose line of standard error, matches. Exit status 1: nothing matched.

example:
  accord trace grep 'rate.?limit' *.jsonl"""

CHUNKS = ("agent_message_chunk", "agent_thought_chunk", "user_message_chunk", "tool_call_content_chunk")
ARROWS = {True: "→", False: "←"}
LONGEST = 4_000
"""Columns of a row in a pipe."""


def show_arguments(parser: argparse.ArgumentParser) -> None:
    rows = [(", ".join(key.examples), key.shows) for key in FILTERS.values() if not key.is_of_page]
    filters = "\n".join(f"  {example:<27}{shows}" for example, shows in [*rows, TEXT])
    parser.epilog = SHOW_EPILOG.format(filters=filters)
    parser.usage = "accord trace show [options] [FILE] [FILTER...]"
    parser.add_argument("words", nargs="*", metavar="FILE", help=TRACE_HELP + "; then filters")
    parser.set_defaults(takes_agent=True)  # what follows -- are filters
    option(parser, "-f --follow", "continue while the trace grows")
    option(parser, "--all", "show each chunk of a text as a row of its own")
    option(parser, "--json", "print a JSON object for each message")


def grep_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = GREP_EPILOG
    parser.add_argument("pattern", metavar="PATTERN", help="a regular expression, as of Python")
    parser.add_argument("files", nargs="*", metavar="FILE", help=TRACE_HELP)
    option(parser, "-i --ignore-case", "take capitals and small letters as the same")


def run_show(options: argparse.Namespace) -> None:
    given, words = _file_and_filters(options.words)
    path = find_trace(given)
    with readable_trace(path):
        header = None if path == "-" else read_header(path)
        passes = _filter([*words, *options.agent], "client" if header is None else header.role)
        shown = (entry for entry in entries(_events(path, follows=options.follow)) if passes(entry))
        try:
            for line in _lines(shown, header, options):
                write_out(line + "\n")
        except KeyboardInterrupt:
            if not options.follow:
                raise


def run_grep(options: argparse.Namespace) -> int:
    try:
        pattern = re.compile(options.pattern, re.IGNORECASE if options.ignore_case else 0)
    except re.error as error:
        raise WrongUsage(f"PATTERN is not a regular expression: {error}") from error
    found = False
    for given in options.files or [None]:
        path = find_trace(given)
        with readable_trace(path):
            look = TraceRows(read_header(path), path if len(options.files) > 1 else "")
            for entry in entries(read(path)):
                frame = entry.event.frame
                if pattern.search(entry.text if frame is None else frame.decode("utf-8", "replace")):
                    found = True
                    write_out(look.row(entry) + "\n")
    return ENDED_WELL if found else FAILED


def _file_and_filters(words: list[str]) -> tuple[str | None, list[str]]:
    """The first word is a file if it is one, or looks like the name of one and not like a filter."""
    if words and (words[0] == "-" or Path(words[0]).is_file() or not re.match(r'-?[a-z]+:|"', words[0])):
        return words[0], words[1:]
    return None, words


def _filter(words: list[str], role: str) -> Filter:
    try:
        return parse_filter(" ".join(words), role)
    except FilterError as error:
        raise WrongUsage(str(error)) from error


def _events(path: str, *, follows: bool) -> Iterator[TraceEvent]:
    if path == "-":
        yield from read(sys.stdin.buffer)
    elif not follows:
        yield from read(path)
    else:
        was_live = live_trace(path) is not None
        goes_on: Callable[[], bool] = (lambda: live_trace(path) is not None) if was_live else (lambda: True)
        yield from (event for event in follow(path, goes_on) if event is not None)


def _lines(shown: Iterable[Entry], header: TraceHeader | None, options: argparse.Namespace) -> Iterator[str]:
    if options.json:
        return map(_as_json, shown)
    look = TraceRows(header)
    # A row that waits for more chunks would come late.
    return map(look.row, shown) if options.all or options.follow else _collapsed(shown, look)


def _collapsed(shown: Iterable[Entry], look: TraceRows) -> Iterator[str]:
    """The rows, with chunks that follow each other as one."""
    run: list[Entry] = []
    for entry in shown:
        if run and (entry.update, entry.session) != (run[0].update, run[0].session):
            yield look.row(run[0], run)
            run = []
        if entry.update in CHUNKS:
            run.append(entry)
        else:
            yield look.row(entry)
    if run:
        yield look.row(run[0], run)


class TraceRows:
    """The form of entries as rows of this terminal, or of a pipe."""

    def __init__(self, header: TraceHeader | None, name: str = "") -> None:
        self._appearance: Appearance = streams().answer
        self._is_agents = header is not None and header.role == "agent"
        self._name = f"{name}: " if name else ""
        self._first_session = ""

    def row(self, entry: Entry, run: list[Entry] | None = None) -> str:
        """Return this entry, or the run of chunks that it begins, as one row that is safe for a terminal."""
        self._first_session = self._first_session or entry.session
        arrow = ARROWS[(entry.event.direction == "out") != self._is_agents]
        start = f"{self._name}{seconds_in_words(entry.event.time):>9} {arrow} "
        tail = self._tail(entry, run)
        what, text = _name(entry), "".join(it.text for it in run) if run else entry.text
        room = (width(1) if self._appearance.is_terminal else LONGEST) - columns(start) - columns(tail)
        what = cut(label(what, LONGEST), max(room, 8))
        text = cut(label(text, LONGEST), max(room - columns(what) - 1, 0)) if room > columns(what) + 4 else ""
        paint = self._appearance.painted
        return (
            paint("dim", label(start, LONGEST + 20) if self._name else start)
            + paint(_style(entry), what)
            + (f" {paint('bad' if entry.status == 'error' else 'plain', text)}" if text else "")
            + paint("dim", tail)
        ).rstrip()

    def _tail(self, entry: Entry, run: list[Entry] | None) -> str:
        parts = [f"\u00d7{len(run)}"] if run and len(run) > 1 else []
        if entry.duration is not None:
            parts.append(seconds_in_words(entry.duration))
        if entry.event.hop is not None:
            parts.append("-".join(entry.event.hop))
        if entry.event.link is not None:
            parts.append(f"link {entry.event.link}")
        if entry.session != self._first_session and entry.session:
            parts.append(f"session {entry.session[:8]}")
        return f" ({label(', '.join(parts), 60)})" if parts else ""


def _name(entry: Entry) -> str:
    if entry.kind == "answer":
        return f"{entry.method or 'answer'} {'failed:' if entry.status == 'error' else 'answered'}"
    return entry.update or entry.method or f"{entry.kind}:"


def _style(entry: Entry) -> Style:
    if entry.status == "error" or entry.kind == "malformed":
        return "bad"
    if entry.kind in ("stderr", "note"):
        return "warning"
    if entry.kind in ("process", "answer", "other"):
        return "dim"
    return "bold" if entry.method == "session/prompt" else "accent"


def _as_json(entry: Entry) -> str:
    event = entry.event
    known: dict[str, Any] = {
        "number": entry.number,
        "t": event.time,
        "dir": event.direction,
        "kind": entry.kind,
        "method": entry.method,
        "update": entry.update,
        "session": entry.session,
        "status": entry.status,
        "duration": None if entry.duration is None else round(entry.duration, 6),
        "request": None if entry.request is None else entry.request.number,
        "link": event.link,
        "from": event.hop and event.hop[0],
        "to": event.hop and event.hop[1],
        "text": entry.text,
    }
    return json.dumps({name: value for name, value in known.items() if value not in ("", None)}, ensure_ascii=False)
