"""A search as its user writes it, read into filters. PURE.

    method:prompt dir:agent dur:>2s "exit code"  ──▶  Query(filters, texts)

| filter | shows |
|---|---|
| `method:prompt` | messages whose method contains this, and their answers |
| `kind:tool_call` | session updates whose kind contains this |
| `session:ab12` | messages of sessions whose id contains this |
| `dir:agent`, `dir:client` | messages towards the agent, towards the client |
| `is:request` | `request`, `notification`, `answer`, `error`, `note`, `stderr`, `broken` |
| `status:error`, `status:failed` | answers that are errors; tool calls with this status |
| `dur:>2s`, `dur:<50ms` | requests and answers that took longer or shorter |
| `size:>10k` | messages with more or fewer bytes |
| `tool:edit` | tool calls whose kind, title or name contains this |
| `path:*.py` | messages that name a path which fits |
| `turn:3` | messages of this turn |
| `has:finding` | messages that show a fault which the checks of `accord.check` found |

All else is text: each word, or words in quotes, must occur in the message; case does not matter.
"""

from __future__ import annotations

import re
import shlex
from typing import NamedTuple

from accord.errors import AccordError
from accord.inspector.lines import ANSWER, BROKEN, ERROR, NOTE, NOTIFICATION, REQUEST, STDERR
from accord.suggestions import nearest

FILTERS = ("method", "kind", "session", "dir", "is", "status", "dur", "size", "tool", "path", "turn", "has")
LINE_KINDS = {
    "request": REQUEST,
    "notification": NOTIFICATION,
    "answer": ANSWER,
    "error": ERROR,
    "note": NOTE,
    "stderr": STDERR,
    "broken": BROKEN,
}
DIRECTIONS = {"agent": 1, "client": 0}
UNITS = {"": 1.0, "s": 1.0, "ms": 0.001, "us": 0.000001, "m": 60.0, "min": 60.0, "h": 3600.0}
SIZES = {"": 1.0, "b": 1.0, "k": 1e3, "kb": 1e3, "m": 1e6, "mb": 1e6}

_BOUND = re.compile(r"([<>]?)=?(\d+(?:\.\d+)?)([a-z]*)")


class BadQuery(AccordError):
    """A search that cannot be read."""


class Bound(NamedTuple):
    """A number that something must exceed, or stay below."""

    is_least: bool
    value: float

    def holds(self, value: float) -> bool:
        """Whether a value is on the right side."""
        return value >= self.value if self.is_least else value <= self.value


class Query(NamedTuple):
    """A search: all of its filters and texts must hold."""

    filters: tuple[tuple[str, str], ...]
    texts: tuple[str, ...]

    def values(self, name: str) -> list[str]:
        """The values of one filter."""
        return [value for key, value in self.filters if key == name]


def read_query(text: str) -> Query:
    """Read a search; raises BadQuery.

    >>> read_query('method:prompt "two words" x')
    Query(filters=(('method', 'prompt'),), texts=('two words', 'x'))
    """
    filters: list[tuple[str, str]] = []
    texts: list[str] = []
    for word in _split(text):
        name, colon, value = word.partition(":")
        if colon and name in FILTERS and value:
            _check(name, value)
            filters.append((name, value))
        elif colon and value and "did you mean" in (hint := nearest(name, FILTERS)):
            raise BadQuery(f"unknown filter {name!r}{hint}")
        else:
            texts.append(word)
    return Query(tuple(filters), tuple(texts))


def _split(text: str) -> list[str]:
    """Words, with quotes taken off; a quote that is not closed is text like other text."""
    lexer = shlex.shlex(text, posix=True)
    lexer.whitespace_split, lexer.commenters, lexer.escape, lexer.quotes = True, "", "", '"'
    try:
        return list(lexer)
    except ValueError:
        return text.split()


def _check(name: str, value: str) -> None:
    if name == "dir" and value not in DIRECTIONS:
        raise BadQuery(f"dir must be {' or '.join(DIRECTIONS)}, got {value!r}")
    if name == "is" and value not in LINE_KINDS:
        raise BadQuery(f"is must be one of {', '.join(LINE_KINDS)}, got {value!r}")
    if name == "has" and value != "finding":
        raise BadQuery(f"has must be finding, got {value!r}")
    if name == "turn" and not (value.isascii() and value.isdecimal() and len(value) < 10):
        raise BadQuery(f"turn must be a number, got {value!r}")
    if name == "dur":
        bound_of(name, value, UNITS)
    if name == "size":
        bound_of(name, value, SIZES)


def bound_of(name: str, value: str, units: dict[str, float]) -> Bound:
    """A bound such as `>2s`; without a sign, it is the least value."""
    found = _BOUND.fullmatch(value.lower())
    if found is None or found[3] not in units:
        raise BadQuery(f"{name} must be like >2{next(unit for unit in units if unit)}, got {value!r}")
    return Bound(found[1] != "<", float(found[2]) * units[found[3]])
