"""Checks a value of the protocol that an author made, before it is sent.

A type of the protocol is a `msgspec.Struct`, which takes any value for a field: a check in `__init__` would cost every
message that arrives and every chunk of a stream. So values are checked where an author hands them over:
`turn.send(v1.ToolCall(3, "T"))`, a plan's entry, a request. The check converts the value to plain data and reads that
strictly. It copies no text, so its cost depends on the number of fields only: about ten microseconds.

The strict reader refuses an `Unknown` too, which may be sent. So a refused value is read tolerantly, and is good if
nothing of it was changed.
"""

from __future__ import annotations

import re
from typing import Any, cast

import msgspec

from accord.errors import DecodeError
from accord.schema import codec, tolerant

_STEP = re.compile(r" - at `(.*)`$")


def check_sendable(call: str, value: Any) -> None:
    """Raise TypeError or ValueError for a value of the protocol that does not have the shape that its type gives it.

    >>> from accord.schema.v1 import PlanEntry
    >>> check_sendable("turn.plan()", PlanEntry("Look", "urgent", "pending"))
    Traceback (most recent call last):
    ValueError: turn.plan() got an invalid PlanEntry: invalid enum value 'urgent' at $.priority
    """
    cls = cast("type[object]", value.__class__)
    if not cls.__module__.startswith("accord.schema."):
        return  # a message of the author's own: its fields may need hooks that only its author knows
    codec.strict_decoder(cls)  # msgspec's first look at a class must not happen in two threads
    plain = codec.plain(value)
    try:
        msgspec.convert(plain, cls, dec_hook=tolerant.strictly)
    except msgspec.ValidationError as error:
        if not _kept_by_a_tolerant_reader(plain, cls):
            raise _refusal(call, cls.__name__, str(error)) from None


def _kept_by_a_tolerant_reader(plain: Any, cls: type[object]) -> bool:
    try:
        with tolerant.keeping_members():
            return bool(codec.plain(codec.convert(plain, cls)) == plain)
    except DecodeError:
        return False


def _refusal(call: str, name: str, problem: str) -> Exception:
    place = _STEP.search(problem)
    what = _STEP.sub("", problem)
    text = f"{call} got an invalid {name}: {what[:1].lower()}{what[1:]}{f' at {place[1]}' if place else ''}"
    return TypeError(text) if what.startswith("Expected") else ValueError(text)
