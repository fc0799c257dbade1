"""One line for each request and each connection: who came, what became of it, how much and how long.

    2026-11-21T15:04:05.678Z ada POST 202 in=114 out=0 0.4ms connection=Ab3dEf9h

What is never in it: tokens, paths and queries, headers, messages. A connection is named by the beginning of its id,
which is not enough to use it. A stream and a WebSocket have their line when they end.

The lines are records of the logger `accord.http.access` at level INFO, each with its `Exchange` as its argument; where
nobody listens to that logger they are not made. `JsonLines` writes them, and all other records, as JSON.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec

SHOWN = 8
"""Characters of a connection's id that are shown."""

METHODS = frozenset({"GET", "POST", "DELETE", "PUT", "HEAD", "PATCH", "OPTIONS", "TRACE", "CONNECT", "WEBSOCKET"})

log = logging.getLogger("accord.http.access")


class Exchange:
    """A request, or a WebSocket, from its arrival until it is over."""

    __slots__ = ("_began", "connection", "method", "received", "seconds", "sent", "status", "user", "when")

    def __init__(self, method: str) -> None:
        self.method = method if method in METHODS else "OTHER"
        self.user = ""
        self.status = 0
        """What was answered; of a WebSocket that was opened, the code with which it was closed; 0 if nothing was."""
        self.received = 0
        self.sent = 0
        self.connection = ""
        self.when = 0.0
        self.seconds = 0.0
        self._began = time.perf_counter()

    def end(self) -> None:
        """It is over: write its line."""
        if log.isEnabledFor(logging.INFO):
            self.when = time.time()
            self.seconds = time.perf_counter() - self._began
            log.info("%s", self)

    @property
    def fields(self) -> dict[str, Any]:
        """What is told, by name."""
        return {
            "time": _moment(self.when),
            "user": self.user or None,
            "method": self.method,
            "status": self.status,
            "received": self.received,
            "sent": self.sent,
            "seconds": round(self.seconds, 6),
            "connection": self.connection[:SHOWN] or None,
        }

    def __str__(self) -> str:
        named = f" connection={self.connection[:SHOWN]}" if self.connection else ""
        return (
            f"{_moment(self.when)} {_word(self.user)} {self.method} {self.status or '-'} "
            f"in={self.received} out={self.sent} {_duration(self.seconds)}{named}"
        )


class JsonLines(logging.Formatter):
    """Each record as a line of JSON: an exchange with its fields, anything else with its level and its text."""

    def format(self, record: logging.LogRecord) -> str:
        told = record.args[0] if isinstance(record.args, tuple) and record.args else None
        if isinstance(told, Exchange):
            fields = told.fields
        else:
            fields = {
                "time": _moment(record.created),
                "level": record.levelname.lower(),
                "text": super().format(record),
            }
        return msgspec.json.encode(fields).decode()


class TextLines(logging.Formatter):
    """Each record as a line of text: an exchange as it is, anything else behind the time.

    What a client or an agent sent can be part of a record. So nothing but printable characters is written as it is, and
    only a traceback has lines.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        return _escaped(super().formatMessage(record))

    def format(self, record: logging.LogRecord) -> str:
        text = "\n".join(map(_escaped, super().format(record).split("\n")))
        return text if record.name == log.name else f"{_moment(record.created)} {text}"


FORMATS: dict[str, Callable[[], logging.Formatter]] = {"text": TextLines, "json": JsonLines}


def _escaped(text: str) -> str:
    """This text with its control and formatting characters as escapes (`\\x1b`)."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)


def _moment(when: float) -> str:
    return datetime.fromtimestamp(when, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _word(user: str) -> str:
    """A name as one word, on one line."""
    shown = "".join(letter if letter.isprintable() and not letter.isspace() else "_" for letter in user)
    return shown or "-"


def _duration(seconds: float) -> str:
    return f"{seconds:.1f}s" if seconds >= 1 else f"{seconds * 1000:.1f}ms"
