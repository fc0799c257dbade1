"""`Imported`: a trace of another program, converted to our events."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from accord.errors import AccordError
from accord.trace.events import TraceEvent


class UnknownFormat(AccordError):
    """A file that is no trace of a known format, or is damaged."""


class Imported(msgspec.Struct):
    """A trace of another program, converted to our events."""

    format: str
    """The name of its format, see `FORMATS`."""
    events: list[TraceEvent]
    role: str = "tap"
    """`tap`: `in` is from the agent. `conductor` in a chain of components."""
    started: str = ""
    """In ISO 8601; empty if the file does not say."""
    command: tuple[str, ...] = ()


def frame_of(message: Any) -> bytes:
    """A message that was decoded, as a frame."""
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
