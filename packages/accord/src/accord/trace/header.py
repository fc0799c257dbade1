"""`TraceHeader`: the first line of a trace, which describes the recording."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

FORMAT = 1
"""The version of the file format."""


def now() -> str:
    """The time as a header has it: ISO 8601 with an offset."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class TraceHeader(msgspec.Struct, frozen=True, omit_defaults=True):
    """The first line of a trace: who recorded what, and when."""

    version: int = msgspec.field(name="accord-trace")
    """The version of the file format."""
    started: str = ""
    """When the recording began, in ISO 8601 with an offset. The events of all parts count from here."""
    role: str = ""
    """Who recorded: `client`, `agent`, `conductor` (a chain of proxies), or `tap` (between the two)."""
    peer: str = ""
    """A description of the other side."""
    masked: bool = False
    """Whether secrets were masked while recording."""
    tool: str = ""
    """The program that wrote the file, with its version."""
    command: tuple[str, ...] = ()
    """The agent's command, where the recorder started it or knows it."""
    cwd: str = ""
    """The folder in which the agent was started."""
    part: int = 1
    """The number of this file, where a long recording has several."""
    redacted: dict[str, int] | None = None
    """In an exported trace: what was replaced, and how often."""
    imported: str = ""
    """The format from which this trace was converted."""
