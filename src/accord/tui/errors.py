"""Errors in words that help: what failed, what the agent said of it, and what to do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from accord.errors import AUTH_REQUIRED, AccordError, ConnectionClosed, PeerError

if TYPE_CHECKING:
    from accord.tui.connection import AgentConnection

TAIL = 8
"""Lines of the agent's standard error that an error shows."""
DATA = 2_000


def explained(error: AccordError, connection: AgentConnection) -> tuple[str, str]:
    """The title of an error, and the lines below it."""
    lines = [*_said(error), *_tail(error, connection), *_advice(error, connection)]
    return _title(error, connection), "\n".join(lines)


def _title(error: AccordError, connection: AgentConnection) -> str:
    if isinstance(error, PeerError):
        return f"{connection.name} answered with an error: {error.message} ({error.code})"
    return str(error).partition("\n")[0]


def _said(error: AccordError) -> Iterator[str]:
    """What the agent adds to its error."""
    yield from str(error).partition("\n")[2].splitlines() if not isinstance(error, PeerError) else ()
    data = getattr(error, "data", None)
    if not data:
        return
    if isinstance(data, dict):
        members = cast("dict[str, Any]", data)
        if isinstance(details := members.get("details", members.get("message")), str):
            yield from details[:DATA].splitlines()
            return
    yield from (data if isinstance(data, str) else json.dumps(data, indent=2, ensure_ascii=False))[:DATA].splitlines()


def _tail(error: AccordError, connection: AgentConnection) -> Iterator[str]:
    lines = list(connection.stderr)[-TAIL:]
    text = str(error)
    lines = [line for line in lines if line.strip() and line.strip() not in text]
    if lines:
        yield "The agent wrote to its standard error:"
        yield from (f"  {line}" for line in lines)


def _advice(error: AccordError, connection: AgentConnection) -> Iterator[str]:
    if isinstance(error, PeerError) and error.code == AUTH_REQUIRED:
        yield "Log in: /login"
    elif isinstance(error, ConnectionClosed) or connection.remote is None:
        yield f"The command is: {connection.choice.where}" if connection.choice.where else ""
        yield "Try again: /restart    Check the agent: accord doctor"
