"""Validates texts in forms by format and by pattern. Pure.

A pattern comes from an agent, so RE2 matches it (`project.patterns`). Without RE2, and for patterns that it does not
support (lookahead, backreferences), a client does not check the pattern: the agent must validate its input anyway. An
agent does not send a form whose answers it could not check.
"""

from __future__ import annotations

import datetime as dt
import re

from accord.project.patterns import compiled

MOST_STEPS = 1_000_000
"""Steps that a match may take: characters of the text times instructions of the pattern. These take 15 ms."""

_DATE_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[Tt](\d\d):(\d\d):(\d\d)(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]++|%[0-9A-Fa-f]{2})++")
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
    """Whether a pattern occurs in a text; None if that cannot be checked in linear time.

    >>> matches("^(a+)+$", "a" * 60 + "!")
    False
    """
    expression = compiled(pattern)
    if expression is None or expression.programsize * len(text) > MOST_STEPS:
        return None
    try:
        return expression.search(text) is not None
    except UnicodeEncodeError:  # half a surrogate pair has no UTF-8
        return None
