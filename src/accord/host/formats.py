"""Formats and patterns of texts in forms. Pure, but for one thing: a pattern that could take for ever runs elsewhere.

A pattern comes from an agent, and a few characters are enough for one that takes years (`(a+)+$`). Python's regular
expressions cannot be stopped. So one that could be slow is run in a process of its own, for a second at most; what was
not decided by then is left to the agent, which checks what it gets anyway.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import subprocess
import sys

DEADLINE = 1.0
STEPS = 1_000_000
"""How many steps of a match may be waited for here."""

_DATE_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[Tt](\d\d):(\d\d):(\d\d)(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+")
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_EMAIL = re.compile(rf"{_ATOM}(?:\.{_ATOM})*@{_LABEL}(?:\.{_LABEL})*")


def has_format(text: str, name: str) -> bool:
    """Whether a text is an `email`, `uri`, `date` or `date-time`.

    >>> has_format("2024-02-30", "date"), has_format("2024-02-29T12:00:00Z", "date-time")
    (False, True)
    """
    return _FORMATS[name](text) if name in _FORMATS else True


def _is_date(text: str) -> bool:
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII):
        return False
    try:
        dt.date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _is_date_time(text: str) -> bool:
    found = _DATE_TIME.fullmatch(text)
    if found is None or not _is_date(found[1]):
        return False
    hour, minute, second = (int(found[group]) for group in (2, 3, 4))
    zone = found[6]
    zone_is_right = zone in "Zz" or (int(zone[1:3]) < 24 and int(zone[4:6]) < 60)
    return hour < 24 and minute < 60 and second <= 60 and zone_is_right  # 60 is a leap second


def _is_email(text: str) -> bool:
    return len(text) <= 254 and _EMAIL.fullmatch(text) is not None


def _is_uri(text: str) -> bool:
    return _URI.fullmatch(text) is not None


_FORMATS = {"email": _is_email, "uri": _is_uri, "date": _is_date, "date-time": _is_date_time}


def matches(pattern: str, text: str) -> bool | None:
    """Whether a pattern occurs in a text; None when it is no pattern here, or takes too long."""
    named = re.sub(r"\(\?<(?![=!])", "(?P<", pattern)  # as JSON Schema's patterns name groups
    try:
        compiled = re.compile(named)
    except (re.error, OverflowError, RecursionError):
        return None
    if _steps(named, len(text)) <= STEPS:
        return compiled.search(text) is not None
    return _matches_elsewhere(named, text)


_PIECE = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[*+{]|\)[*+{]|.", re.DOTALL)


def _steps(pattern: str, length: int) -> float:
    """How many steps a match may take at worst: each repetition may try every length, and a repeated group more."""
    pieces = _PIECE.findall(pattern)
    if any(piece in (")*", ")+", "){") or re.fullmatch(r"\\[1-9]", piece) for piece in pieces) or "(?P=" in pattern:
        return math.inf
    repetitions = sum(piece in ("*", "+", "{") for piece in pieces)
    return float(max(length, 2)) ** min(repetitions + 1, 50)  # one more, as a match may begin anywhere


_SEARCH = """
import re, sys
pattern, text = sys.stdin.buffer.read().decode("utf-8", "surrogatepass").split(chr(0))
sys.exit(0 if re.search(pattern, text) else 9)
"""


def _matches_elsewhere(pattern: str, text: str) -> bool | None:
    if "\0" in pattern or "\0" in text or not sys.executable or getattr(sys, "frozen", False):
        return None
    data = f"{pattern}\0{text}".encode("utf-8", "surrogatepass")
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _SEARCH], input=data, capture_output=True, timeout=DEADLINE, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return {0: True, 9: False}.get(done.returncode)
