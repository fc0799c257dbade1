"""Reads the filter language of traces: `method:prompt -status:ok dur:>2s path:*.py "some words"`. PURE.

    text ──▶ read_query ──▶ terms ──▶ parse_filter: one entry after the other (`accord trace show`)
                                 └──▶ accord_tools.inspector.trace_search: the columns of an index

All words, separated by blanks, must match. A word without a key is searched for in the message itself, in any case. A
minus before a word negates it. Quotes keep blanks and colons in a text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from accord.errors import AccordError
from accord.mistakes import nearest
from accord.trace.meaning import statuses, tool_names

if TYPE_CHECKING:
    from accord.trace.trace_entries import Entry

KINDS = ("request", "answer", "error", "notification", "stderr", "process", "note", "malformed")
"""The values of `kind:` beside the kinds of updates; an error is an answer, too."""
DIRECTIONS = ("agent", "client", "in", "out")


class Key(NamedTuple):
    """One filter of the language: its syntax, and what it shows."""

    examples: tuple[str, ...]
    shows: str
    is_of_page: bool = False
    """Whether only the page knows it: it needs the whole trace."""


FILTERS: dict[str, Key] = {
    "method": Key(("method:prompt",), "messages whose method contains this, and their answers"),
    "kind": Key(("kind:tool_call", "kind:error"), f"updates whose kind contains this; or {', '.join(KINDS)}"),
    "session": Key(("session:3f2a",), "messages of sessions whose id contains this"),
    "dir": Key(
        ("dir:agent", "dir:in"), "messages to the agent or the client; in and out are as the recording side saw them"
    ),
    "status": Key(("status:error",), "answers (ok, error), tool calls and ended turns with this status"),
    "dur": Key(("dur:>2s", "dur:<10ms"), "answers that took at least, or at most, this long"),
    "size": Key(("size:>10k",), "messages of at least, or at most, so many bytes"),
    "tool": Key(("tool:edit",), "messages about a tool call with this in its kind, title or id"),
    "path": Key(("path:*.py",), "messages that name such a file"),
    "turn": Key(("turn:3",), "messages of this turn", is_of_page=True),
    "has": Key(("has:finding",), "messages with a finding of the checks", is_of_page=True),
}
"""Every filter, in the order of lists."""

TEXT = ('word, "two words"', "messages with this text")

_WORD = re.compile(r'(?P<minus>-?)(?:(?P<key>[a-z]+):)?(?:"(?P<quoted>[^"]*)"?|(?P<plain>[^"\s]\S*)?)')
_BOUND = re.compile(r"([<>]?)=?(\d+(?:\.\d+)?)([a-z]*)")
UNITS = {
    "dur": {"s": 1.0, "": 1.0, "ms": 0.001, "us": 0.000001, "m": 60.0, "min": 60.0, "h": 3600.0},
    "size": {"k": 1e3, "": 1.0, "b": 1.0, "kb": 1e3, "m": 1e6, "mb": 1e6},
}


class FilterError(AccordError, ValueError):
    """A filter that cannot be read; the text has the reason, and the allowed values."""


class Term(NamedTuple):
    """One word of a query: a filter with its value, or a text (`key` is empty)."""

    key: str
    value: str
    is_negated: bool = False


class Bound(NamedTuple):
    """A number that something must reach, or must not exceed."""

    is_least: bool
    value: float

    def holds(self, value: float) -> bool:
        """Whether a value is on the right side."""
        return value >= self.value if self.is_least else value <= self.value


def read_query(text: str, *, is_of_page: bool = False) -> tuple[Term, ...]:
    """Read a query; raises FilterError.

    >>> read_query('method:prompt -"two words"')
    (Term(key='method', value='prompt', is_negated=False), Term(key='', value='two words', is_negated=True))
    """
    terms: list[Term] = []
    for word in _WORD.finditer(text):
        key, value = word["key"] or "", word["quoted"] if word["quoted"] is not None else word["plain"] or ""
        if key:
            _check(key, value, is_of_page=is_of_page)
        if key or value:
            terms.append(Term(key, value, is_negated=bool(word["minus"])))
    return tuple(terms)


def _check(key: str, value: str, *, is_of_page: bool) -> None:
    known = [name for name, it in FILTERS.items() if is_of_page or not it.is_of_page]
    if key not in known:
        if key in FILTERS:
            raise FilterError(f"{key}: is a filter of the page; see accord inspect")
        raise FilterError(
            f"unknown filter {key}:{nearest(key, known)}; filters are {', '.join(f'{it}:' for it in known)}; "
            f'to look for a text with a colon, quote it: "{key}:{value}"'
        )
    if not value:
        raise FilterError(f"{key}: needs a value, such as {FILTERS[key].examples[0]}")
    if key == "dir" and value not in DIRECTIONS:
        raise FilterError(f"dir: must be {', '.join(DIRECTIONS[:-1])} or {DIRECTIONS[-1]}, got {value!r}")
    if key == "has" and value != "finding":
        raise FilterError(f"has: must be finding, got {value!r}")
    if key == "turn" and not (value.isascii() and value.isdecimal() and len(value) < 10):
        raise FilterError(f"turn: must be a number, got {value!r}")
    if key in UNITS:
        bound_of(key, value)


def bound_of(key: str, value: str) -> Bound:
    """Return a bound such as `>2s`, of the filter `dur` or `size`; without a sign, it is the least value."""
    found = _BOUND.fullmatch(value.lower())
    if found is None or found[3] not in UNITS[key]:
        raise FilterError(f"{key}: must be like {' or '.join(FILTERS[key].examples)}, got {value!r}")
    return Bound(found[1] != "<", float(found[2]) * UNITS[key][found[3]])


def needles(text: str) -> set[bytes]:
    """Return the forms of a text in JSON: unchanged, or escaped; in lower case, as far as it is ASCII."""
    return {
        json.dumps(text, ensure_ascii=ascii_only)[1:-1].encode("utf-8", "replace").lower()
        for ascii_only in (True, False)
    }


def path_test(pattern: str) -> Callable[[str], bool]:
    """Return a function that checks whether a path, or its last parts, match a pattern such as `*.py` or `src/*`."""
    patterns = (pattern.lower(), f"*/{pattern.lower()}")
    return lambda path: any(fnmatchcase(path.lower(), it) for it in patterns)


# Filters of one entry

Filter: TypeAlias = "Callable[[Entry], bool]"


def parse_filter(text: str, role: str = "client") -> Filter:
    """Return a function that checks whether an entry passes this filter; raises FilterError.

    `role` is that of the trace's header: `dir:agent` depends on who recorded.

    >>> passes = parse_filter("method:prompt -status:error")
    """
    tests = [_test(term, role) for term in read_query(text)]
    return lambda entry: all(test(entry) for test in tests)


def _test(term: Term, role: str) -> Filter:
    test = _direction(term.value, role) if term.key == "dir" else _TESTS[term.key](term.value)
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


def _contained(texts: Callable[[Entry], Iterable[str]]) -> Callable[[str], Filter]:
    """A filter for entries that have the value in one of these texts, in any case."""

    def contained(value: str) -> Filter:
        wanted = value.lower()
        return lambda entry: any(wanted in text.lower() for text in texts(entry))

    return contained


def _kind(value: str) -> Filter:
    wanted = value.lower()
    return lambda entry: (
        wanted == entry.kind or (wanted == "error" and entry.status == "error") or wanted in entry.update.lower()
    )


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


def _path(value: str) -> Filter:
    fits = path_test(value)
    return lambda entry: any(fits(path) for path in entry.paths)


_TESTS: dict[str, Callable[[str], Filter]] = {
    "": _text,
    "method": _contained(lambda entry: (entry.method,)),
    "kind": _kind,
    "session": _contained(lambda entry: (entry.session,)),
    "status": _status,
    "dur": _duration,
    "size": _size,
    "tool": _contained(lambda entry: tool_names(entry.content)),
    "path": _path,
}
