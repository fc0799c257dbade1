"""Filters as functions of one entry: what `accord trace show` lets pass. PURE.

`accord.trace.query` reads the language; `accord_tools.inspector.trace_search` answers the same queries from an index.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from accord.trace.entries import Entry
from accord.trace.meaning import statuses, tool_names
from accord.trace.query import FilterError, Term, bound_of, needles, path_test, read_query

__all__ = ["Filter", "FilterError", "any_of", "parse_filter"]

Filter: TypeAlias = Callable[[Entry], bool]


def parse_filter(text: str, role: str = "client") -> Filter:
    """A function that says whether an entry passes this filter; raises FilterError.

    `role` is that of the trace's header: `dir:agent` depends on who recorded.

    >>> passes = parse_filter("method:prompt -status:error")
    """
    tests = [_test(term, role) for term in read_query(text)]
    return lambda entry: all(test(entry) for test in tests)


def any_of(texts: Sequence[str], role: str = "client") -> Filter:
    """The filter that several arguments of a command make together."""
    return parse_filter(" ".join(texts), role)


def _test(term: Term, role: str) -> Filter:
    test = _direction(term.value, role) if term.key == "dir" else TESTS[term.key](term.value)
    return test if not term.is_negated else lambda entry: not test(entry)


def _text(text: str) -> Filter:
    wanted, variants = text.lower(), needles(text)

    def test(entry: Entry) -> bool:
        frame = entry.event.frame
        if frame is None:
            return wanted in entry.text.lower()
        lower = frame.lower()
        return any(needle in lower for needle in variants)

    return test


def _method(value: str) -> Filter:
    wanted = value.lower()
    return lambda entry: wanted in entry.method.lower()


def _kind(value: str) -> Filter:
    wanted = value.lower()
    return lambda entry: (
        wanted == entry.kind or (wanted == "error" and entry.status == "error") or wanted in entry.update.lower()
    )


def _session(value: str) -> Filter:
    wanted = value.lower()
    return lambda entry: wanted in entry.session.lower()


def _direction(value: str, role: str) -> Filter:
    towards_agent = "in" if role == "agent" else "out"
    wanted = {"agent": towards_agent, "client": "out" if towards_agent == "in" else "in"}.get(value, value)
    return lambda entry: entry.event.direction == wanted


def _status(value: str) -> Filter:
    return lambda entry: value == entry.status or value in statuses(entry.content)


def _duration(value: str) -> Filter:
    bound = bound_of("dur", value)
    return lambda entry: entry.duration is not None and bound.holds(entry.duration)


def _size(value: str) -> Filter:
    bound = bound_of("size", value)
    return lambda entry: bound.holds(len(entry.event.frame or entry.text.encode("utf-8", "replace")))


def _tool(value: str) -> Filter:
    wanted = value.lower()
    return lambda entry: any(wanted in name.lower() for name in tool_names(entry.content))


def _path(value: str) -> Filter:
    fits = path_test(value)
    return lambda entry: any(fits(path) for path in entry.paths)


TESTS: dict[str, Callable[[str], Filter]] = {
    "": _text,
    "method": _method,
    "kind": _kind,
    "session": _session,
    "status": _status,
    "dur": _duration,
    "size": _size,
    "tool": _tool,
    "path": _path,
}
"""The filters that need only an entry and their value."""
