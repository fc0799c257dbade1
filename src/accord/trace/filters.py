"""The filter language of traces: `method:prompt status:error dur:>2s tool:edit path:*.py "some words"`. PURE.

Words separated by blanks all have to hold. A word without a key is looked for in the message itself, in any case. A
minus before a word negates it. Quotes keep blanks and colons in a text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import TypeAlias

from accord.suggestions import nearest
from accord.trace.entries import Entry
from accord.trace.meaning import body_of

Filter: TypeAlias = Callable[[Entry], bool]

_WORD = re.compile(r'(?P<minus>-?)(?:(?P<key>[a-z]+):)?(?:"(?P<quoted>[^"]*)"?|(?P<plain>[^"\s]\S*)?)')
_DURATION = re.compile(r"(?P<than>[<>]?)=?(?P<number>\d+(?:\.\d+)?)(?P<unit>ms|s|m)?")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0}


class FilterError(ValueError):
    """A filter that cannot be read; the text says why."""


def parse_filter(text: str) -> Filter:
    """A function that says whether an entry passes this filter; raises FilterError.

    >>> passes = parse_filter("method:prompt -status:error")
    """
    tests = [_test(match) for match in _WORD.finditer(text) if match.group()]
    return lambda entry: all(test(entry) for test in tests)


def any_of(texts: Sequence[str]) -> Filter:
    """The filter that several arguments of a command make together."""
    return parse_filter(" ".join(texts))


def _test(word: re.Match[str]) -> Filter:
    key, quoted, plain = word["key"], word["quoted"], word["plain"]
    value = quoted if quoted is not None else plain or ""
    if key is None:
        test = _contains(value)
    elif key in KEYS:
        if not value:
            raise FilterError(f"{key}: needs a value, such as {EXAMPLES[key]}")
        test = KEYS[key](value)
    else:
        raise FilterError(
            f"unknown filter {key}:{nearest(key, KEYS)}; filters are {', '.join(f'{it}:' for it in KEYS)}; "
            f'to look for a text with a colon, quote it: "{key}:{value}"'
        )
    return test if not word["minus"] else lambda entry: not test(entry)


def _contains(text: str) -> Filter:
    wanted, as_bytes = text.lower(), text.lower().encode()

    def test(entry: Entry) -> bool:
        frame = entry.event.frame
        return wanted in entry.text.lower() or (frame is not None and as_bytes in frame.lower())

    return test


def _method(value: str) -> Filter:
    return lambda entry: value in entry.method


def _kind(value: str) -> Filter:
    return lambda entry: value in (entry.kind, entry.update)


def _session(value: str) -> Filter:
    return lambda entry: entry.session.startswith(value)


def _direction(value: str) -> Filter:
    if value not in ("in", "out"):
        raise FilterError(f"dir: must be in or out, got {value!r}")
    return lambda entry: entry.event.direction == value


def _status(value: str) -> Filter:
    return lambda entry: value in (entry.status, entry.content.get("status"), entry.content.get("stopReason"))


def _duration(value: str) -> Filter:
    found = _DURATION.fullmatch(value)
    if found is None:
        raise FilterError(f"dur: must be a time such as >2s or <100ms, got {value!r}")
    seconds = float(found["number"]) * _SECONDS[found["unit"] or "s"]
    if found["than"] == "<":
        return lambda entry: entry.duration is not None and entry.duration < seconds
    return lambda entry: entry.duration is not None and entry.duration >= seconds


def _tool(value: str) -> Filter:
    wanted = value.lower()

    def test(entry: Entry) -> bool:
        call = body_of(entry.body.get("toolCall")) or (entry.content if entry.update.startswith("tool_call") else {})
        named = (call.get("kind"), call.get("title"), call.get("toolCallId"))
        return any(isinstance(it, str) and wanted in it.lower() for it in named)

    return test


def _path(value: str) -> Filter:
    patterns = (value, f"*/{value}")
    return lambda entry: any(fnmatchcase(path, pattern) for path in entry.paths for pattern in patterns)


KEYS: dict[str, Callable[[str], Filter]] = {
    "method": _method,
    "kind": _kind,
    "session": _session,
    "dir": _direction,
    "status": _status,
    "dur": _duration,
    "tool": _tool,
    "path": _path,
}
EXAMPLES = {
    "method": "method:prompt",
    "kind": "kind:tool_call",
    "session": "session:3f2a",
    "dir": "dir:in",
    "status": "status:error",
    "dur": "dur:>2s",
    "tool": "tool:edit",
    "path": "path:*.py",
}
