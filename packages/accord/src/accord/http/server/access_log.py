"""The access log: one line for each request and each WebSocket, with client, user, status, sizes and duration.

    2026-11-21T15:04:05.678Z 203.0.113.7 ada POST /acp 202 in=114 out=0 0.4ms connection=Ab3dEf9h

The log never contains tokens, queries, headers or messages. A connection is named by the first characters of its id,
which are not enough to use it. Streams and WebSockets are logged when they end.

Lines are records of the logger `accord.http.access` at level INFO, with an `AccessRecord` as argument. They are created
only while that logger is enabled for INFO. `JsonFormatter` writes them, and all other records, as JSON.
"""

from __future__ import annotations

import logging
import time
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

SHOWN = 8
"""Characters of a connection's id that are shown."""

LONGEST_PATH = 200
"""Characters of a path that are shown."""

METHODS = frozenset({"GET", "POST", "DELETE", "PUT", "HEAD", "PATCH", "OPTIONS", "TRACE", "CONNECT", "WEBSOCKET"})

log = logging.getLogger("accord.http.access")


class AccessRecord(msgspec.Struct, eq=False):
    """The logged facts about one request or WebSocket."""

    method: str
    client: str = ""
    """The address of the client; empty if it is unknown, as for a Unix socket."""
    path: str = ""
    user: str = ""
    """The owner whose token the request has."""
    observes: bool = False
    """Whether the token may only watch."""
    status: int = 0
    """The HTTP status, or the close code of an opened WebSocket; 0 if there was none."""
    received: int = 0
    sent: int = 0
    connection: str = ""
    via: str = ""
    """The host to which the request was forwarded."""
    when: float = 0.0
    seconds: float = 0.0
    _began: float = msgspec.field(default_factory=time.perf_counter)

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            self.method = "OTHER"

    def end(self) -> None:
        """Write the line: the request or WebSocket has ended."""
        if log.isEnabledFor(logging.INFO):
            self.when = time.time()
            self.seconds = time.perf_counter() - self._began
            log.info("%s", self)

    @property
    def fields(self) -> dict[str, Any]:
        """The values to log, by name."""
        return {
            "time": _moment(self.when),
            "client": self.client or None,
            "user": self.user or None,
            "method": self.method,
            "path": self.path[:LONGEST_PATH],
            "status": self.status,
            "received": self.received,
            "sent": self.sent,
            "seconds": round(self.seconds, 6),
            "connection": self.connection[:SHOWN] or None,
            **({"via": self.via} if self.via else {}),
        }

    def __str__(self) -> str:
        named = f" connection={self.connection[:SHOWN]}" if self.connection else ""
        named += f" via={self.via}" if self.via else ""
        return (
            f"{_moment(self.when)} {_word(self.client)} {_word(self.user)} {self.method} "
            f"{_word(self.path[:LONGEST_PATH])} {self.status or '-'} "
            f"in={self.received} out={self.sent} {_duration(self.seconds)}{named}"
        )


class JsonFormatter(logging.Formatter):
    """Each record as a line of JSON: an `AccessRecord` with its fields, anything else with level and text."""

    def format(self, record: logging.LogRecord) -> str:
        logged = record.args[0] if isinstance(record.args, tuple) and record.args else None
        if isinstance(logged, AccessRecord):
            fields = logged.fields
        else:
            fields = {
                "time": _moment(record.created),
                "level": record.levelname.lower(),
                "text": super().format(record),
            }
        return msgspec.json.encode(fields).decode()


class TextFormatter(logging.Formatter):
    """Each record as a line of text: an `AccessRecord` unchanged, anything else with the time in front.

    A record can contain text of a client or an agent. So unprintable characters are escaped, and only a traceback has
    several lines.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        return _escaped(super().formatMessage(record))

    def format(self, record: logging.LogRecord) -> str:
        text = "\n".join(map(_escaped, super().format(record).split("\n")))
        return text if record.name == log.name else f"{_moment(record.created)} {text}"


def log_formatter(form: Literal["text", "json"] = "text") -> logging.Formatter:
    """Return a formatter that writes the records of a server as `accord serve` does, the access log included.

        handler = logging.StreamHandler()
        handler.setFormatter(accord.http.log_formatter("json"))
        logging.getLogger("accord.http").addHandler(handler)

    With `json` each record is one line of JSON. With `text` a client's text cannot control a terminal: unprintable
    characters are escaped.
    """
    return JsonFormatter() if form == "json" else TextFormatter()


def _escaped(text: str) -> str:
    """Return this text with control and formatting characters escaped (`\\x1b`)."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)


def _moment(when: float) -> str:
    return datetime.fromtimestamp(when, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _word(text: str) -> str:
    """A name or a path as one printable word."""
    shown = "".join(letter if letter.isprintable() and not letter.isspace() else "_" for letter in text)
    return shown or "-"


def _duration(seconds: float) -> str:
    return f"{seconds:.1f}s" if seconds >= 1 else f"{seconds * 1000:.1f}ms"
